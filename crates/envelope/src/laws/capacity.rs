//! Whether a closed run says anything about what the system can carry.

use super::interactive::{expected_throughput, throughput_bound};

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
    fn users_who_mostly_wait_do() {
        assert!(!capacity_evidence(200.0, 0.82, 100.0, 1.18).void);
        assert!(!capacity_evidence(200.0, 0.0, 5_000.0, 0.04).void, "without think time there is no such bound");
    }
}
