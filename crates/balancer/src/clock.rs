//! Monotonic milliseconds that fit into an atomic.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// When the process first asked.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);
/// What it is called: above zero, because a runtime whose clock a test has stopped may still stand before it.
const START_MS: u64 = 1 << 40;

/// Milliseconds of the runtime's clock, which its timers go by as well: a test that moves it moves both.
pub(crate) fn now_ms() -> u64 {
    let now = tokio::time::Instant::now().into_std();
    match now.checked_duration_since(*START) {
        Some(since) => START_MS + millis(since),
        None => START_MS - millis(START.saturating_duration_since(now)).min(START_MS),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX >> 1)
}
