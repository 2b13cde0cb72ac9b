//! The HTTP server: hyper under our own accept loop, because `axum::serve` sets no timeouts and stops at once.
//!
//! What is bounded: the head of a request and the idle time before it, a client that does not read, open connections,
//! and the time that stopping takes. Stopping goes in four steps: not ready (the listener stays open while load
//! balancers notice), listener closed, in-flight requests finish with `connection: close`, the rest is cut.

mod refusal;
mod shutdown;
mod stream;

pub use shutdown::Shutdown;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::config::Settings;
use crate::context::PeerAddress;
use crate::telemetry::names;
use stream::ClientStream;

/// Head of a request, all lines together. A larger one is refused with 431.
const HEAD_MAX_BYTES: usize = 64 * 1024;

/// Most that is read from a connection at once: a head must fit. hyper's own limit of some 400 KiB makes a large upload churn
/// through buffers that the allocator keeps, for each thread that the connection has been on.
const READ_MAX_BYTES: usize = HEAD_MAX_BYTES;

/// How the server listens and stops.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 takes any.
    pub port: u16,
    /// From an idle or new connection to the end of the next head. Above the 60 s after which an ALB closes idle
    /// connections, so that this side never closes first (a request on its way would be lost: 502).
    pub header_read_timeout: Duration,
    /// How long a client may not read while there is something for it.
    pub write_idle_timeout: Duration,
    /// Open connections; further ones wait in the listen backlog.
    pub max_connections: usize,
    /// From the stop signal to the end of listening: load balancers need as long to notice that `/ready` fails.
    pub shutdown_delay: Duration,
    /// From the end of listening to the end of everything.
    pub shutdown_deadline: Duration,
}

impl ServerConfig {
    /// Reads the variables.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Server");
        Self {
            host: settings
                .parsed("HOST", "0.0.0.0", "Address to listen on", |text| {
                    text.parse().map_err(|_| "is not an IP address".to_owned())
                })
                .unwrap_or(IpAddr::from([0, 0, 0, 0])),
            port: settings.number("PORT", 8080, 0..=65_535, "Port to listen on; 0 takes any"),
            header_read_timeout: settings.milliseconds(
                "HEADER_READ_TIMEOUT_MS",
                75_000,
                10..=3_600_000,
                "Idle time and head of a request together; above the load balancer's idle timeout",
            ),
            write_idle_timeout: settings.milliseconds(
                "WRITE_IDLE_TIMEOUT_MS",
                60_000,
                10..=3_600_000,
                "How long a client may not read its answer",
            ),
            max_connections: settings.number("MAX_CONNECTIONS", 8_192, 1..=1_000_000, "Open client connections"),
            shutdown_delay: settings.milliseconds(
                "SHUTDOWN_DELAY_MS",
                2_000,
                0..=120_000,
                "Keep listening after a stop signal, with /ready failing",
            ),
            shutdown_deadline: settings.milliseconds(
                "SHUTDOWN_DEADLINE_MS",
                25_000,
                0..=120_000,
                "Then let in-flight requests finish for at most this long",
            ),
        }
    }
}

impl Default for ServerConfig {
    /// As read from an empty environment.
    fn default() -> Self {
        crate::config::defaults(Self::read)
    }
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every request got its answer.
    Drained,
    /// The deadline or a second signal cut connections.
    Cut {
        /// How many.
        connections: usize,
    },
}

/// Serves until `shutdown` is requested, and then stops as the module says.
pub async fn serve(listener: TcpListener, router: Router, config: &ServerConfig, shutdown: Shutdown) -> Outcome {
    let connections = Connections::new(router, config);
    tokio::select! {
        () = connections.accept(&listener) => {}
        () = shutdown.requested() => {}
    }
    shutdown.draining().begin();
    tokio::select! {
        () = connections.accept(&listener) => {}
        () = tokio::time::sleep(config.shutdown_delay) => {}
        () = shutdown.hurried() => {}
    }
    drop(listener);
    tokio::select! {
        () = connections.drain() => Outcome::Drained,
        () = tokio::time::sleep(config.shutdown_deadline) => connections.cut(),
        () = shutdown.hurried() => connections.cut(),
    }
}

struct Connections {
    router: Router,
    config: ServerConfig,
    permits: Arc<Semaphore>,
    tracker: TaskTracker,
    /// Finish what is in flight, then close.
    finish: CancellationToken,
    /// Close.
    abort: CancellationToken,
}

impl Connections {
    fn new(router: Router, config: &ServerConfig) -> Self {
        Self {
            router,
            config: config.clone(),
            permits: Arc::new(Semaphore::new(config.max_connections)),
            tracker: TaskTracker::new(),
            finish: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }

    /// Accepts for ever. A permit is taken before a connection is: over the cap, the kernel's backlog holds the rest.
    async fn accept(&self, listener: &TcpListener) {
        loop {
            if self.permits.available_permits() == 0 {
                metrics::counter!(names::CONNECTIONS_CAPPED).increment(1);
            }
            let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => self.spawn(stream, PeerAddress(peer), permit),
                // Out of file descriptors, or the client has gone again: neither ends the listener.
                Err(error) => {
                    tracing::warn!(kind = ?error.kind(), "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    fn spawn(&self, stream: TcpStream, peer: PeerAddress, permit: OwnedSemaphorePermit) {
        // Small answers must not wait for a delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(ClientStream::new(stream, self.config.write_idle_timeout));
        let router = self.router.clone();
        let service = service_fn(move |request: Request<Incoming>| answer(router.clone(), request, peer));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.config.header_read_timeout)
            .max_header_size(HEAD_MAX_BYTES)
            .max_buf_size(READ_MAX_BYTES)
            .serve_connection(io, service);
        let (finish, abort) = (self.finish.clone(), self.abort.clone());
        self.tracker.spawn(async move {
            let _permit = permit;
            metrics::gauge!(names::CONNECTIONS).increment(1.0);
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                biased;
                () = abort.cancelled() => {}
                // What ends a connection early is the client's doing or the timeouts': nothing to report.
                _ = connection.as_mut() => {}
                () = finish.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        () = abort.cancelled() => {}
                        _ = connection => {}
                    }
                }
            }
            metrics::gauge!(names::CONNECTIONS).decrement(1.0);
        });
    }

    async fn drain(&self) {
        self.finish.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    fn cut(&self) -> Outcome {
        let connections = self.tracker.len();
        self.abort.cancel();
        if connections == 0 { Outcome::Drained } else { Outcome::Cut { connections } }
    }
}

async fn answer(
    router: Router,
    mut request: Request<Incoming>,
    peer: PeerAddress,
) -> Result<Response<Body>, Infallible> {
    request.extensions_mut().insert(peer);
    router.oneshot(request).await
}
