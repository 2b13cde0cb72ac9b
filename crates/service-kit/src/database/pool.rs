//! The pool: who gets a connection, and for how long they wait.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deadpool::managed::{Object, PoolError, QueueMode};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::DatabaseConfig;
use super::config::Limits;
use super::connection::Connection;
use super::connector::Connector;
use super::error::{Cause, DatabaseError};
use super::keeper;
use super::metrics::{self, Discard};
use super::supply::{Source, Supply};
use crate::stages::{self, Stage};

/// What deadpool hands out.
pub(super) type Held = Object<Source>;

/// How full a pool is, in connections and in those who wait for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// `DB_POOL_MAX`.
    pub max: usize,
    /// `DB_POOL_MIN`.
    pub min: usize,
    /// Connections that requests hold.
    pub in_use: usize,
    /// Open connections that nobody holds.
    pub idle: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
}

impl PoolStatus {
    /// All open connections.
    #[must_use]
    pub fn size(&self) -> usize {
        self.in_use + self.idle
    }
}

/// Connections to PostgreSQL, shared by all requests of a task; clones are the same pool.
#[derive(Clone)]
pub struct Pool(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) limits: Limits,
    pub(super) objects: deadpool::managed::Pool<Source>,
    pub(super) supply: Arc<Supply>,
    /// Wakes the keeper.
    pub(super) attention: Arc<Notify>,
    /// Told after each round of the keeper.
    pub(super) tended: Notify,
    keeper_started: AtomicBool,
    /// The keeper has done what it can once.
    pub(super) settled: AtomicBool,
    in_use: AtomicUsize,
    waiting: AtomicUsize,
    started: Instant,
    /// Milliseconds from `started` to the last statement that the server answered, plus one; 0 when there is none.
    last_answer: AtomicU64,
}

impl Pool {
    /// A pool that has not opened anything yet. [`Pool::start_keeper`] starts to open and to keep connections.
    ///
    /// # Errors
    /// When the platform's root certificates are needed and cannot be loaded.
    pub fn new(config: DatabaseConfig) -> anyhow::Result<Self> {
        metrics::describe();
        let limits = config.limits;
        metrics::show_limits(limits.min, limits.max);
        let attention = Arc::new(Notify::new());
        let supply = Arc::new(Supply::new(Connector::new(config, Arc::clone(&attention))?, limits.max));
        let objects = deadpool::managed::Pool::builder(Source(Arc::clone(&supply)))
            .max_size(limits.max)
            // The last one returned goes out first, so that those a burst left behind become idle and are closed.
            .queue_mode(QueueMode::Lifo)
            .build()?;
        Ok(Self(Arc::new(Inner {
            limits,
            objects,
            supply,
            attention,
            tended: Notify::new(),
            keeper_started: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            in_use: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            started: Instant::now(),
            last_answer: AtomicU64::new(0),
        })))
    }

    /// Starts the task that opens `DB_POOL_MIN` connections and keeps the pool in shape until the pool is dropped or closed.
    /// Needs a tokio runtime; calling it again does nothing.
    pub fn start_keeper(&self) {
        if !self.0.keeper_started.swap(true, Ordering::Relaxed) {
            tokio::spawn(keeper::run(Arc::downgrade(&self.0), Arc::clone(&self.0.attention)));
        }
    }

    /// Waits until `DB_POOL_MIN` connections are open, at most for the given time, and says whether they are. Starts the
    /// keeper.
    pub async fn warm(&self, within: Duration) -> bool {
        self.start_keeper();
        let warm = async {
            loop {
                let mut tended = std::pin::pin!(self.0.tended.notified());
                tended.as_mut().enable();
                if self.0.supply.connector.open_connections() >= self.0.limits.min {
                    return;
                }
                tended.await;
            }
        };
        timeout(within, warm).await.is_ok()
    }

    /// A connection for one request, waiting at most `DB_POOL_ACQUIRE_TIMEOUT_MS`. The wait is stage `pool`.
    ///
    /// # Errors
    /// [`DatabaseError::AcquireTimeout`] when all stay in use, [`DatabaseError::Unavailable`] when none can be opened.
    pub async fn acquire(&self) -> Result<Connection, DatabaseError> {
        let started = Instant::now();
        stages::delayed(Stage::Pool).await;
        let outcome = self.acquire_within(self.0.limits.acquire_timeout).await;
        let wait = started.elapsed();
        stages::record(Stage::Pool, wait);
        metrics::waited(wait);
        if matches!(outcome, Err(DatabaseError::AcquireTimeout)) {
            metrics::acquire_timed_out();
        }
        outcome
    }

    /// The same outside of requests: nothing is measured.
    pub(super) async fn acquire_within(&self, patience: Duration) -> Result<Connection, DatabaseError> {
        let attempt = {
            let _waiting = Waiting::new(self);
            timeout(patience, self.0.objects.get()).await
        };
        let object = match attempt {
            Ok(Ok(object)) => object,
            Ok(Err(PoolError::Backend(error))) => return Err(error),
            Ok(Err(PoolError::Closed)) => return Err(DatabaseError::Unavailable(Cause::new("the pool is closed"))),
            Ok(Err(error)) => return Err(DatabaseError::Unavailable(Cause::new(error.to_string()))),
            // Busy only when everything is in use; else somebody waited for a connection that could not be opened.
            Err(_elapsed) if self.status().in_use >= self.0.limits.max => return Err(DatabaseError::AcquireTimeout),
            Err(_elapsed) => {
                return Err(DatabaseError::Unavailable(Cause::new("no connection could be opened in time")));
            }
        };
        Ok(Connection::new(self.clone(), object))
    }

    /// How full the pool is.
    #[must_use]
    pub fn status(&self) -> PoolStatus {
        self.0.status()
    }

    /// Closes the pool: nobody gets a connection any more, those in use are closed when they come back. Ends when all are
    /// closed, or after the given time; says which.
    pub async fn close(&self, within: Duration) -> bool {
        self.0.objects.close();
        self.0.attention.notify_one();
        timeout(within, self.0.supply.close(self.0.limits.max)).await.is_ok()
    }
}

impl Inner {
    pub(super) fn status(&self) -> PoolStatus {
        let in_use = self.in_use.load(Ordering::Relaxed);
        PoolStatus {
            max: self.limits.max,
            min: self.limits.min,
            in_use,
            idle: self.supply.connector.open_connections().saturating_sub(in_use),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }

    /// Whether the first connections are still being opened.
    pub(super) fn is_starting(&self) -> bool {
        self.keeper_started.load(Ordering::Relaxed) && !self.settled.load(Ordering::Relaxed)
    }

    /// The server has answered a statement, be it with an error.
    pub(super) fn answered(&self) {
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.last_answer.store(millis + 1, Ordering::Relaxed);
    }

    /// Whether the server has answered a statement within that time.
    pub(super) fn answered_within(&self, time: Duration) -> bool {
        match self.last_answer.load(Ordering::Relaxed) {
            0 => false,
            millis => self.started.elapsed() < time + Duration::from_millis(millis - 1),
        }
    }

    /// How long an answer may take: the server ends a statement by itself, so more means that it is gone.
    pub(super) fn reply_timeout(&self) -> Duration {
        const TRANSPORT: Duration = Duration::from_secs(3);
        self.limits.statement_timeout + TRANSPORT
    }

    /// Closes a connection that came from deadpool, and has the keeper look after the gap.
    pub(super) fn discard(&self, object: Held, why: Discard) {
        Held::take(object).discard(why);
        self.attention.notify_one();
    }

    /// Takes back a connection that is in order.
    pub(super) fn take_back(&self, mut object: Held) {
        let now = Instant::now();
        if object.is_expired(now) {
            // The keeper opens its successor first and then closes it, when it finds it idle. Where it never does, there
            // is enough else to do that one less is no matter.
            let spare = self.supply.connector.open_connections() > self.limits.min;
            if spare || self.limits.min == self.limits.max {
                return self.discard(object, Discard::Lifetime);
            }
            self.attention.notify_one();
        }
        object.idle_since = now;
        drop(object);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The keeper holds no pool while it sleeps; it sees that there is none any more.
        self.attention.notify_one();
    }
}

/// Counts somebody who waits.
struct Waiting<'p>(&'p Pool);

impl<'p> Waiting<'p> {
    fn new(pool: &'p Pool) -> Self {
        metrics::show_waiters(pool.0.waiting.fetch_add(1, Ordering::Relaxed) + 1);
        Self(pool)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        metrics::show_waiters(self.0.0.waiting.fetch_sub(1, Ordering::Relaxed) - 1);
    }
}

/// Counts a connection that is in use.
pub(super) struct InUse(Weak<Inner>);

impl InUse {
    pub(super) fn new(pool: &Pool) -> Self {
        pool.0.in_use.fetch_add(1, Ordering::Relaxed);
        metrics::show(&pool.status());
        Self(Arc::downgrade(&pool.0))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.in_use.fetch_sub(1, Ordering::Relaxed);
            metrics::show(&inner.status());
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.status()).finish()
    }
}
