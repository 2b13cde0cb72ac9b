//! A target that answers as the API does, at once, from a thread of its own; and as a test wants it to.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use loadgen::dataset::user_id;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use url::Url;
use uuid::Uuid;

/// What the stub says about its time.
pub(crate) const TIMING: &str = "db;dur=2.000, app;dur=0.500, total;dur=2.500";

/// What happens to a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Answered as the API does.
    Answer,
    /// The same, after this long.
    After(Duration),
    /// The same, once the gate is open.
    WhenOpen,
    /// The same, with another `Server-Timing`.
    AnswerTimed(&'static str),
    /// The same, and the connection closed afterwards.
    AnswerAndClose,
    /// With this status, these headers and this body.
    Other(u16, &'static [(&'static str, &'static str)], &'static str),
    /// The connection is closed without an answer.
    Hang,
}

/// Decides by the number of the request (from 0) and its path.
type Rule = Arc<dyn Fn(u64, &str) -> Act + Send + Sync>;

struct Shared {
    rule: Mutex<Rule>,
    requests: AtomicU64,
    connections: AtomicU64,
    gate: watch::Sender<bool>,
    /// How long the tokens live that it issues.
    expires_in: AtomicU64,
    log: Mutex<Option<Vec<(String, String)>>>,
}

/// A running stub; ends when dropped.
pub(crate) struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
    _end: oneshot::Sender<()>,
}

impl Stub {
    /// Answers everything at once.
    pub(crate) fn start() -> Self {
        Self::start_with(|_, _| Act::Answer)
    }

    /// Does as `rule` says.
    pub(crate) fn start_with(rule: impl Fn(u64, &str) -> Act + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            rule: Mutex::new(Arc::new(rule)),
            requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            gate: watch::channel(true).0,
            expires_in: AtomicU64::new(900),
            log: Mutex::new(Some(Vec::new())),
        });
        let (address_sender, address) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
                address_sender.send(listener.local_addr().expect("an address")).expect("somebody waits");
                tokio::select! {
                    () = accept(listener, serving) => {}
                    _ = ended => {}
                }
            });
        });
        Self { address: address.recv().expect("the stub starts"), shared, _end: end }
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(&format!("http://{}", self.address)).expect("a URL")
    }

    /// Closes or opens the gate of [`Act::WhenOpen`].
    pub(crate) fn gate(&self, open: bool) {
        self.shared.gate.send_replace(open);
    }

    pub(crate) fn tokens_expire_in(&self, seconds: u64) {
        self.shared.expires_in.store(seconds, Ordering::Relaxed);
    }

    /// For long runs: no list of requests.
    #[allow(dead_code, reason = "the example that measures the driver runs long, no test does")]
    pub(crate) fn forget_requests(&self) {
        *self.shared.log.lock().expect("no panic") = None;
    }

    pub(crate) fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Path and caller (by token, else by the body's email) of every request so far.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.shared.log.lock().expect("no panic").clone().unwrap_or_default()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        shared.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Makes hyper drop the connection.
#[derive(Debug, thiserror::Error)]
#[error("hung up on purpose")]
struct HungUp;

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Full<Bytes>>, HungUp> {
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    let rule = Arc::clone(&shared.rule.lock().expect("no panic"));
    let act = rule(number, request.uri().path());
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let caller = caller(head.headers.get(AUTHORIZATION), &body);
    if let Some(log) = &mut *shared.log.lock().expect("no panic") {
        log.push((head.uri.path().to_owned(), caller.clone()));
    }
    let (mut timing, mut closes) = (TIMING, false);
    match act {
        Act::Answer => {}
        Act::After(delay) => tokio::time::sleep(delay).await,
        Act::WhenOpen => {
            let _ = shared.gate.subscribe().wait_for(|open| *open).await;
        }
        Act::AnswerTimed(other) => timing = other,
        Act::AnswerAndClose => closes = true,
        Act::Other(status, others, body) => {
            let mut response = Response::new(Full::new(body.into()));
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            for (name, value) in others {
                response.headers_mut().insert(*name, HeaderValue::from_static(value));
            }
            return Ok(response);
        }
        Act::Hang => return Err(HungUp),
    }
    let expires_in = shared.expires_in.load(Ordering::Relaxed);
    let (status, body) = api(&head.method, head.uri.path(), &caller, &body, expires_in, number);
    let mut response = Response::new(Full::new(body.to_string().into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("server-timing", HeaderValue::from_static(timing));
    if closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

fn caller(authorization: Option<&HeaderValue>, body: &[u8]) -> String {
    let token = authorization.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer access:").map(str::to_owned));
    token.unwrap_or_else(|| {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let refresh = body["refresh_token"].as_str().and_then(|token| token.strip_prefix("refresh:"));
        refresh.or(body["email"].as_str()).unwrap_or_default().to_owned()
    })
}

fn api(method: &Method, path: &str, caller: &str, body: &[u8], expires_in: u64, number: u64) -> (StatusCode, Value) {
    match (method, path) {
        (&Method::POST, "/v1/auth/register") => (StatusCode::CREATED, json!({"id": id(caller), "email": caller})),
        (&Method::POST, "/v1/auth/login" | "/v1/auth/refresh") => (
            StatusCode::OK,
            json!({
                "access_token": format!("access:{caller}"), "token_type": "Bearer", "expires_in": expires_in,
                "refresh_token": format!("refresh:{caller}"),
            }),
        ),
        (&Method::GET, "/v1/actors/me") => (StatusCode::OK, json!({"id": id(caller), "email": caller})),
        (&Method::POST, "/v1/documents") => (
            StatusCode::CREATED,
            json!({"id": number, "size_bytes": body.len(), "sha256": hex::encode(Sha256::digest(body))}),
        ),
        _ => (StatusCode::NOT_FOUND, Value::Null),
    }
}

/// Users of a dataset have the ids that follow from their number.
fn id(email: &str) -> String {
    let populated = || {
        let (n, rest) = email.strip_prefix("user-")?.split_once('.')?;
        let seed = rest.strip_suffix("@populated.datum.example")?;
        Some(user_id(seed.parse().ok()?, n.parse().ok()?))
    };
    populated()
        .unwrap_or_else(|| Uuid::from_bytes(Sha256::digest(email)[..16].try_into().expect("16 bytes")))
        .to_string()
}
