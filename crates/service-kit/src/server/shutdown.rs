//! When to stop: signals, and the lifeline to a parent.

use tokio_util::sync::CancellationToken;

use crate::middleware::Draining;

/// A request to stop. The first asks politely, the second at once.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    requested: CancellationToken,
    hurried: CancellationToken,
    draining: Draining,
}

impl Shutdown {
    /// A request that raises `draining`, the flag that `/ready` and the middleware look at.
    #[must_use]
    pub fn new(draining: Draining) -> Self {
        Self { draining, ..Self::default() }
    }

    /// Asks to stop; asked twice, at once.
    pub fn begin(&self) {
        if self.requested.is_cancelled() {
            self.hurried.cancel();
        }
        self.requested.cancel();
    }

    /// Waits for the first request.
    pub async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Waits for the second one.
    pub async fn hurried(&self) {
        self.hurried.cancelled().await;
    }

    pub(crate) fn draining(&self) -> &Draining {
        &self.draining
    }

    /// Stops on SIGTERM, SIGINT and SIGHUP. Handlers are installed here, so that a process that runs as PID 1, for which
    /// the kernel knows no default action, reacts too.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    #[cfg(unix)]
    pub fn on_signals(&self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
            let mut signals = signal(kind)?;
            let shutdown = self.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    tracing::info!("stop signal received");
                    shutdown.begin();
                }
            });
        }
        Ok(())
    }

    /// Stops when standard input ends: it is a pipe whose other end the parent holds, so that a task never outlives it,
    /// not even when the parent is killed.
    pub fn on_lifeline(&self) {
        let shutdown = self.clone();
        // A thread, not the runtime's blocking pool: a read that never returns would keep the runtime from ending.
        std::thread::spawn(move || {
            use std::io::Read;
            let mut input = std::io::stdin().lock();
            let mut buffer = [0; 64];
            while matches!(input.read(&mut buffer), Ok(read) if read > 0) {}
            shutdown.begin();
        });
    }
}
