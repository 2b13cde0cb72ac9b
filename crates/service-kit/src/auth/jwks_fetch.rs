//! One fetch of an issuer's key set over HTTP: bounded in time and size, and it goes nowhere but to the configured URL.

use http::StatusCode;
use http::header::ACCEPT;
use reqwest::redirect::Policy;
use url::Url;

use super::config::JwksConfig;
use super::jwk::Jwks;

/// Largest key set that is read, in bytes. Cognito's has about 1,000.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Why a key set could not be fetched. Says nothing about where from: it is shown in readiness answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// No connection: refused, no route, unknown host, TLS failure.
    #[error("no connection")]
    Connect,
    /// No complete answer in time.
    #[error("timed out")]
    Timeout,
    /// The connection broke before the answer was complete.
    #[error("connection broken")]
    Broken,
    /// Another status than 200; redirects are not followed.
    #[error("status {0}")]
    Status(u16),
    /// More than 64 KiB.
    #[error("answer too large")]
    TooLarge,
    /// Not a JSON Web Key Set.
    #[error("not a key set")]
    Malformed,
    /// A key set, but no key in it can verify tokens.
    #[error("no usable key")]
    NoUsableKey,
}

impl FetchError {
    /// One word for metrics; the set of words is bounded.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::Status(_) => "status",
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::NoUsableKey => "no_usable_key",
        }
    }
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else if error.is_connect() {
            Self::Connect
        } else {
            Self::Broken
        }
    }
}

/// Where an issuer publishes its keys.
pub(super) struct Endpoint {
    http: reqwest::Client,
    url: Url,
}

impl Endpoint {
    /// # Errors
    /// When an `https` URL is given and the system has no root certificates.
    pub(super) fn new(config: &JwksConfig) -> Result<Self, reqwest::Error> {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("datum/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(config.timeout / 2)
            .timeout(config.timeout)
            // Fetches are minutes apart: a kept connection would only be found broken.
            .pool_max_idle_per_host(0);
        let builder = if config.url.scheme() == "https" {
            builder
        } else {
            // Plain HTTP stays within one network or machine: no proxy is asked, and a machine without root certificates
            // can do it too.
            builder.no_proxy().tls_certs_only([])
        };
        Ok(Self { http: builder.build()?, url: config.url.clone() })
    }

    pub(super) async fn fetch(&self) -> Result<Jwks, FetchError> {
        let request = self.http.get(self.url.clone()).header(ACCEPT, "application/jwk-set+json, application/json");
        let mut response = request.send().await?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|_| FetchError::Malformed)
    }
}
