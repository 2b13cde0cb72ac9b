//! Opens connections and cancels statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout};
use tokio_postgres::{CancelToken, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::DatabaseConfig;
use super::error::{Cause, DatabaseError};
use super::metrics::{self, Discard};

/// How long a connection may take to say goodbye once nobody uses it.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection to the server and what the pool has to know about it.
pub(super) struct Client {
    pub(super) postgres: ClientWrapper,
    /// When it is due to be replaced.
    retire_at: Instant,
    /// Since when nobody uses it.
    pub(super) idle_since: Instant,
    _open: Counted,
}

impl Client {
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        now >= self.retire_at
    }

    /// Closes it; a farewell is sent when the server still listens.
    pub(super) fn discard(self, why: Discard) {
        metrics::discarded(why);
        tracing::debug!(?why, "a database connection is closed");
        drop(self);
    }
}

/// One of the open connections, for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Knows how to reach the server.
pub(super) struct Connector {
    postgres: tokio_postgres::Config,
    tls: MakeRustlsConnect,
    timeout: Duration,
    max_lifetime: Duration,
    /// Open connections: idle, in use, or on their way from one to the other.
    open: Arc<AtomicUsize>,
    /// Woken when a connection ends without having been asked to.
    lost: Arc<Notify>,
}

impl Connector {
    pub(super) fn new(config: DatabaseConfig, lost: Arc<Notify>) -> anyhow::Result<Self> {
        let mut postgres = config.postgres;
        postgres.ssl_mode(config.security.encryption);
        Ok(Self {
            tls: config.security.connector()?,
            postgres,
            timeout: config.connect_timeout,
            max_lifetime: config.limits.max_lifetime,
            open: Arc::default(),
            lost,
        })
    }

    pub(super) fn open_connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Opens a connection, all steps within `DB_CONNECT_TIMEOUT_MS`. The slot is kept until its socket is closed.
    pub(super) async fn connect(&self, slot: OwnedSemaphorePermit) -> Result<Client, DatabaseError> {
        let attempt = timeout(self.timeout, self.postgres.connect(self.tls.clone())).await;
        let (client, connection) = match attempt {
            Ok(Ok(pair)) => pair,
            Ok(Err(error)) => return Err(failed(DatabaseError::from_connect(&error))),
            Err(_elapsed) => {
                return Err(failed(DatabaseError::Unavailable(Cause::new("the server did not let us in in time"))));
            }
        };
        metrics::created();
        // deadpool's wrapper aborts this task when it is dropped, and so lets the other one know; were it to abort that
        // one, the server would get no farewell, and nobody would know when the socket is closed.
        let (held, let_go) = oneshot::channel::<()>();
        let leash = tokio::spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        tokio::spawn(drive(connection, let_go, slot, Arc::clone(&self.lost)));
        let now = Instant::now();
        Ok(Client {
            postgres: ClientWrapper::new(client, leash),
            retire_at: now + shortened(self.max_lifetime),
            idle_since: now,
            _open: Counted::new(&self.open),
        })
    }

    /// Asks the server to cancel what runs on a connection, over a connection of its own as the protocol has it.
    pub(super) async fn cancel(&self, token: CancelToken) {
        let failure = match timeout(self.timeout, token.cancel_query(self.tls.clone())).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => Cause::connection(&error).to_string(),
            Err(_elapsed) => "the server did not take it in time".to_owned(),
        };
        // The statement ends by its own timeout then.
        tracing::warn!(%failure, "a statement could not be cancelled");
    }
}

fn failed(error: DatabaseError) -> DatabaseError {
    metrics::connect_failed();
    error
}

/// Moves bytes until the connection ends: by itself, or because nobody uses it any more.
async fn drive(
    connection: Connection<Socket, <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream>,
    let_go: oneshot::Receiver<()>,
    slot: OwnedSemaphorePermit,
    lost: Arc<Notify>,
) {
    let mut connection = Box::pin(connection);
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        // The goodbye waits for answers still under way, and a silent server gives none.
        _ = let_go => timeout(FAREWELL, &mut connection).await.unwrap_or(Ok(())),
    };
    if let Err(error) = outcome {
        tracing::warn!(cause = %Cause::connection(&error), "a database connection was lost");
    }
    // The socket goes before the slot does: there are never more of the one than of the other.
    drop(connection);
    drop(slot);
    lost.notify_one();
}

/// Up to a tenth off, so that connections opened together do not end together.
fn shortened(lifetime: Duration) -> Duration {
    lifetime.mul_f64(rand::random_range(0.9..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_spread_and_never_longer_than_configured() {
        let lifetime = Duration::from_secs(1_000);
        let lifetimes: Vec<_> = (0..100).map(|_| shortened(lifetime)).collect();
        assert!(lifetimes.iter().all(|l| (lifetime.mul_f64(0.9)..=lifetime).contains(l)));
        assert!(lifetimes.iter().any(|l| *l != lifetimes[0]));
    }
}
