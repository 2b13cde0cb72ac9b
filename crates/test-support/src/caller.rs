//! Callers whose type says who they are: each line of a test shows who asks for what.

use std::net::IpAddr;
use std::time::Duration;

use http::{Method, header};
use reqwest::RequestBuilder;
use serde::Serialize;
use uuid::Uuid;

use crate::reply::Reply;

/// Longest wait for a reply; a test that runs into it has failed, so it is far above anything a slow machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Somebody who holds an access token.
#[derive(Debug, Clone)]
pub struct TestUser {
    /// The token's `sub`.
    pub id: Uuid,
    /// The canonical email that the token carries.
    pub email: String,
    /// The bearer token.
    pub access_token: String,
}

/// Sends requests to one service, or to the balancer, as one person from one address. Clones share the connection pool.
#[derive(Debug, Clone)]
pub struct Caller {
    client: reqwest::Client,
    base_url: String,
    bearer: Option<String>,
    address: Option<IpAddr>,
}

impl Caller {
    /// A caller without a token of what listens at `base_url` (`http://127.0.0.1:8080`, no slash at the end), with a
    /// connection pool of its own.
    #[must_use]
    pub fn at(base_url: impl Into<String>) -> Self {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .build()
            .expect("a client without options that can fail");
        Self { client, base_url: base_url.into(), bearer: None, address: None }
    }

    /// The same caller, who presents `token`, whatever it is.
    #[must_use]
    pub fn bearing(&self, token: impl Into<String>) -> Self {
        Self { bearer: Some(token.into()), ..self.clone() }
    }

    /// The same caller as seen from `address`, the way a trusted balancer reports it.
    #[must_use]
    pub fn from_address(mut self, address: impl Into<IpAddr>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Starts a request that carries this caller's token and address; send it with [`Caller::request`].
    pub fn build(&self, method: Method, path: &str) -> RequestBuilder {
        let mut builder = self.client.request(method, format!("{}{path}", self.base_url));
        if let Some(token) = &self.bearer {
            builder = builder.bearer_auth(token);
        }
        if let Some(address) = self.address {
            builder = builder.header("x-forwarded-for", address.to_string());
        }
        builder
    }

    /// Sends what [`Caller::build`] started, and checks the reply for what every reply carries.
    ///
    /// # Panics
    /// When no complete reply arrives, or one without `x-request-id` or a task's `Server-Timing`.
    pub async fn request(&self, builder: RequestBuilder) -> Reply {
        let response = builder.send().await.expect("the service answers");
        let reply = Reply::receive(response).await;
        reply.assert_traceable();
        reply
    }

    /// `GET path`.
    pub async fn get(&self, path: &str) -> Reply {
        self.request(self.build(Method::GET, path)).await
    }

    /// `HEAD path`.
    pub async fn head(&self, path: &str) -> Reply {
        let reply = self.request(self.build(Method::HEAD, path)).await;
        assert!(reply.body.is_empty(), "a reply to HEAD has no body");
        reply
    }

    /// `DELETE path`.
    pub async fn delete(&self, path: &str) -> Reply {
        self.request(self.build(Method::DELETE, path)).await
    }

    /// `POST path` with a JSON body.
    pub async fn post_json(&self, path: &str, body: impl Serialize) -> Reply {
        self.request(self.build(Method::POST, path).json(&body)).await
    }

    /// `PATCH path` with a JSON body.
    pub async fn patch_json(&self, path: &str, body: impl Serialize) -> Reply {
        self.request(self.build(Method::PATCH, path).json(&body)).await
    }

    /// `POST path` with exactly these bytes, declared as `content_type`.
    pub async fn post_raw(&self, path: &str, content_type: &str, body: impl Into<reqwest::Body>) -> Reply {
        let builder = self.build(Method::POST, path).header(header::CONTENT_TYPE, content_type);
        self.request(builder.body(body)).await
    }
}
