//! What came of a trial.

use super::outcome::TrialOutcome;
use crate::analysis::slo::{Slo, SloOutcome, SloVerdict};
use crate::as_float;
use crate::run::{Run, Second};

/// A run that achieved less than this share of the offered rate did not carry it, whatever its latencies are.
const CARRIED_SHARE: f64 = 0.98;

/// What was carried and what was asked for, a second; an answer that failed carries nothing. Where the seconds say what was really offered that counts, because random
/// arrivals of a short trial differ from their rate by more than a system that is too slow.
fn carried(run: &Run, offered: f64) -> Option<(f64, f64)> {
    let seconds = run.seconds.filter(|seconds| *seconds > 0.0)?;
    let in_window = |second: &&Second| {
        run.window.as_ref().is_none_or(|window| (window.from_second..window.until_second).contains(&second.second))
    };
    let (mut asked, mut completed) = (0, 0);
    for second in run.series.iter().filter(in_window) {
        let carried = second.work.completed.saturating_sub(second.failed);
        (asked, completed) = (asked + second.work.offered, completed + carried);
    }
    if asked > 0 {
        return Some((as_float(completed) / seconds, as_float(asked) / seconds));
    }
    Some((run.goodput()?, offered))
}

/// Judges a run of an open model at `offered` requests a second by the objectives: void if the run is, failed if it did not
/// carry the rate or missed an objective, passed otherwise. An objective that cannot be decided fails, and says why; in a short
/// trial the observed error rate, and a percentile with fewer than ten requests beyond it, count as they are.
#[must_use]
pub fn judge_trial(run: &Run, objectives: &[Slo], offered: f64) -> (TrialOutcome, Vec<SloVerdict>) {
    let verdicts: Vec<SloVerdict> = objectives.iter().map(|slo| slo.check(run)).collect();
    if let Some(reason) = run.void.first() {
        return (TrialOutcome::Void(reason.clone()), verdicts);
    }
    let mut missed: Vec<String> = Vec::new();
    match carried(run, offered) {
        Some((carried, asked)) if carried < asked * CARRIED_SHARE => {
            missed.push(format!("{carried:.1} of {asked:.1} iterations a second were carried"));
        }
        Some(_) => {}
        None => missed.push("the run has no throughput".into()),
    }
    for verdict in &verdicts {
        missed.extend(match (&verdict.outcome, verdict.measured) {
            (SloOutcome::Missed, Some(measured)) => {
                Some(format!("{} was missed with {}", verdict.slo, verdict.slo.figure(measured)))
            }
            (SloOutcome::Missed, None) => Some(format!("{} was missed", verdict.slo)),
            (SloOutcome::Undecided(reason), None) => Some(format!("{} cannot be decided: {reason}", verdict.slo)),
            (SloOutcome::Undecided(reason), Some(measured)) if !verdict.slo.within(measured) => {
                Some(format!("{} was missed with {}, although {reason}", verdict.slo, verdict.slo.figure(measured)))
            }
            // Undecided with a figure within the limit: only its bound is not yet, or a longer trial would give another.
            (SloOutcome::Met, _) | (SloOutcome::Undecided(_), Some(_)) => None,
        });
    }
    let outcome = if missed.is_empty() { TrialOutcome::Passed } else { TrialOutcome::Failed(missed.join("; ")) };
    (outcome, verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::pooled::tests::recorded;
    use crate::result::Work;

    #[test]
    fn a_trial_must_carry_its_rate_and_meet_its_objectives() {
        let objectives: Vec<Slo> = ["p95<250ms", "errors<0.1%"].map(|text| text.parse().unwrap()).into();
        let mut run = recorded(100.0, [50_000; 1_000]);
        run.requests = 1_000;
        assert_eq!(judge_trial(&run, &objectives, 100.0).0, TrialOutcome::Passed);
        assert!(
            matches!(judge_trial(&run, &objectives, 110.0).0, TrialOutcome::Failed(reason) if reason.contains("carried"))
        );
        let slow = crate::run::Run { requests: 1_000, ..recorded(100.0, [300_000; 1_000]) };
        let (outcome, verdicts) = judge_trial(&slow, &objectives, 100.0);
        assert!(matches!(outcome, TrialOutcome::Failed(reason) if reason.contains("p95<250ms was missed with 300.")));
        assert_eq!(verdicts.len(), 2);
        // Fewer arrived than the rate says, and all of them were carried; then as many arrived and a tenth waits.
        let second = |offered, completed| Second {
            work: Work { offered, started: offered, completed, dropped: 0 },
            ..Second::default()
        };
        run.series = vec![second(90, 90); 180];
        assert_eq!(judge_trial(&run, &objectives, 110.0).0, TrialOutcome::Passed);
        run.series = vec![second(110, 100); 180];
        assert!(matches!(judge_trial(&run, &objectives, 110.0).0, TrialOutcome::Failed(_)));
        run.series = vec![Second { failed: 40, ..second(110, 110) }; 180];
        assert!(
            matches!(judge_trial(&run, &[], 110.0).0, TrialOutcome::Failed(reason) if reason.contains("were carried")),
            "a refusal is no answer"
        );
        let p99: Vec<Slo> = vec!["p99<250ms".parse().unwrap()];
        let of = |requests, micros| {
            let run = crate::run::Run { requests, ..recorded(100.0, vec![micros; usize::try_from(requests).unwrap()]) };
            judge_trial(&run, &p99, 100.0).0
        };
        assert_eq!(of(500, 50_000), TrialOutcome::Passed, "roughly, and within");
        assert!(
            matches!(of(500, 300_000), TrialOutcome::Failed(reason) if reason.contains("500 requests are too few for p99"))
        );
        assert!(matches!(of(50, 50_000), TrialOutcome::Failed(reason) if reason.contains("cannot be decided")));
        run.void.push("late".into());
        assert_eq!(judge_trial(&run, &objectives, 100.0).0, TrialOutcome::Void("late".into()));
    }
}
