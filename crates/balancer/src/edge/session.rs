//! The state of one client connection, shared by its socket, the request in progress and the watchdog. All of them run
//! in the connection's own task; only the orders to finish or to cut come from outside.

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use http::{HeaderValue, StatusCode};

use crate::clock::now_ms;

/// What is remembered of a head that is still arriving; as much as a head may have.
const HEAD_COPY_MAX_BYTES: usize = super::connection::HEAD_MAX_BYTES;

/// What an idle connection keeps allocated for the next copy.
const HEAD_COPY_KEPT_BYTES: usize = 4 * 1024;

/// Where a connection stands between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// New, or everything of the last answer is on its way: the next head is awaited.
    Idle,
    /// A request is being served, and no part of its answer has been sent.
    Waiting,
    /// The answer is being sent.
    Responding,
    /// The answer is complete but not flushed.
    Ending,
}

/// What the watchdog found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing yet; look again after this time.
    Wait(Duration),
    /// No request within the idle timeout.
    CloseIdle,
    /// Part of a head, and not the rest of it within the idle timeout.
    HeadTimeout,
    /// A request is stuck: it must answer with what it knows.
    Expire,
    /// An answer is stuck.
    Cut,
}

/// What somebody outside wants of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Order {
    None,
    /// Finish the request in progress, then close.
    Finish,
    /// Close.
    Cut,
}

/// The state of one client connection.
#[derive(Debug)]
pub(crate) struct Session {
    peer: HeaderValue,
    over_capacity: bool,
    phase: AtomicU8,
    /// When the connection became idle or, in a request, bytes last moved; see [`now_ms`].
    moved_ms: AtomicU64,
    expired: AtomicBool,
    unread: AtomicBool,
    broken: AtomicBool,
    refused: AtomicU16,
    head: Mutex<Vec<u8>>,
    order: AtomicU8,
    waker: AtomicWaker,
}

impl Session {
    /// `over_capacity`: the connection is one too many, and is told so.
    pub(crate) fn new(peer: IpAddr, over_capacity: bool) -> Self {
        let text = peer.to_canonical().to_string();
        Self {
            // An address is visible ASCII.
            peer: HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown")),
            over_capacity,
            phase: AtomicU8::new(Phase::Idle as u8),
            moved_ms: AtomicU64::new(now_ms()),
            expired: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            refused: AtomicU16::new(0),
            head: Mutex::new(Vec::new()),
            order: AtomicU8::new(Order::None as u8),
            waker: AtomicWaker::new(),
        }
    }

    /// The client's address as an `X-Forwarded-For` entry.
    pub(crate) fn peer(&self) -> &HeaderValue {
        &self.peer
    }

    pub(crate) fn is_over_capacity(&self) -> bool {
        self.over_capacity
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Waiting,
            2 => Phase::Responding,
            _ => Phase::Ending,
        }
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Bytes moved, on this connection or on the target's that serves it.
    pub(crate) fn moved(&self) {
        self.moved_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// A head is complete.
    pub(crate) fn begin(&self) {
        self.expired.store(false, Ordering::Relaxed);
        self.unread.store(false, Ordering::Relaxed);
        self.enter(Phase::Waiting);
        self.moved();
    }

    /// The head of the answer is handed over.
    pub(crate) fn respond(&self) {
        self.enter(Phase::Responding);
    }

    /// The last byte of the answer is handed over.
    pub(crate) fn end(&self) {
        self.enter(Phase::Ending);
    }

    /// Everything that was handed over is with the kernel.
    pub(crate) fn flushed(&self) {
        if self.phase() == Phase::Ending {
            let mut head = self.lock_head();
            head.clear();
            // A large body leaves a large copy behind its head.
            head.shrink_to(HEAD_COPY_KEPT_BYTES);
            self.enter(Phase::Idle);
            self.moved();
        }
    }

    /// Keeps a copy of the head that is arriving: hyper hides from a service what it refuses or repairs.
    pub(crate) fn saw_head_bytes(&self, bytes: &[u8]) {
        let mut head = self.lock_head();
        let room = HEAD_COPY_MAX_BYTES.saturating_sub(head.len());
        head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Looks at the copy of the head. It misses what a pipelining client sent together with an earlier request.
    pub(crate) fn with_head<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        look(&self.lock_head())
    }

    fn lock_head(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request's body was dropped before its end: its remaining bytes may still be on their way.
    pub(crate) fn left_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// The answer cannot be completed: the client must not take what it has for all of it.
    pub(crate) fn break_off(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// hyper has refused a head with this status.
    pub(crate) fn refuse(&self, status: StatusCode) {
        self.refused.store(status.as_u16(), Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) -> Option<StatusCode> {
        StatusCode::from_u16(self.refused.load(Ordering::Relaxed)).ok()
    }

    /// The watchdog has lost its patience with the request in progress.
    pub(crate) fn expire(&self) {
        self.expired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    /// Judges the connection by its phase. A head must be complete within the timeout however steadily its bytes come;
    /// everything after it may take as long as bytes move.
    pub(crate) fn verdict(&self, idle_timeout: Duration) -> Verdict {
        let quiet = Duration::from_millis(now_ms().saturating_sub(self.moved_ms.load(Ordering::Relaxed)));
        if quiet < idle_timeout {
            return Verdict::Wait(idle_timeout.saturating_sub(quiet));
        }
        match self.phase() {
            Phase::Idle if self.lock_head().is_empty() => Verdict::CloseIdle,
            Phase::Idle => Verdict::HeadTimeout,
            // Told already, but busy connecting to a target, which has a deadline of its own.
            Phase::Waiting if self.is_expired() => Verdict::Wait(idle_timeout),
            Phase::Waiting => Verdict::Expire,
            Phase::Responding | Phase::Ending => Verdict::Cut,
        }
    }

    /// Gives an order from outside and wakes the connection's task.
    pub(crate) fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.waker.wake();
    }

    /// Waits for the order to close.
    pub(crate) async fn cut(&self) {
        poll_fn(|cx| if self.order(cx.waker()) == Order::Cut { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// The strongest order so far; `waker` is woken by the next one.
    pub(crate) fn order(&self, waker: &Waker) -> Order {
        self.waker.register(waker);
        match self.order.load(Ordering::Acquire) {
            0 => Order::None,
            1 => Order::Finish,
            _ => Order::Cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session::new(IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1]), false)
    }

    #[test]
    fn a_mapped_address_is_shown_as_the_address_it_maps() {
        assert_eq!(session().peer(), "127.0.0.1");
    }

    #[test]
    fn each_phase_has_its_own_verdict_once_the_time_is_over() {
        let session = session();
        let judge = || session.verdict(Duration::ZERO);
        assert_eq!(judge(), Verdict::CloseIdle);
        session.saw_head_bytes(b"GET / HT");
        assert_eq!(judge(), Verdict::HeadTimeout);
        session.begin();
        assert_eq!(judge(), Verdict::Expire);
        session.respond();
        assert_eq!(judge(), Verdict::Cut);
        session.end();
        assert_eq!(judge(), Verdict::Cut);
        session.flushed();
        assert_eq!(judge(), Verdict::CloseIdle, "the copy of the head is gone");
        assert!(matches!(session.verdict(Duration::from_mins(1)), Verdict::Wait(_)));
    }

    #[test]
    fn only_the_end_of_an_answer_makes_a_connection_idle() {
        let session = session();
        session.begin();
        session.flushed();
        assert_eq!(session.phase(), Phase::Waiting);
        session.respond();
        session.flushed();
        assert_eq!(session.phase(), Phase::Responding);
        session.end();
        session.flushed();
        assert_eq!(session.phase(), Phase::Idle);
    }

    #[test]
    fn orders_only_get_stronger() {
        let session = session();
        session.give(Order::Cut);
        session.give(Order::Finish);
        assert_eq!(session.order(Waker::noop()), Order::Cut);
    }

    #[test]
    fn the_copy_of_a_head_is_bounded() {
        let session = session();
        session.saw_head_bytes(&vec![b'a'; HEAD_COPY_MAX_BYTES]);
        session.saw_head_bytes(b"b");
        session.with_head(|head| assert_eq!(head.len(), HEAD_COPY_MAX_BYTES));
    }
}
