//! Waiting for what happens beside the request that a test has just made.

use std::time::Duration;

/// How often is asked.
const INTERVAL: Duration = Duration::from_millis(20);

/// A condition that has not come true by then never will, however slow the machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Asks again and again until it is so.
///
/// # Panics
/// With `what` in the message when it is not so after a minute.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("never: {what}"));
}
