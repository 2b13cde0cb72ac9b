//! The control routes' caller, for other processes of this machine.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::control::{BehaviourText, ImportedUser};
use super::stats::Stats;

/// An import of many users takes a while on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const LARGEST_ANSWER: usize = 1024 * 1024;

/// Why the double did not do as it was told.
#[derive(Debug, thiserror::Error)]
#[error("the Cognito double at {endpoint}: {message}")]
pub struct ControlError {
    endpoint: String,
    message: String,
}

/// Speaks to the control routes of a double.
#[derive(Debug, Clone)]
pub struct ControlClient {
    endpoint: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl ControlClient {
    /// Of the double at `http://address:port`.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self { endpoint: endpoint.into(), http: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// What it has seen.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn stats(&self) -> Result<Stats, ControlError> {
        self.read("/-/stats").await
    }

    /// How it behaves.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn behaviour(&self) -> Result<BehaviourText, ControlError> {
        self.read("/-/behaviour").await
    }

    /// Changes how it behaves, from the next call on.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub async fn set_behaviour(&self, behaviour: &BehaviourText) -> Result<(), ControlError> {
        self.send(Method::PUT, "/-/behaviour", Some(behaviour)).await.map(drop)
    }

    /// Puts users there who can log in at once. Those who are there already get the password that is given here.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub async fn import(&self, users: &[ImportedUser]) -> Result<(), ControlError> {
        self.send(Method::POST, "/-/users", Some(users)).await.map(drop)
    }

    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, ControlError> {
        let body = self.send(Method::GET, path, None::<&()>).await?;
        serde_json::from_slice(&body).map_err(|error| self.failed(error))
    }

    async fn send<T: Serialize + ?Sized>(
        &self,
        method: Method,
        path: &str,
        body: Option<&T>,
    ) -> Result<Bytes, ControlError> {
        let uri: Uri = format!("{}{path}", self.endpoint).parse().map_err(|error| self.failed(error))?;
        let body = match body {
            Some(body) => serde_json::to_vec(body).map_err(|error| self.failed(error))?,
            None => Vec::new(),
        };
        let request = Request::builder().method(method).uri(uri).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Full::from(body)).map_err(|error| self.failed(error))?;
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| self.failed(error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await.map_err(|error| self.failed(error))?;
            let body = body.to_bytes();
            if head.status.is_success() {
                return Ok(body);
            }
            Err(self.failed(format_args!("{}: {}", head.status, String::from_utf8_lossy(&body))))
        };
        tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|error| Err(self.failed(error)))
    }

    fn failed(&self, error: impl std::fmt::Display) -> ControlError {
        ControlError { endpoint: self.endpoint.clone(), message: error.to_string() }
    }
}
