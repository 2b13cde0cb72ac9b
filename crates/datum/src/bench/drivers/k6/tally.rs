//! How the measured requests ended, counted while k6's points become seconds.

use envelope::analysis::{NOTHING_ENDED, broken, mostly_broken};
use envelope::result::{Interval, Phase, PhaseKind, SET_UP};

/// Requests of the measured phases.
#[derive(Debug, Default)]
pub(super) struct Tally {
    requests: u64,
    /// Those that failed, other than being shed.
    broken: u64,
}

impl Tally {
    /// Adds a second, if one of `phases` measures in it.
    pub(super) fn add(&mut self, interval: &Interval, phases: &[Phase]) {
        let within = |phase: &Phase| (phase.from_second..phase.until_second).contains(&interval.second);
        if !phases.iter().any(|phase| phase.kind == PhaseKind::Measure && within(phase)) {
            return;
        }
        for (_, endpoint) in interval.endpoints.iter().filter(|(name, _)| *name != SET_UP) {
            self.requests += endpoint.latency.count() + endpoint.failed_latency.count();
            self.broken += broken(&endpoint.failures);
        }
    }

    /// Why nothing can be concluded from these requests.
    pub(super) fn void(&self) -> Option<String> {
        if self.requests == 0 {
            return Some(NOTHING_ENDED.to_owned());
        }
        mostly_broken(self.broken, self.requests)
    }
}

#[cfg(test)]
mod tests {
    use envelope::result::{Answerer, EndpointInterval, Failure, FailureCount};

    use super::*;

    fn second(second: u32, name: &str, good: u64, failed: (u64, &str)) -> Interval {
        let (count, code) = failed;
        let failure = Failure { status: Some(503), code: code.to_owned(), answerer: Answerer::Task };
        let mut endpoint = EndpointInterval { failures: vec![FailureCount { failure, count }], ..Default::default() };
        (0..good).for_each(|_| endpoint.latency.record_micros(1_000));
        (0..count).for_each(|_| endpoint.failed_latency.record_micros(1_000));
        Interval { second, endpoints: [(name.to_owned(), endpoint)].into(), ..Interval::default() }
    }

    fn void(seconds: &[Interval]) -> Option<String> {
        let phase = |kind, from_second, until_second| Phase { kind, name: None, from_second, until_second };
        let phases = [phase(PhaseKind::WarmUp, 0, 2), phase(PhaseKind::Measure, 2, 4)];
        let mut tally = Tally::default();
        for interval in seconds {
            tally.add(interval, &phases);
        }
        tally.void()
    }

    #[test]
    fn a_measured_phase_that_mostly_failed_says_nothing_unless_it_shed() {
        let bad = |at| second(at, "login", 4, (6, "internal_error"));
        assert!(void(&[bad(2), bad(3)]).unwrap().starts_with("12 of 20 requests failed"));
        assert_eq!(void(&[second(2, "login", 4, (6, "hashing_busy"))]), None);
        assert_eq!(void(&[second(2, "login", 6, (4, "internal_error"))]), None);
    }

    #[test]
    fn only_requests_of_the_mix_in_measured_seconds_count() {
        let bad = |at, name| second(at, name, 0, (6, "internal_error"));
        let good = second(3, "login", 5, (0, "internal_error"));
        assert_eq!(void(&[bad(1, "login"), bad(4, "login"), bad(2, SET_UP), good]), None);
        assert!(void(&[bad(1, "login")]).unwrap().starts_with("No request"));
    }
}
