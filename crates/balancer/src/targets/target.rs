//! One registered target.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::link::Link;
use super::meters::Meters;
use super::pool::Pool;
use super::state::{Reason, TargetSnapshot, TargetState};
use super::upstream::{ConnectError, Upstream};
use crate::config::TargetConnections;
use crate::registry::Registry;

/// What a target is judged to be, and why.
pub(super) type Status = (TargetState, Option<Reason>);

/// One registered target.
#[derive(Debug)]
pub(crate) struct Target {
    address: SocketAddr,
    host: HeaderValue,
    status: Mutex<Status>,
    draining: AtomicBool,
    cut: AtomicBool,
    /// Woken when a draining target has finished its last request.
    drained: Notify,
    /// Ends what runs for this target in the background.
    retired: CancellationToken,
    pool: Pool,
    links: Arc<Registry<Link>>,
    connect_timeout: Duration,
    outstanding: AtomicUsize,
    requests: AtomicU64,
    errors: AtomicU64,
    connect_failures: AtomicU64,
    meters: Meters,
}

impl Target {
    pub(super) fn new(
        group: &str,
        address: SocketAddr,
        status: Status,
        connections: TargetConnections,
        retired: CancellationToken,
    ) -> Arc<Self> {
        let text = address.to_string();
        Arc::new(Self {
            address,
            // An address is visible ASCII.
            host: HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("localhost")),
            status: Mutex::new(status),
            draining: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            drained: Notify::new(),
            retired,
            pool: Pool::new(connections.max_idle, connections.idle_timeout),
            links: Registry::new(),
            connect_timeout: connections.connect_timeout,
            outstanding: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            connect_failures: AtomicU64::new(0),
            meters: Meters::new(group, &text),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a `Host`.
    pub(crate) fn host(&self) -> &HeaderValue {
        &self.host
    }

    pub(super) fn status(&self) -> Status {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status before.
    pub(super) fn set_status(&self, status: Status) -> Status {
        std::mem::replace(&mut *self.status.lock().unwrap_or_else(PoisonError::into_inner), status)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Relaxed)
    }

    /// A connection that nothing has been sent on since it was made or became idle.
    pub(crate) async fn connection(&self) -> Result<Box<Upstream>, ConnectError> {
        if let Some(upstream) = self.pool.take() {
            return Ok(upstream);
        }
        match Upstream::connect(self.address, self.connect_timeout, &self.links).await {
            Ok(upstream) => {
                self.meters.connected();
                Ok(Box::new(upstream))
            }
            Err(error) => {
                self.connect_failures.fetch_add(1, Ordering::Relaxed);
                self.meters.failed(match error {
                    ConnectError::Refused => "refused",
                    ConnectError::TimedOut => "timeout",
                    ConnectError::Local => "local",
                });
                Err(error)
            }
        }
    }

    /// Takes a free connection back.
    pub(crate) fn keep(&self, upstream: Box<Upstream>) {
        if !self.is_draining() {
            self.pool.put(upstream);
        }
    }

    /// Closes connections that have been idle for too long.
    pub(super) fn expire_idle(&self) {
        self.pool.expire();
    }

    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The request was not sent after all.
    pub(crate) fn uncount_request(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn count_answer(&self, status: StatusCode, after: Duration) {
        if status.is_server_error() {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        self.meters.answered(status, after);
    }

    /// The connection ended before the head of an answer.
    pub(crate) fn count_broken(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.meters.failed("broken");
    }

    /// The target did not answer in time.
    pub(crate) fn count_silent(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.meters.failed("silent");
    }

    /// The connection ended within an answer.
    pub(crate) fn count_broken_answer(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.meters.failed("truncated");
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// From now on it gets no new requests, and is not checked.
    pub(super) fn begin_draining(&self) {
        self.draining.store(true, Ordering::Release);
        self.set_status((TargetState::Draining, Some(Reason::DeregistrationInProgress)));
        self.retired.cancel();
        self.pool.clear();
    }

    /// Waits until it has no requests left.
    pub(super) async fn drained(&self) {
        loop {
            let last_finished = self.drained.notified();
            if self.outstanding() == 0 {
                return;
            }
            last_finished.await;
        }
    }

    /// Ends the connections of the requests that it still has.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.links.for_each(Link::cut);
        self.pool.clear();
    }

    /// Whether its connections were ended before it had finished.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    pub(super) fn snapshot(&self) -> TargetSnapshot {
        let (state, reason) = self.status();
        TargetSnapshot {
            address: self.address,
            state,
            reason,
            outstanding: self.outstanding(),
            requests: self.requests.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            connect_failures: self.connect_failures.load(Ordering::Relaxed),
            idle_connections: self.pool.len(),
        }
    }
}

/// A target chosen for one request: counted as outstanding until the request is over.
#[derive(Debug)]
pub(crate) struct Lease {
    target: Arc<Target>,
    held: bool,
}

impl Lease {
    pub(super) fn new(target: Arc<Target>) -> Self {
        target.outstanding.fetch_add(1, Ordering::AcqRel);
        Self { target, held: true }
    }

    pub(crate) fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// The target has done its part; what is left of the answer is the balancer's to send.
    pub(crate) fn release(&mut self) {
        if std::mem::take(&mut self.held) && self.target.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Hardly ever is anybody waiting; if so, it is one.
            if self.target.is_draining() {
                self.target.drained.notify_one();
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}
