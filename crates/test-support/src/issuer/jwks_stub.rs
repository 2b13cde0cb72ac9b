//! An issuer's key endpoint that counts who asks, and that can fail in every way.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::{StatusCode, header};
use service_kit::auth::jwk::Jwks;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

/// Longest wait for a request; a test that runs into it has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the endpoint does.
#[derive(Debug, Clone)]
pub enum JwksAnswer {
    /// Answers 200 with these keys.
    Keys(Jwks),
    /// Answers with this status and an empty body.
    Status(StatusCode),
    /// Answers 200 with this body.
    Body(Bytes),
    /// Redirects to this place.
    Redirect(Url),
    /// Never answers.
    Silence,
}

/// A server on `127.0.0.1` for a key set. Dropping it ends the server.
#[derive(Debug)]
pub struct JwksStub {
    url: Url,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    answer: Mutex<JwksAnswer>,
    hits: watch::Sender<usize>,
    /// While it is false, answers are held back.
    open: watch::Sender<bool>,
}

impl JwksStub {
    /// Starts to answer as told.
    pub async fn start(answer: JwksAnswer) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let url = Url::parse(&format!("http://{address}/.well-known/jwks.json")).expect("a URL");
        let (hits, open) = (watch::Sender::new(0), watch::Sender::new(true));
        let shared = Arc::new(Shared { answer: Mutex::new(answer), hits, open });
        let router = Router::new().route(url.path(), get(keys)).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("accepting never ends");
        });
        Self { url, shared, server }
    }

    /// Where the keys are.
    #[must_use]
    pub fn url(&self) -> Url {
        self.url.clone()
    }

    /// Answers differently from now on.
    pub fn answer(&self, answer: JwksAnswer) {
        *self.shared.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Holds answers back until [`JwksStub::release`].
    pub fn hold(&self) {
        self.shared.open.send_replace(false);
    }

    /// Sends the answers that were held back, and further ones at once.
    pub fn release(&self) {
        self.shared.open.send_replace(true);
    }

    /// How many requests have arrived.
    #[must_use]
    pub fn hits(&self) -> usize {
        *self.shared.hits.borrow()
    }

    /// Waits until so many requests have arrived.
    ///
    /// # Panics
    /// When they have not after a minute.
    pub async fn hit(&self, times: usize) {
        let mut hits = self.shared.hits.subscribe();
        let arrived = tokio::time::timeout(PATIENCE, hits.wait_for(|hits| *hits >= times)).await.is_ok();
        assert!(arrived, "{} of {times} requests have arrived", self.hits());
    }
}

impl Drop for JwksStub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn keys(State(shared): State<Arc<Shared>>) -> Response {
    shared.hits.send_modify(|hits| *hits += 1);
    shared.open.subscribe().wait_for(|open| *open).await.expect("the state keeps the sender");
    let answer = shared.answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match answer {
        JwksAnswer::Keys(jwks) => axum::Json(jwks).into_response(),
        JwksAnswer::Status(status) => status.into_response(),
        JwksAnswer::Body(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        JwksAnswer::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to.to_string())]).into_response(),
        JwksAnswer::Silence => std::future::pending().await,
    }
}
