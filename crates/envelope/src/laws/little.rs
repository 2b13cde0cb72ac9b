//! Little's law: what is in a system is what comes in times how long it stays, L = X · R (Little, Operations Research 9,
//! 1961).

/// Figures that the laws tie together are taken as agreeing within this share.
pub const LAW_TOLERANCE: f64 = 0.05;

/// Whether two ways to the same figure agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// What the law gives.
    pub expected: f64,
    /// What was seen.
    pub seen: f64,
    /// (seen − expected) / expected.
    pub deviation: f64,
    /// Whether the deviation is within the tolerance.
    pub agrees: bool,
}

impl Agreement {
    fn of(expected: f64, seen: f64) -> Option<Self> {
        if expected <= 0.0 || !seen.is_finite() {
            return None;
        }
        let deviation = (seen - expected) / expected;
        Some(Self { expected, seen, deviation, agrees: deviation.abs() <= LAW_TOLERANCE })
    }
}

/// Requests in flight on average: X · R.
#[must_use]
pub fn concurrency(throughput: f64, response_time: f64) -> f64 {
    throughput * response_time
}

/// In a closed run all users are either waiting or thinking: X · (R + Z) against the users that were to be active. Fewer
/// seen than the law gives mean that throughput or times include what the users did not do; more, that users idled.
#[must_use]
pub fn check_users(throughput: f64, response_time: f64, think_time: f64, users: f64) -> Option<Agreement> {
    Agreement::of(concurrency(throughput, response_time + think_time), users)
}

/// In an open run: X · R against the number of users found busy on average.
#[must_use]
pub fn check_concurrency(throughput: f64, response_time: f64, busy: f64) -> Option<Agreement> {
    Agreement::of(concurrency(throughput, response_time), busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_belong_together_agree() {
        let agreement = check_users(222.04, 0.075_28, 0.8255, 200.0).unwrap();
        assert!(agreement.agrees && agreement.deviation.abs() < 0.001, "{agreement:?}");
        assert!((concurrency(100.0, 0.25) - 25.0).abs() < 1e-12);
    }

    #[test]
    fn idle_users_are_noticed() {
        let agreement = check_users(100.0, 0.1, 0.8, 200.0).unwrap();
        assert!(!agreement.agrees && agreement.deviation > 1.0, "{agreement:?}");
        assert!(!check_concurrency(100.0, 0.1, 5.0).unwrap().agrees);
        assert_eq!(check_concurrency(0.0, 0.1, 5.0), None);
    }
}
