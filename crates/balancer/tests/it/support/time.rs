//! Time that a test moves.

use std::sync::mpsc;
use std::time::Duration;

use super::PATIENCE;

/// As long as this lives, time stands still but for [`Self::pass`].
///
/// Paused time alone would not do: tokio moves it on to the next timer whenever every task waits, and a task that waits for a
/// socket does. That it does not while a blocking task runs is made use of here; the task ends with this value, or, where a
/// test hangs, in the end by itself, so that time goes on and the test's own patience is over.
pub(crate) struct StandingTime {
    _running: mpsc::Sender<()>,
}

impl StandingTime {
    /// Stops the time of the test's runtime.
    pub(crate) fn new() -> Self {
        let (running, ended) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || ended.recv_timeout(PATIENCE));
        tokio::time::pause();
        Self { _running: running }
    }

    /// Lets this much time pass at once, and everything happen that was to happen by then.
    #[expect(clippy::unused_self, reason = "only where time stands still does it pass like this")]
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::advance(time).await;
    }
}

/// Waits until nobody in the test's runtime has anything left to do: then, and only then, paused time goes on by itself.
pub(crate) async fn quiet() {
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(1)).await;
    tokio::time::resume();
}
