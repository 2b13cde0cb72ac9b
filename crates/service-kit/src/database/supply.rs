//! Where the pool's connections come from.
//!
//! deadpool makes a connection only for somebody who waits for it, and has no way to be given one. So spare connections
//! wait here, outside of it: whoever finds no idle connection in the pool is given a spare before a new one is opened.
//! Both together are "the pool" to everybody else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use super::connector::{Client, Connector};
use super::error::{Cause, DatabaseError};
use super::metrics::Discard;

/// Opens connections, never more than the maximum, and keeps those that nobody uses yet.
pub(super) struct Supply {
    pub(super) connector: Connector,
    /// One for each socket, from before it is opened until after it is closed.
    slots: Arc<Semaphore>,
    spares: Mutex<Vec<Client>>,
    closed: AtomicBool,
    /// Woken when a spare is added.
    added: Notify,
    /// Last time that the server let us in.
    last_connect: Mutex<Option<Instant>>,
}

impl Supply {
    pub(super) fn new(connector: Connector, max: usize) -> Self {
        Self {
            connector,
            slots: Arc::new(Semaphore::new(max)),
            spares: Mutex::default(),
            closed: AtomicBool::new(false),
            added: Notify::new(),
            last_connect: Mutex::default(),
        }
    }

    /// Room for one more connection, when there is any.
    pub(super) fn free_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Closes the spares, and from now on whatever would become one. Ends when all sockets are closed.
    pub(super) async fn close(&self, max: usize) {
        self.closed.store(true, Ordering::SeqCst);
        for spare in self.take_spares(|_| true) {
            spare.discard(Discard::Closing);
        }
        let all = u32::try_from(max).unwrap_or(u32::MAX);
        let _ = self.slots.acquire_many(all).await;
    }

    /// Opens a spare connection.
    pub(super) async fn add_spare(self: &Arc<Self>, slot: OwnedSemaphorePermit) -> Result<(), DatabaseError> {
        let client = self.open(slot).await?;
        self.keep(client);
        Ok(())
    }

    /// Gives back a part of the spares, by a rule.
    pub(super) fn take_spares(&self, mut taken: impl FnMut(&mut Client) -> bool) -> Vec<Client> {
        self.spares().extract_if(.., |client| taken(client)).collect()
    }

    pub(super) fn count_spares(&self, counted: impl Fn(&Client) -> bool) -> usize {
        self.spares().iter().filter(|client| counted(client)).count()
    }

    /// Whether a connection has been opened since then.
    pub(super) fn connected_since(&self, then: Instant) -> bool {
        self.last_connect.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|last| last > then)
    }

    async fn open(&self, slot: OwnedSemaphorePermit) -> Result<Client, DatabaseError> {
        let client = self.connector.connect(slot).await?;
        *self.last_connect.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(client)
    }

    fn keep(&self, client: Client) {
        let mut spares = self.spares();
        if self.closed.load(Ordering::SeqCst) {
            return client.discard(Discard::Closing);
        }
        spares.push(client);
        drop(spares);
        self.added.notify_one();
    }

    /// The newest spare that still works.
    fn spare(&self) -> Option<Client> {
        let mut spares = self.spares();
        while let Some(client) = spares.pop() {
            if !client.postgres.is_closed() {
                return Some(client);
            }
            client.discard(Discard::Broken);
        }
        None
    }

    fn spares(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The supply as deadpool sees it.
#[derive(Clone)]
pub(super) struct Source(pub(super) Arc<Supply>);

impl Manager for Source {
    type Type = Client;
    type Error = DatabaseError;

    /// A spare, else a new connection. A new one that its caller did not wait for becomes a spare: opening it took the
    /// server as long as it would take for the next.
    async fn create(&self) -> Result<Client, DatabaseError> {
        let slot = loop {
            // Listening starts before looking, so that no spare is missed in between.
            let mut added = std::pin::pin!(self.0.added.notified());
            added.as_mut().enable();
            if let Some(spare) = self.0.spare() {
                return Ok(spare);
            }
            tokio::select! {
                () = added => {}
                slot = Arc::clone(&self.0.slots).acquire_owned() => match slot {
                    Ok(slot) => break slot,
                    Err(_closed) => return Err(DatabaseError::Unavailable(Cause::new("the pool is closed"))),
                },
            }
        };
        let (give, receive) = oneshot::channel();
        let supply = Arc::clone(&self.0);
        tokio::spawn(async move {
            if let Err(Ok(unwanted)) = give.send(supply.open(slot).await) {
                supply.keep(unwanted);
            }
        });
        receive.await.unwrap_or_else(|_| Err(DatabaseError::Unavailable(Cause::new("the task is stopping"))))
    }

    async fn recycle(&self, client: &mut Client, _: &Metrics) -> RecycleResult<DatabaseError> {
        // No question to the server: it would cost every request a round trip, and prove nothing about the next one.
        if client.postgres.is_closed() { Err(RecycleError::message("closed")) } else { Ok(()) }
    }
}
