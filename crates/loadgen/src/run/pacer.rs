//! Wakes up at a point in time.
//!
//! tokio's timers have a resolution of a millisecond, as much as a whole answer takes. Arrivals are paced by timerfd(2), which
//! is some fifty microseconds late.

#[cfg(target_os = "linux")]
mod precise {
    use std::fs::File;
    use std::io::{self, Read};
    use std::time::Instant;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Waits for arrivals.
    pub(in crate::run) struct Pacer(AsyncFd<File>);

    impl Pacer {
        #[expect(
            deprecated,
            reason = "the other constructor is unsafe; a `File` keeps its descriptor open as long as it lives"
        )]
        pub(in crate::run) fn new() -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            Ok(Self(AsyncFd::with_interest(timer.into(), Interest::READABLE)?))
        }

        /// Ends at `due`, never before; at once when that has passed.
        pub(in crate::run) async fn until(&self, due: Instant) -> io::Result<()> {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let setting = Itimerspec {
                it_interval: Timespec::default(),
                it_value: Timespec::try_from(left).map_err(io::Error::other)?,
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &setting)?;
            loop {
                let mut guard = self.0.readable().await?;
                // Without an expiration the readiness was left over from an earlier setting: reading would block.
                if let Ok(read) = guard.try_io(|timer| timer.get_ref().read_exact(&mut [0; 8])) {
                    return read;
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod precise {
    use std::io;
    use std::time::Instant;

    /// Waits for arrivals.
    pub(in crate::run) struct Pacer;

    impl Pacer {
        pub(in crate::run) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Ends at `due`, never before; at once when that has passed.
        pub(in crate::run) async fn until(&self, due: Instant) -> io::Result<()> {
            tokio::time::sleep_until(due.into()).await;
            Ok(())
        }
    }
}

pub(super) use precise::Pacer;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[tokio::test]
    async fn it_never_wakes_early_and_can_be_used_again() {
        let pacer = Pacer::new().unwrap();
        for micros in [0, 200, 1_500, 50] {
            let due = Instant::now() + Duration::from_micros(micros);
            pacer.until(due).await.unwrap();
            assert!(Instant::now() >= due);
        }
    }

    #[tokio::test]
    async fn a_wait_that_was_given_up_does_not_end_the_next() {
        let pacer = Pacer::new().unwrap();
        let soon = Instant::now() + Duration::from_millis(1);
        let given_up = tokio::time::timeout(Duration::ZERO, pacer.until(soon)).await;
        let due = Instant::now() + Duration::from_millis(20);
        pacer.until(due).await.unwrap();
        assert!(Instant::now() >= due, "{given_up:?}");
    }
}
