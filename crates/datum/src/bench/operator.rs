//! Whoever sits in front of a run: the first Ctrl-C ends it early with a valid result, the second one at once.

use std::future::Future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::terminal::say;

/// The operator's wishes.
#[derive(Debug, Clone, Default)]
pub(super) struct Operator {
    /// Come to an end, keep what was measured.
    stop: CancellationToken,
    /// End now.
    abort: CancellationToken,
}

/// Listens as long as it lives.
pub(super) struct Listening {
    _task: AbortOnDropHandle<()>,
}

impl Operator {
    /// Listens for SIGINT, SIGTERM and SIGHUP.
    pub(super) fn listen(&self) -> io::Result<Listening> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let operator = self.clone();
        let task = tokio::spawn(async move {
            loop {
                let name = tokio::select! {
                    _ = interrupt.recv() => "Ctrl-C",
                    _ = terminate.recv() => "SIGTERM",
                    _ = hangup.recv() => "SIGHUP",
                };
                operator.told(name);
            }
        });
        Ok(Listening { _task: AbortOnDropHandle::new(task) })
    }

    fn told(&self, signal: &str) {
        if self.stop.is_cancelled() {
            self.abort.cancel();
        } else {
            say(format_args!("\n{signal}: ending early, what was measured is kept; once more ends at once"));
            self.stop.cancel();
        }
    }

    /// Cancelled when the run should come to an end.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Whether the run should come to an end.
    pub(super) fn wants_stop(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Does `work`, and drops it half-done when the operator wants to end at once.
    pub(super) async fn unless_aborted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.abort.run_until_cancelled(work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_signal_ends_early_and_the_second_at_once() {
        let operator = Operator::default();
        assert!(!operator.wants_stop());
        operator.told("Ctrl-C");
        assert!(operator.wants_stop());
        assert_eq!(operator.unless_aborted(async { 1 }).await, Some(1));
        operator.told("Ctrl-C");
        assert_eq!(operator.unless_aborted(std::future::pending::<()>()).await, None);
    }
}
