//! What happens around every handler: request id, client address, body limits in time, stage timing, panics, metrics
//! and the one log line. What is specific to a route must not live here.

mod body;
mod observe;
mod request_id;

pub(crate) use body::BodyIdle;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, CONTENT_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;

use crate::config::Settings;
use crate::context::{CURRENT, ClientAddress, PeerAddress, RequestContext};
use crate::faults::{Armed, StageDelay};
use crate::problem::{self, Problem};
use crate::stages::StageTimes;
use body::{GuardedBody, ReadState};

/// The header that carries a request's id both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The limits that hold for every request of a service.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// How many proxies in front are ours; each has appended one `X-Forwarded-For` entry.
    pub trusted_proxy_hops: usize,
    /// The longest silence within a request body.
    pub body_idle_timeout: Duration,
    /// The longest a handler may take, from the whole head to the first byte of the answer.
    pub request_timeout: Duration,
    /// Slows every request down, to test measuring with.
    pub fault: Option<StageDelay>,
}

impl HttpConfig {
    /// Reads the limits.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Requests");
        Self {
            trusted_proxy_hops: settings.number(
                "TRUSTED_PROXY_HOPS",
                0_usize,
                0..=8,
                "Proxies in front that append to X-Forwarded-For: 0 direct, 1 behind the ALB or the balancer",
            ),
            body_idle_timeout: settings.milliseconds(
                "BODY_IDLE_TIMEOUT_MS",
                30_000,
                10..=600_000,
                "Longest silence within a request body; then 408",
            ),
            request_timeout: settings.milliseconds(
                "REQUEST_TIMEOUT_MS",
                30_000,
                10..=3_600_000,
                "Longest a handler may take; then 503",
            ),
            fault: StageDelay::read(settings),
        }
    }
}

impl Default for HttpConfig {
    /// As read from an empty environment.
    fn default() -> Self {
        crate::config::defaults(Self::read)
    }
}

/// Wraps every route, known or not.
pub(crate) fn apply(router: Router, config: &HttpConfig, draining: Draining) -> Router {
    let state = Around { config: Arc::new(config.clone()), draining };
    router
        .fallback(problem::unknown_route)
        .method_not_allowed_fallback(problem::wrong_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(axum::middleware::from_fn_with_state(state, around))
}

/// Whether the task is on its way out, so that answers ask clients to reconnect elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Draining(Arc<std::sync::atomic::AtomicBool>);

impl Draining {
    /// From now on.
    pub fn begin(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Release);
    }

    /// Whether it has begun.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Acquire)
    }
}

#[derive(Clone)]
struct Around {
    config: Arc<HttpConfig>,
    draining: Draining,
}

async fn around(State(around): State<Around>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let context = Arc::new(RequestContext {
        request_id: request_id::of(request.headers()),
        stages: StageTimes::default(),
        fault: around.config.fault.map(Armed::new),
    });
    let peer = request.extensions().get::<PeerAddress>().copied();
    let client = ClientAddress::of(request.headers(), peer, around.config.trusted_proxy_hops);
    request.extensions_mut().insert(client);

    let (request, read_state) = guard_body(request, around.config.body_idle_timeout);
    let span = observe::span(&method, route.as_ref(), &context.request_id);
    let answer = CURRENT.scope(context.clone(), answer(request, next, around.config.request_timeout));
    let mut response = answer.instrument(span.clone()).await;

    let total = started.elapsed();
    let headers = response.headers_mut();
    insert_text(headers, REQUEST_ID, &context.request_id);
    insert_text(headers, SERVER_TIMING, &context.stages.server_timing(total));
    // A body that was not read to its end cannot be skipped cheaply: the connection ends with this answer, and says so.
    if around.draining.is_on() || read_state.is_unfinished() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    observe::finished(&span, &method, route.as_ref(), &response, &context.stages, total);
    response
}

async fn answer(request: Request, next: Next, timeout: Duration) -> Response {
    if let Some(refusal) = refuse_encoded_body(request.headers()) {
        return refusal.into_response();
    }
    match tokio::time::timeout(timeout, next.run(request)).await {
        Ok(response) => response,
        Err(_elapsed) => Problem::unavailable(
            "request_timeout",
            "The request took too long and was given up.",
            Duration::from_secs(1),
        )
        .into_response(),
    }
}

/// Compressed bodies would make every size limit a lie; no client of this API needs them.
fn refuse_encoded_body(headers: &HeaderMap) -> Option<Problem> {
    let encoded =
        headers.get_all(CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    encoded.then(|| Problem::unsupported_media_type("Request bodies must not have a content encoding."))
}

fn guard_body(request: Request, idle_timeout: Duration) -> (Request, ReadState) {
    let read_state = ReadState::default();
    let guarded = request.map(|body| Body::new(GuardedBody::new(body, idle_timeout, read_state.clone())));
    (guarded, read_state)
}

fn insert_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the layer's signature")]
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    Problem::internal(anyhow::anyhow!("panic: {message}")).into_response()
}
