//! Wall-clock time, injected. Everything that decides by the calendar (token expiry, throttling windows, sweeping) takes
//! a [`Clock`]; durations that only measure use the monotonic `Instant` and need none.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

/// Tells the time, in UTC.
pub trait Clock: Send + Sync + Debug + 'static {
    /// The current time in UTC.
    fn now(&self) -> OffsetDateTime;
}

/// A clock that can be handed around.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock. The one place in the workspace that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}

/// A clock that stands still until it is moved; clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<Mutex<OffsetDateTime>>,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: OffsetDateTime) -> Self {
        Self { now: Arc::new(Mutex::new(now)) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: OffsetDateTime) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> OffsetDateTime {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A UUIDv7 (RFC 9562) of the clock's time: keys made one after the other are neighbours in the index.
#[must_use]
pub fn uuid_v7(clock: &dyn Clock) -> Uuid {
    let now = clock.now();
    let seconds = u64::try_from(now.unix_timestamp()).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, now.nanosecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_clones_share_it() {
        let clock = ManualClock::at(OffsetDateTime::UNIX_EPOCH);
        let clone = clock.clone();
        assert_eq!(clock.now(), OffsetDateTime::UNIX_EPOCH);
        clone.advance(Duration::from_secs(5));
        assert_eq!(clock.now(), OffsetDateTime::UNIX_EPOCH + Duration::from_secs(5));
    }

    #[test]
    fn uuids_sort_by_the_clock() {
        let clock = ManualClock::at(OffsetDateTime::UNIX_EPOCH + Duration::from_secs(1_000));
        let first = uuid_v7(&clock);
        clock.advance(Duration::from_millis(1));
        assert!(first < uuid_v7(&clock));
        assert_eq!(first.get_version_num(), 7);
    }
}
