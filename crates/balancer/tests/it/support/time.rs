//! Time that a test moves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::PATIENCE;

/// As long as this lives, time stands still but for [`Self::pass`].
///
/// Paused time alone would not do: tokio moves it on to the next timer whenever every task waits, and a task that waits for a
/// socket does. That it does not while a blocking task runs is made use of here; the task ends with this value, or, where a
/// test hangs, in the end by itself, so that time goes on and the test's own patience is over.
pub(crate) struct StandingTime {
    _running: mpsc::Sender<()>,
    /// Whether the test waited until time went on by itself, instead of letting it pass.
    hung: Arc<AtomicBool>,
}

impl Drop for StandingTime {
    fn drop(&mut self) {
        let hung = self.hung.load(Ordering::SeqCst) && !std::thread::panicking();
        assert!(!hung, "something waited for time that the test did not let pass");
    }
}

impl StandingTime {
    /// Stops the time of the test's runtime.
    pub(crate) fn new() -> Self {
        let (running, ended) = mpsc::channel::<()>();
        let hung = Arc::new(AtomicBool::new(false));
        let noticed = hung.clone();
        tokio::task::spawn_blocking(move || {
            let ended = ended.recv_timeout(PATIENCE);
            noticed.store(ended == Err(mpsc::RecvTimeoutError::Timeout), Ordering::SeqCst);
        });
        tokio::time::pause();
        Self { _running: running, hung }
    }

    /// Lets this much time pass at once, and a little more, so that everything happens that was to happen by then: timers go by
    /// whole milliseconds and are rounded up.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::advance(time + Duration::from_millis(5)).await;
    }
}

/// Waits until nobody in the test's runtime has anything left to do: then, and only then, paused time goes on by itself.
pub(crate) async fn quiet() {
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(1)).await;
    tokio::time::resume();
}
