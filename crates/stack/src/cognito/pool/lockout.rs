//! Failed logins: five are free, then each doubles a wait.

use time::{Duration, OffsetDateTime};

/// Failures without a wait.
const FREE: u32 = 5;
/// The longest wait is "approximately 15 minutes", and as long without an attempt everything is forgotten ("Lockout behavior for
/// failed sign-in attempts").
const LONGEST: Duration = Duration::minutes(15);

/// The failures of one user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lockout {
    failures: u32,
    locked_until: Option<OffsetDateTime>,
    last_attempt: Option<OffsetDateTime>,
}

impl Lockout {
    /// Whether an attempt at `now` is looked at. One that is not does not make the wait longer.
    pub(crate) fn admits(&mut self, now: OffsetDateTime) -> bool {
        if self.last_attempt.is_some_and(|last| now - last >= LONGEST) {
            *self = Self::default();
        }
        self.last_attempt = Some(now);
        self.locked_until.is_none_or(|until| now >= until)
    }

    /// After n failures the wait is 2^(n-5) seconds.
    pub(crate) fn failed(&mut self, now: OffsetDateTime) {
        self.failures += 1;
        if let Some(power) = self.failures.checked_sub(FREE) {
            let wait = Duration::seconds(1_i64.checked_shl(power.min(32)).unwrap_or(i64::MAX)).min(LONGEST);
            self.locked_until = Some(now + wait);
        }
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    #[test]
    fn the_fifth_failure_costs_a_second_and_each_further_one_twice_as_long() {
        let mut lockout = Lockout::default();
        let mut now = START;
        for _ in 0..5 {
            assert!(lockout.admits(now));
            lockout.failed(now);
        }
        for wait in [1, 2, 4, 8] {
            assert!(!lockout.admits(now + Duration::milliseconds(wait * 1_000 - 1)), "{wait}");
            now += Duration::seconds(wait);
            assert!(lockout.admits(now), "{wait}");
            lockout.failed(now);
        }
    }

    #[test]
    fn the_wait_is_bounded_and_ends_everything() {
        let mut lockout = Lockout::default();
        for _ in 0..60 {
            lockout.failed(START);
        }
        assert!(!lockout.admits(START + Duration::minutes(14)));
        // Attempts during the wait go on counting as attempts: the quarter of an hour begins anew.
        assert!(lockout.admits(START + Duration::minutes(15)));
        assert!(lockout.admits(START + Duration::minutes(31)));
        lockout.failed(START + Duration::minutes(31));
        assert!(lockout.admits(START + Duration::minutes(31)), "the old failures are forgotten");
    }

    #[test]
    fn success_forgets_failures() {
        let mut lockout = Lockout::default();
        (0..5).for_each(|_| lockout.failed(START));
        lockout.succeeded();
        (0..4).for_each(|_| lockout.failed(START));
        assert!(lockout.admits(START));
    }
}
