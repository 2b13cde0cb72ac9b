//! Whether a closed run says anything about what the system can carry.

use super::interactive::{expected_throughput, throughput_bound};
use super::little::LAW_TOLERANCE;
use crate::as_float;

/// From this share of N / Z on, the users set the throughput: a system twice as fast would have added at most a tenth.
pub const GENERATOR_BOUND_SHARE: f64 = 0.90;

/// What a closed run says about capacity, with all the numbers of the argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapacityEvidence {
    /// N: virtual users.
    pub users: f64,
    /// Z: think time in seconds.
    pub think_time: f64,
    /// R: mean response time in seconds.
    pub response_time: f64,
    /// X: achieved throughput in requests a second.
    pub throughput: f64,
    /// N / Z: what these users could send at most, however fast the system were; `None` for users who do not think.
    pub bound: Option<f64>,
    /// X as a share of the bound.
    pub share_of_bound: Option<f64>,
    /// Whether the throughput is the users' and says nothing about the capacity of the system.
    pub void: bool,
}

impl CapacityEvidence {
    /// What the same users would send if answers took `response_time` seconds.
    #[must_use]
    pub fn throughput_at(&self, response_time: f64) -> Option<f64> {
        expected_throughput(self.users, response_time, self.think_time)
    }

    /// Whether the throughput is further above the bound than chance explains: then users, think time and throughput do not
    /// belong together. The sum of n exponential think times has a relative standard deviation of 1/√n, so that three times
    /// that is chance, and [`LAW_TOLERANCE`] is for rounded figures.
    #[must_use]
    pub fn is_impossible(&self, requests: u64) -> bool {
        let chance = if requests == 0 { 0.0 } else { 3.0 / as_float(requests).sqrt() };
        self.share_of_bound.is_some_and(|share| share > 1.0 + chance.max(LAW_TOLERANCE))
    }
}

/// Judges a closed run by the interactive response time law: void if X ≥ [`GENERATOR_BOUND_SHARE`] · N / Z.
#[must_use]
pub fn capacity_evidence(users: f64, think_time: f64, throughput: f64, response_time: f64) -> CapacityEvidence {
    let bound = throughput_bound(users, think_time);
    let share_of_bound = bound.map(|bound| throughput / bound);
    let void = share_of_bound.is_some_and(|share| share >= GENERATOR_BOUND_SHARE);
    CapacityEvidence { users, think_time, response_time, throughput, bound, share_of_bound, void }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_who_mostly_think_say_nothing_about_capacity() {
        let evidence = capacity_evidence(200.0, 0.82, 222.0, 0.075);
        assert!(evidence.void && evidence.share_of_bound.unwrap() > 0.9, "{evidence:?}");
        assert!((evidence.throughput_at(0.0).unwrap() - evidence.bound.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn more_than_the_users_could_send_is_a_contradiction_unless_it_is_chance() {
        // The bound is 100 a second.
        let with = |throughput| capacity_evidence(100.0, 1.0, throughput, 0.001);
        assert!(!with(104.0).is_impossible(40_000) && with(106.0).is_impossible(40_000));
        assert!(!with(120.0).is_impossible(100), "three in ten is chance for a hundred think times");
        assert!(with(120.0).is_impossible(0), "nobody says how many there were");
        assert!(!capacity_evidence(100.0, 0.0, 1e6, 0.001).is_impossible(1_000), "no bound, no contradiction");
    }

    #[test]
    fn users_who_mostly_wait_do() {
        assert!(!capacity_evidence(200.0, 0.82, 100.0, 1.18).void);
        assert!(!capacity_evidence(200.0, 0.0, 5_000.0, 0.04).void, "without think time there is no such bound");
    }
}
