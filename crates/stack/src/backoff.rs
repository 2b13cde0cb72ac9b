//! How long to wait before a dead task is started again.

use std::time::Duration;

/// The wait after the first death.
pub const FIRST: Duration = Duration::from_millis(100);
/// The longest wait: what dies for good costs one start every five seconds.
pub const LONGEST: Duration = Duration::from_secs(5);
/// A task that was healthy for this long starts again from [`FIRST`].
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(30);

/// Doubling waits between the starts of one task.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    deaths: u32,
}

impl Backoff {
    /// The wait after one more death, given how long the process had been healthy before it.
    pub fn after_death(&mut self, healthy_for: Duration) -> Duration {
        if healthy_for >= FORGIVEN_AFTER {
            self.deaths = 0;
        }
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(self.deaths)).min(LONGEST);
        self.deaths = self.deaths.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..8).map(|_| backoff.after_death(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    }

    #[test]
    fn half_a_minute_of_health_forgives() {
        let mut backoff = Backoff::default();
        backoff.after_death(Duration::ZERO);
        backoff.after_death(Duration::ZERO);
        assert_eq!(backoff.after_death(Duration::from_secs(29)), Duration::from_millis(400));
        assert_eq!(backoff.after_death(Duration::from_secs(30)), FIRST);
    }

    #[test]
    fn the_count_cannot_overflow() {
        let mut backoff = Backoff { deaths: u32::MAX };
        assert_eq!(backoff.after_death(Duration::ZERO), LONGEST);
        assert_eq!(backoff.after_death(Duration::ZERO), LONGEST);
    }
}
