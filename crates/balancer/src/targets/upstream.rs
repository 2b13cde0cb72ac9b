//! One connection to a target.
//!
//! hyper wants its connection driven by a task of its own; here whoever uses the connection drives it, so that a request
//! costs no task and no wake-up between tasks. Nobody drives an idle one: whether it has ended is found out by
//! [`Upstream::revive`] before its next use.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use nix::errno::Errno;
use tokio::net::TcpStream;

use super::link::{Link, TargetStream};
use crate::edge::{BodyState, RequestBody};
use crate::registry::{Entry, Registry};

/// The head of an answer, and the most that is read ahead of it.
const BUFFER_MAX_BYTES: usize = 64 * 1024;

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The target does not want it, or is not there.
    Refused,
    /// No answer in time.
    TimedOut,
    /// This side is out of ports or file descriptors.
    Local,
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        let local = [Errno::EMFILE as i32, Errno::ENFILE as i32, Errno::ENOBUFS as i32, Errno::ENOMEM as i32];
        match error.kind() {
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::AddrNotAvailable => Self::Local,
            _ if error.raw_os_error().is_some_and(|code| local.contains(&code)) => Self::Local,
            _ => Self::Refused,
        }
    }
}

/// One connection to a target.
#[derive(Debug)]
pub(crate) struct Upstream {
    sender: SendRequest<RequestBody>,
    /// `None` once the connection has ended.
    connection: Option<Connection<TokioIo<TargetStream>, RequestBody>>,
    link: Arc<Link>,
    /// The body of the request in progress.
    body: Option<Arc<BodyState>>,
    /// When it became idle, see [`crate::clock::now_ms`].
    pub(super) idle_since_ms: u64,
    kept: bool,
    _entry: Entry<Link>,
}

impl Upstream {
    pub(super) async fn connect(
        address: SocketAddr,
        timeout: Duration,
        links: &Arc<Registry<Link>>,
    ) -> Result<Self, ConnectError> {
        let stream = match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
            Ok(connected) => connected?,
            Err(_elapsed) => return Err(ConnectError::TimedOut),
        };
        let _ = stream.set_nodelay(true);
        let link = Arc::new(Link::default());
        let entry = links.enter(&link);
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(BUFFER_MAX_BYTES)
            .max_header_size(BUFFER_MAX_BYTES)
            .handshake(TokioIo::new(TargetStream::new(stream, link.clone())))
            .await
            .map_err(|_| ConnectError::Refused)?;
        Ok(Self {
            sender,
            connection: Some(connection),
            link,
            body: None,
            idle_since_ms: 0,
            kept: false,
            _entry: entry,
        })
    }

    /// Whether an idle connection is still good for a request.
    pub(super) fn revive(&mut self) -> bool {
        self.link.probe(true);
        // Nothing can wake an idle connection to any purpose: the next request polls it again.
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.link.probe(false);
        self.is_free()
    }

    /// Whether the last answer has been read whole, the last request sent whole, and both sides keep the connection open.
    pub(crate) fn is_free(&self) -> bool {
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Sends a request; the answer comes while the connection is driven. On an error the request is in it if and only if
    /// hyper had not begun to write it.
    pub(crate) fn send(
        &mut self,
        request: Request<RequestBody>,
        body: Option<Arc<BodyState>>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>> + use<> {
        self.body = body;
        self.sender.try_send_request(request)
    }

    /// Writes and reads as much as there is. `true` when bytes have moved.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(cx).is_ready()
        {
            self.connection = None;
        }
        if self.link.is_deaf()
            && let Some(body) = &self.body
        {
            body.hold();
        }
        self.link.has_moved()
    }

    /// Whether it has served a request before.
    pub(crate) fn was_kept(&self) -> bool {
        self.kept
    }

    /// The exchange is over.
    pub(super) fn rest(&mut self, now_ms: u64) {
        self.kept = true;
        self.body = None;
        self.idle_since_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection, and the other end of it, which blocks: nothing here gives the runtime a chance to hear of anything.
    async fn connected() -> (Upstream, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let links = Registry::new();
        let mut upstream = Upstream::connect(address, Duration::from_secs(30), &links).await.expect("connected");
        let (peer, _) = listener.accept().expect("accepted");
        assert!(upstream.revive(), "an open connection is good");
        (upstream, peer)
    }

    #[tokio::test]
    async fn an_end_that_the_runtime_has_not_heard_of_is_noticed() {
        let (mut upstream, peer) = connected().await;
        drop(peer);
        assert!(!upstream.revive());
    }

    #[tokio::test]
    async fn bytes_that_the_runtime_has_not_heard_of_are_noticed() {
        use std::io::Write;
        let (mut upstream, mut peer) = connected().await;
        peer.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").expect("written");
        assert!(!upstream.revive());
    }

    #[test]
    fn failures_to_connect_are_told_apart() {
        let of = |code: Errno| ConnectError::from(io::Error::from_raw_os_error(code as i32));
        assert_eq!(of(Errno::ECONNREFUSED), ConnectError::Refused);
        assert_eq!(of(Errno::EHOSTUNREACH), ConnectError::Refused);
        assert_eq!(of(Errno::ETIMEDOUT), ConnectError::TimedOut);
        assert_eq!(of(Errno::EADDRNOTAVAIL), ConnectError::Local);
        assert_eq!(of(Errno::EMFILE), ConnectError::Local);
    }
}
