//! Amazon Cognito's wire format with answers that a test sets: every error, challenge and accident there can be. It keeps no
//! users; what behaves like a user pool is `stack::cognito`.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longest wait for a request; a test that runs into it has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a call gets.
#[derive(Debug, Clone)]
pub enum CognitoAnswer {
    /// 200 with this.
    Ok(Value),
    /// An exception as JSON 1.1 has it: almost all have status 400.
    Error {
        /// The HTTP status.
        status: u16,
        /// `__type`.
        code: String,
        /// `message`.
        message: String,
    },
    /// Something that a proxy on the way would say.
    Html(u16),
    /// Nothing, ever.
    Silence,
    /// A beginning that could be JSON, and no end.
    Endless,
}

impl CognitoAnswer {
    /// An exception with status 400.
    #[must_use]
    pub fn error(code: &str, message: &str) -> Self {
        Self::Error { status: 400, code: code.to_owned(), message: message.to_owned() }
    }
}

/// A call as it arrived.
#[derive(Debug, Clone)]
pub struct CognitoCall {
    /// `InitiateAuth` and the like.
    pub operation: String,
    /// Its parameters.
    pub parameters: Value,
    /// Whether it was signed with AWS credentials.
    pub signed: bool,
}

/// A server on `127.0.0.1`. Dropping it ends the server.
#[derive(Debug)]
pub struct CognitoStub {
    url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// By operation; the last one stays.
    answers: Mutex<BTreeMap<String, VecDeque<CognitoAnswer>>>,
    calls: watch::Sender<Vec<CognitoCall>>,
    /// While it is false, answers are held back.
    open: watch::Sender<bool>,
    connections: AtomicUsize,
}

impl CognitoStub {
    /// Starts to answer; calls that nothing is set for are unknown.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound address"));
        let shared = Arc::new(Shared {
            answers: Mutex::default(),
            calls: watch::Sender::default(),
            open: watch::Sender::new(true),
            connections: AtomicUsize::new(0),
        });
        let counted = shared.clone();
        let listener = listener.tap_io(move |_| {
            counted.connections.fetch_add(1, Ordering::Relaxed);
        });
        let router = Router::new().route("/", post(call)).with_state(shared.clone());
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("accepting never ends");
        });
        Self { url, shared, server }
    }

    /// `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers an operation so from now on.
    pub fn answer(&self, operation: &str, answer: CognitoAnswer) {
        self.answer_in_turn(operation, [answer]);
    }

    /// Answers an operation with one after the other, and then always with the last.
    pub fn answer_in_turn(&self, operation: &str, answers: impl IntoIterator<Item = CognitoAnswer>) {
        let mut all = self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(operation.to_owned(), answers.into_iter().collect());
    }

    /// The parameters of all calls of an operation so far, in order of arrival.
    #[must_use]
    pub fn calls_of(&self, operation: &str) -> Vec<Value> {
        let calls = self.shared.calls.borrow();
        calls.iter().filter(|call| call.operation == operation).map(|call| call.parameters.clone()).collect()
    }

    /// All calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<CognitoCall> {
        self.shared.calls.borrow().clone()
    }

    /// Connections that were made so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Holds answers back until [`CognitoStub::release`].
    pub fn hold(&self) {
        self.shared.open.send_replace(false);
    }

    /// Sends the answers that were held back, and further ones at once.
    pub fn release(&self) {
        self.shared.open.send_replace(true);
    }

    /// Waits until so many calls have arrived.
    ///
    /// # Panics
    /// When they have not after a minute.
    pub async fn called(&self, times: usize) {
        let mut calls = self.shared.calls.subscribe();
        let arrived = tokio::time::timeout(PATIENCE, calls.wait_for(|calls| calls.len() >= times)).await.is_ok();
        assert!(arrived, "{} of {times} calls have arrived", self.calls().len());
    }
}

impl Drop for CognitoStub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn call(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let operation = target.strip_prefix("AWSCognitoIdentityProviderService.").unwrap_or_default().to_owned();
    let json = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/x-amz-json-1.1");
    let Some(parameters) = serde_json::from_slice(&body).ok().filter(|_| json) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let signed = headers.contains_key(header::AUTHORIZATION);
    let call = CognitoCall { operation: operation.clone(), parameters, signed };
    shared.calls.send_modify(|calls| calls.push(call));
    shared.open.subscribe().wait_for(|open| *open).await.expect("the state keeps the sender");
    match next_answer(&shared, &operation) {
        CognitoAnswer::Ok(answer) => amz_json(StatusCode::OK, &answer),
        CognitoAnswer::Error { status, code, message } => {
            let status = StatusCode::from_u16(status).expect("a status");
            amz_json(status, &json!({"__type": code, "message": message}))
        }
        CognitoAnswer::Html(status) => {
            let status = StatusCode::from_u16(status).expect("a status");
            (status, [(header::CONTENT_TYPE, "text/html")], "<html><body>upstream 10.0.0.7</body></html>")
                .into_response()
        }
        CognitoAnswer::Silence => std::future::pending().await,
        CognitoAnswer::Endless => {
            let spaces = Bytes::from(vec![b' '; 16 * 1024]);
            let pieces = futures_util::stream::repeat_with(move || Ok::<_, std::convert::Infallible>(spaces.clone()));
            Body::from_stream(pieces).into_response()
        }
    }
}

fn next_answer(shared: &Shared, operation: &str) -> CognitoAnswer {
    let mut answers = shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
    let unknown = || CognitoAnswer::error("UnknownOperationException", "");
    let Some(queue) = answers.get_mut(operation) else { return unknown() };
    let next = if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() };
    next.unwrap_or_else(unknown)
}

fn amz_json(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/x-amz-json-1.1")], body.to_string()).into_response()
}
