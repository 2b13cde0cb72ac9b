//! Where a request's time goes.
//!
//! Each request carries one accumulator a stage. What a stage adds up is wall-clock time spent in it; `app` is what the
//! total leaves over. Stages follow one another within a request: where a handler runs two at once, `app` absorbs the
//! difference and is never below zero.

use std::fmt::Write;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::context::CURRENT;

/// A part of a request's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Stage {
    /// Waiting for a permit: hashing queue, upload buffer.
    Admission,
    /// Waiting for a database connection.
    Pool,
    /// Waiting for the database's answer.
    Db,
    /// Hashing a password.
    Hash,
    /// Waiting for the identity provider.
    Idp,
    /// Waiting for the object store.
    S3,
    /// Verifying the access token.
    Verify,
}

impl Stage {
    /// Every measured stage; `app` and `total` are derived.
    pub const ALL: [Self; 7] = [Self::Admission, Self::Pool, Self::Db, Self::Hash, Self::Idp, Self::S3, Self::Verify];

    /// The name in `Server-Timing`, metrics and spans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Pool => "pool",
            Self::Db => "db",
            Self::Hash => "hash",
            Self::Idp => "idp",
            Self::S3 => "s3",
            Self::Verify => "verify",
        }
    }
}

/// Nanoseconds by stage. A stage that never ran is absent, not zero: 0 is kept for "did not happen", so that an elapsed
/// time below the clock's resolution counts as one nanosecond.
#[derive(Debug, Default)]
pub(crate) struct StageTimes([AtomicU64; Stage::ALL.len()]);

impl StageTimes {
    fn add(&self, stage: Stage, elapsed: Duration) {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.0[stage as usize].fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, stage: Stage) -> Option<Duration> {
        let nanos = self.0[stage as usize].load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    /// What the measured stages leave of `total`.
    pub(crate) fn app(&self, total: Duration) -> Duration {
        let measured = Stage::ALL.iter().filter_map(|stage| self.get(*stage)).sum();
        total.saturating_sub(measured)
    }

    /// The value of the `Server-Timing` header, milliseconds with microsecond resolution (W3C Server Timing).
    pub(crate) fn server_timing(&self, total: Duration) -> String {
        let mut header = String::with_capacity(96);
        for stage in Stage::ALL {
            if let Some(elapsed) = self.get(stage) {
                let _ = write!(header, "{};dur={:.3}, ", stage.name(), millis(elapsed));
            }
        }
        let _ = write!(header, "app;dur={:.3}, total;dur={:.3}", millis(self.app(total)), millis(total));
        header
    }
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Adds to a stage of the current request; outside a request it does nothing.
pub fn record(stage: Stage, elapsed: Duration) {
    // Outside a request there is nobody to tell.
    let _ = CURRENT.try_with(|context| context.stages.add(stage, elapsed));
}

/// Runs a future and adds the time until it is done to a stage of the current request.
pub async fn timed<F: Future>(stage: Stage, future: F) -> F::Output {
    let started = Instant::now();
    delayed(stage).await;
    let output = future.await;
    record(stage, started.elapsed());
    output
}

/// Waits as long as `FAULT_STAGE_DELAY` says of this stage, once a request. For a stage that is measured with [`record`];
/// [`timed`] does it itself.
pub async fn delayed(stage: Stage) {
    if let Some(delay) = take_delay(stage) {
        // Boxed, so that a delay that is not there takes no room in the future of every stage.
        Box::pin(tokio::time::sleep(delay)).await;
    }
}

/// What [`delayed`] would wait, taken away from it: for work that runs on a thread of its own and has to be slow there.
#[must_use]
pub fn take_delay(stage: Stage) -> Option<Duration> {
    CURRENT.try_with(|context| context.fault.as_ref().and_then(|fault| fault.take(stage))).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_what_ran_and_app_is_the_rest() {
        let times = StageTimes::default();
        times.add(Stage::Db, Duration::from_micros(1_500));
        times.add(Stage::Db, Duration::from_micros(500));
        times.add(Stage::Verify, Duration::from_micros(250));
        assert_eq!(
            times.server_timing(Duration::from_millis(3)),
            "db;dur=2.000, verify;dur=0.250, app;dur=0.750, total;dur=3.000"
        );
    }

    #[test]
    fn overlapping_stages_never_make_app_negative() {
        let times = StageTimes::default();
        times.add(Stage::Db, Duration::from_secs(2));
        assert_eq!(times.app(Duration::from_secs(1)), Duration::ZERO);
    }

    #[tokio::test]
    async fn recording_outside_a_request_is_harmless() {
        assert_eq!(timed(Stage::S3, async { 7 }).await, 7);
    }
}
