//! Removing what has expired, a little at a time, beside the requests.

use std::time::Duration;

use service_kit::clock::SharedClock;
use service_kit::database::{DatabaseError, Pool};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::queries::{sessions, throttle};

/// Rows of a table that one statement removes: short enough to be nobody's wait.
const BATCH_ROWS: i64 = 500;

/// Expired sessions are kept this long, so that a logout with one of their tokens still is no error.
const KEEP_EXPIRED: Duration = Duration::from_hours(24);

/// Sweeps every `interval`, for ever. Several tasks may do so at once: each skips the rows that another is at.
pub(crate) async fn run(pool: Pool, clock: SharedClock, interval: Duration) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match sweep(&pool, &clock).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "expired rows removed"),
            Err(error) => tracing::warn!(%error, "expired rows stay until the next sweep"),
        }
    }
}

/// Removes every row that has expired by now; returns how many. A connection is held for one batch at a time.
pub async fn sweep(pool: &Pool, clock: &SharedClock) -> Result<u64, DatabaseError> {
    let now = clock.now();
    let mut total = 0;
    loop {
        let mut connection = pool.acquire().await?;
        let failures = throttle::delete_passed(&mut connection, now, BATCH_ROWS).await?;
        let sessions = sessions::delete_expired(&mut connection, now - KEEP_EXPIRED, BATCH_ROWS).await?;
        if failures + sessions == 0 {
            return Ok(total);
        }
        total += failures + sessions;
    }
}
