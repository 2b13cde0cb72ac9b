//! Tasks that behave, and tasks that do not.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) type Answer = Response<BoxBody<Bytes, hyper::Error>>;
type Handler = Arc<dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// A task that speaks HTTP through hyper, as the real ones do.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    stop: CancellationToken,
    _stop: DropGuard,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    health: Mutex<Option<StatusCode>>,
    ids: Mutex<HashMap<String, usize>>,
}

impl Stub {
    /// Answers every request but the health checks by `handle`.
    pub(crate) async fn start<F, Fut>(handle: F) -> Self
    where
        F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |request| Box::pin(handle(request)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, stop) = (Arc::new(Seen::default()), CancellationToken::new());
        let accepting = accept(listener, handler, seen.clone(), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(accepting));
        Self { address, seen, stop: stop.clone(), _stop: stop.drop_guard() }
    }

    /// Answers 200 with `text`.
    pub(crate) async fn saying(text: &'static str) -> Self {
        Self::start(move |_| async move { Self::text(text) }).await
    }

    pub(crate) fn text(text: impl Into<Bytes>) -> Answer {
        Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed())
    }

    /// Answers with the request's head, one `name: value` a line, after `METHOD target`.
    pub(crate) async fn mirror() -> Self {
        Self::start(|request| async move {
            let mut lines = format!("{} {}\n", request.method(), request.uri());
            for (name, value) in request.headers() {
                writeln!(lines, "{name}: {}", value.to_str().unwrap_or("?")).unwrap();
            }
            Self::text(lines)
        })
        .await
    }

    /// How health checks are answered from now on.
    pub(crate) fn set_health(&self, status: StatusCode) {
        *self.seen.health.lock().unwrap() = Some(status);
    }

    /// Connections ever accepted but for health checks, which never share one.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.seen.open.load(Ordering::SeqCst)
    }

    /// How often each `x-test-id` was seen.
    pub(crate) fn ids(&self) -> HashMap<String, usize> {
        self.seen.ids.lock().unwrap().clone()
    }

    /// Dies as a killed process does: the listener and every connection are gone at once.
    pub(crate) fn kill(&self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, handler: Handler, seen: Arc<Seen>, stop: CancellationToken) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let serving = serve(stream, handler.clone(), seen.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
    }
}

async fn serve(stream: TcpStream, handler: Handler, seen: Arc<Seen>) {
    struct Open(Arc<Seen>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.open.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let counted = Arc::new(Mutex::new(None));
    let service = service_fn(|request: Request<Incoming>| {
        let (handler, seen, counted) = (handler.clone(), seen.clone(), counted.clone());
        async move {
            if request.uri().path() == "/ready" {
                let mut answer = Stub::text("");
                *answer.status_mut() = seen.health.lock().unwrap().unwrap_or(StatusCode::OK);
                return Ok::<_, Infallible>(answer);
            }
            counted.lock().unwrap().get_or_insert_with(|| {
                seen.connections.fetch_add(1, Ordering::SeqCst);
                seen.open.fetch_add(1, Ordering::SeqCst);
                Open(seen.clone())
            });
            if let Some(id) = request.headers().get("x-test-id") {
                *seen.ids.lock().unwrap().entry(id.to_str().unwrap().to_owned()).or_default() += 1;
            }
            Ok(handler(request).await)
        }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// A task that does with each connection what the test says, health checks included.
pub(crate) struct RawStub {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    _stop: DropGuard,
}

impl RawStub {
    /// Hands over each connection as it is accepted.
    pub(crate) async fn start<F, Fut>(handle: F) -> Self
    where
        F: Fn(TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let stop = CancellationToken::new();
        let accepting = {
            let (accepted, stop) = (accepted.clone(), stop.clone());
            async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    accepted.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(stop.clone().run_until_cancelled_owned(handle(stream)));
                }
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(accepting));
        Self { address, accepted, _stop: stop.drop_guard() }
    }

    /// Reads the head of a request and answers with these bytes; then closes. Health checks get 200.
    pub(crate) async fn answering(bytes: &'static [u8]) -> Self {
        Self::start(move |mut stream| async move {
            let head = read_head(&mut stream).await;
            let answer =
                if is_health_check(&head) { &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..] } else { bytes };
            let _ = stream.write_all(answer).await;
        })
        .await
    }

    /// Hands over each connection with the head of its first request; health checks are answered.
    pub(crate) async fn after_head<F, Fut>(handle: F) -> Self
    where
        F: Fn(TcpStream, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handle = Arc::new(handle);
        Self::start(move |mut stream| {
            let handle = handle.clone();
            async move {
                let head = read_head(&mut stream).await;
                if is_health_check(&head) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                } else {
                    handle(stream, head).await;
                }
            }
        })
        .await
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

fn is_health_check(head: &str) -> bool {
    head.starts_with("GET /ready ")
}

/// Reads exactly the head of a message.
pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}
