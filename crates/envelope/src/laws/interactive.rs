//! The interactive response time law: X = N / (R + Z).
//!
//! N users who wait for an answer (R) and think (Z) before they ask again send X requests a second, whatever answers
//! them. If answers took no time at all they would still send no more than N / Z.

/// A closed run's figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThinkTimeEvidence {
    /// Users.
    pub users: f64,
    /// Requests a second.
    pub throughput: f64,
    /// Mean response time in seconds.
    pub response_time: f64,
}

/// Z = N / X − R, in seconds; `None` without throughput, and where it comes out negative: then the users were not all
/// active, or the figures do not belong together.
#[must_use]
pub fn think_time(evidence: ThinkTimeEvidence) -> Option<f64> {
    let ThinkTimeEvidence { users, throughput, response_time } = evidence;
    (throughput > 0.0).then(|| users / throughput - response_time).filter(|seconds| *seconds >= 0.0)
}

/// R = N / X − Z, in seconds.
#[must_use]
pub fn expected_response_time(users: f64, throughput: f64, think_time: f64) -> Option<f64> {
    (throughput > 0.0).then(|| users / throughput - think_time)
}

/// X = N / (R + Z), in requests a second.
#[must_use]
pub fn expected_throughput(users: f64, response_time: f64, think_time: f64) -> Option<f64> {
    let cycle = response_time + think_time;
    (cycle > 0.0).then(|| users / cycle)
}

/// N / Z: what the users could send at most, in requests a second; `None` for users who do not think, who have no such bound.
#[must_use]
pub fn throughput_bound(users: f64, think_time: f64) -> Option<f64> {
    (think_time > 0.0).then(|| users / think_time)
}

/// A think time that several runs imply.
#[derive(Debug, Clone, PartialEq)]
pub struct ThinkTime {
    /// The mean of what the runs imply, in seconds.
    pub seconds: f64,
    /// What each run implies, in seconds, in the order given.
    pub each: Vec<f64>,
    /// Whether at least two runs imply the same within 5 % of their mean: then it is a property of the load, not of the
    /// system, and the runs differ only in how long answers took.
    pub same: bool,
}

/// Runs that imply think times this close together had the same one. Exponential think times of three minutes at 200
/// users average out to well under 1 %; the rest is for rounded figures.
const SAME_THINK_TIME: f64 = 0.05;

/// What think time the figures of closed runs imply; `None` if none of them implies any.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "runs are counted in tens")]
pub fn infer_think_time(runs: &[ThinkTimeEvidence]) -> Option<ThinkTime> {
    let each: Vec<f64> = runs.iter().copied().filter_map(think_time).collect();
    if each.is_empty() {
        return None;
    }
    let seconds = each.iter().sum::<f64>() / each.len() as f64;
    let (least, most) = each.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), z| (least.min(*z), most.max(*z)));
    let same = each.len() > 1 && most - least <= SAME_THINK_TIME * seconds;
    Some(ThinkTime { seconds, each, same })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_solves_for_each_of_its_terms() {
        let (n, r, z) = (200.0, 0.075, 0.825);
        let x = expected_throughput(n, r, z).unwrap();
        assert!((x - 222.222).abs() < 0.001);
        let evidence = ThinkTimeEvidence { users: n, throughput: x, response_time: r };
        assert!((think_time(evidence).unwrap() - z).abs() < 1e-12);
        assert!((expected_response_time(n, x, z).unwrap() - r).abs() < 1e-12);
        assert!((throughput_bound(n, z).unwrap() - 242.424).abs() < 0.001);
    }

    #[test]
    fn impossible_figures_imply_no_think_time() {
        let too_slow = ThinkTimeEvidence { users: 10.0, throughput: 100.0, response_time: 1.0 };
        assert_eq!(think_time(too_slow), None);
        assert_eq!(think_time(ThinkTimeEvidence { users: 1.0, throughput: 0.0, response_time: 1.0 }), None);
        assert_eq!(throughput_bound(5.0, 0.0), None);
        assert_eq!(infer_think_time(&[too_slow]), None);
    }

    #[test]
    fn runs_with_different_think_times_are_not_the_same() {
        let one = ThinkTimeEvidence { users: 100.0, throughput: 100.0, response_time: 0.1 };
        let other = ThinkTimeEvidence { users: 100.0, throughput: 50.0, response_time: 0.1 };
        assert!(infer_think_time(&[one, one]).unwrap().same);
        assert!(!infer_think_time(&[one, other]).unwrap().same);
        assert!(!infer_think_time(&[one]).unwrap().same, "one run has nothing to agree with");
    }
}
