//! Accepting connections, and stopping in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use service_kit::server::{Outcome, Shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::connection;
use super::identity::RequestIds;
use super::meters::{self, EdgeMeters};
use super::session::{Order, Phase, Session};
use crate::config::{Config, Stop};
use crate::registry::Registry;
use crate::rules::Rule;
use crate::targets::Group;

/// Connections beyond the limit that are still told so; further ones are closed without a word.
const REFUSED_POLITELY: usize = 256;

/// What every connection of a listener needs.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(super) rules: Vec<(Rule, Arc<Group>)>,
    pub(super) pages: Option<axum::Router>,
    pub(super) ids: RequestIds,
    pub(super) meters: EdgeMeters,
    /// The listener's port, as `X-Forwarded-Port`.
    pub(super) port: HeaderValue,
    pub(super) idle_timeout: Duration,
    pub(super) continue_timeout: Duration,
    pub(super) forward_delay: Option<Duration>,
    max_connections: usize,
    stop: Stop,
    sessions: Arc<Registry<Session>>,
}

impl Edge {
    pub(crate) fn new(config: &Config, rules: Vec<(Rule, Arc<Group>)>, port: u16) -> Self {
        Self {
            rules,
            pages: config.pages.clone(),
            ids: RequestIds::new(),
            meters: EdgeMeters::default(),
            port: HeaderValue::from(port),
            idle_timeout: config.idle_timeout,
            continue_timeout: config.continue_timeout,
            forward_delay: config.forward_delay,
            max_connections: config.max_connections,
            stop: config.stop,
            sessions: Registry::new(),
        }
    }
}

/// Serves until `shutdown` is requested: then keeps listening for the stop delay, stops listening, lets the requests in
/// progress finish with `connection: close`, and cuts what is left at the deadline or at a second request to stop.
pub(crate) async fn serve(listener: TcpListener, edge: Arc<Edge>, shutdown: Shutdown) -> Outcome {
    let tracker = TaskTracker::new();
    tokio::select! {
        () = accept(&listener, &edge, &tracker) => {}
        () = shutdown.requested() => {}
    }
    tokio::select! {
        () = accept(&listener, &edge, &tracker) => {}
        () = sleep(edge.stop.delay) => {}
        () = shutdown.hurried() => {}
    }
    drop(listener);
    tracker.close();
    edge.sessions.for_each(|session| session.give(Order::Finish));
    tokio::select! {
        () = tracker.wait() => return Outcome::Drained,
        () = sleep(edge.stop.deadline) => {}
        () = shutdown.hurried() => {}
    }
    let busy = AtomicUsize::new(0);
    edge.sessions.for_each(|session| {
        if session.phase() != Phase::Idle {
            busy.fetch_add(1, Ordering::Relaxed);
        }
        session.give(Order::Cut);
    });
    tracker.wait().await;
    let connections = busy.into_inner();
    if connections == 0 { Outcome::Drained } else { Outcome::Cut { connections } }
}

async fn accept(listener: &TcpListener, edge: &Arc<Edge>, tracker: &TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => admit(stream, peer, edge, tracker),
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                // Out of file descriptors: the listener must not spin until some are free again.
                meters::accept_failed();
                tracing::warn!(kind = ?error.kind(), "accepting a connection failed");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The client has gone before it was accepted.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn admit(stream: TcpStream, peer: SocketAddr, edge: &Arc<Edge>, tracker: &TaskTracker) {
    let open = edge.sessions.len();
    let over = open >= edge.max_connections;
    if over {
        meters::over_capacity();
        if open >= edge.max_connections + REFUSED_POLITELY {
            return;
        }
    }
    // Small answers must not wait for a delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let session = Arc::new(Session::new(peer.ip(), over));
    // Entered before it is spawned: an order to finish reaches it in any case.
    let entry = edge.sessions.enter(&session);
    let edge = edge.clone();
    tracker.spawn(async move {
        let _open = (edge.meters.connection(), entry);
        connection::run(stream, edge.clone(), session).await;
    });
}
