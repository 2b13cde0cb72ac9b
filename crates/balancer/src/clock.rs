//! Monotonic milliseconds that fit into an atomic.

use std::sync::LazyLock;

use tokio::time::Instant;

/// The runtime's clock, which the timers go by: a test that moves it moves both.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds since the process first asked.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}
