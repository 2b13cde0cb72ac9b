//! The HTTP side: the API's one path, the published keys, the control routes.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::behaviour::{Behaviour, Conduct, Mischief};
use super::calls::Call;
use super::control;
use super::operation::Operation;
use super::pool::Pool;
use super::stats::Meter;
use super::wire::{self, CognitoError};

/// How long requests may go on after the end has been asked for.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(5);
/// After this long without a request a connection is closed. No page of AWS's says how long Cognito waits.
const IDLE_TIMEOUT: std::time::Duration = std::time::Duration::from_mins(5);
/// Real calls carry some kilobytes at most: tokens.
const LARGEST_CALL: usize = 128 * 1024;

/// What all requests share.
pub(super) struct Double {
    pub(super) pool: Pool,
    pub(super) meter: Meter,
    conduct: RwLock<Arc<Conduct>>,
    began: Instant,
}

impl Double {
    pub(super) fn new(pool: Pool, behaviour: Behaviour) -> Self {
        Self {
            pool,
            meter: Meter::default(),
            conduct: RwLock::new(Arc::new(Conduct::new(behaviour))),
            began: Instant::now(),
        }
    }

    pub(super) fn conduct(&self) -> Arc<Conduct> {
        Arc::clone(&self.conduct.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on; buckets are full, counts and lots begin anew.
    pub(super) fn set_behaviour(&self, behaviour: Behaviour) {
        *self.conduct.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Conduct::new(behaviour));
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// One call, with everything that was set.
    async fn call(&self, operation: Operation, body: &[u8]) -> Response {
        let (arrived, conduct) = (Instant::now(), self.conduct());
        self.meter.request(operation);
        let now = self.nanos();
        // A throttled call is not worked on, and takes no time.
        if !conduct.admits(operation, now) {
            return self.refuse(operation, CognitoError::throttled());
        }
        let latency = conduct.latency(operation);
        let response = match conduct.mischief(operation) {
            Some(mischief) => {
                self.meter.fault(operation);
                self.misbehave(operation, mischief)
            }
            None => match (Call { pool: &self.pool, conduct: &conduct, now }).answer(operation, body) {
                Ok(output) => {
                    self.meter.success(operation);
                    wire::success(&output)
                }
                Err(error) => self.refuse(operation, error),
            },
        };
        if !latency.is_zero() {
            // From the arrival: the double's own work is part of the time that was asked for.
            tokio::time::sleep_until(arrived + latency).await;
        }
        response
    }

    fn refuse(&self, operation: Operation, error: CognitoError) -> Response {
        if error.kind == CognitoError::throttled().kind {
            self.meter.throttled(operation);
        }
        self.meter.error(operation, &error.kind);
        error.into_response()
    }

    fn misbehave(&self, operation: Operation, mischief: &Mischief) -> Response {
        match mischief {
            Mischief::Error(kind) => self.refuse(operation, CognitoError::new(kind.clone(), "On purpose.")),
            Mischief::Html => {
                let page = "<html><head><title>502 Bad Gateway</title></head><body>On purpose.</body></html>";
                (StatusCode::BAD_GATEWAY, [(header::CONTENT_TYPE, "text/html")], page).into_response()
            }
            Mischief::Disconnect => {
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(Disconnect);
                response
            }
        }
    }
}

/// Marks an answer that is not sent: the connection ends instead.
#[derive(Debug, Clone, Copy)]
struct Disconnect;

fn router(double: Arc<Double>) -> Router {
    let api = Router::new()
        .route("/", post(call))
        .route("/{pool}/.well-known/jwks.json", get(jwks))
        .layer(DefaultBodyLimit::max(LARGEST_CALL))
        .with_state(Arc::clone(&double));
    api.nest("/-", control::router(double))
}

async fn call(State(double): State<Arc<Double>>, headers: HeaderMap, body: Bytes) -> Response {
    match wire::operation(&headers) {
        Ok(operation) => double.call(operation, &body).await,
        Err(error) => error.into_response(),
    }
}

async fn jwks(State(double): State<Arc<Double>>, Path(pool): Path<String>) -> Response {
    if pool != double.pool.options.pool_id {
        let error = CognitoError::new("ResourceNotFoundException", format!("User pool {pool} does not exist."));
        return error.into_response();
    }
    double.meter.key_set();
    axum::Json(double.pool.keys.jwks()).into_response()
}

/// Accepts until `shutdown` is cancelled, then drains.
pub(super) async fn serve(listener: TcpListener, double: Arc<Double>, shutdown: CancellationToken) {
    let router = router(Arc::clone(&double));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                double.meter.connection();
                connections.spawn(connection(stream, router.clone(), shutdown.clone()));
            }
            Err(error) => {
                // Out of file descriptors, mostly: accepting again at once would only burn the CPU.
                tracing::warn!(%error, "the Cognito double could not accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    // What is left is aborted with the set.
    let _ = tokio::time::timeout(DRAIN, drained).await;
}

async fn connection(stream: TcpStream, router: Router, shutdown: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = router.call(request);
        async move {
            let Ok(response) = answer.await;
            if response.extensions().get::<Disconnect>().is_some() {
                return Err(std::io::Error::other("a disconnect on purpose"));
            }
            Ok(response)
        }
    });
    let mut http = http1::Builder::new();
    // hyper's header timeout also bounds the wait for the next request of an idle connection.
    http.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the Cognito double ended early");
    }
}
