//! A service under test: the router, middleware and server of production, on a port of its own.

use std::net::{Ipv4Addr, SocketAddr};

use http::Method;
use service_kit::config::{self, Environment};
use service_kit::middleware::HttpConfig;
use service_kit::server::{self, ServerConfig, Shutdown};
use service_kit::service::{self, Service};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::caller::{Caller, TestUser};
use crate::raw::exchange_raw;

/// A running service. Dropping it ends the server at once.
#[derive(Debug)]
pub struct App {
    address: SocketAddr,
    anyone: Caller,
    shutdown: Shutdown,
    server: JoinHandle<()>,
}

impl App {
    /// Serves `service` on `127.0.0.1:0` with default limits and one trusted proxy hop, so that
    /// [`Caller::from_address`] is believed. Background work of the service is not started: tests drive it themselves.
    pub async fn serve(service: Service) -> Self {
        Self::serve_with(service, &[]).await
    }

    /// As [`App::serve`], with server variables set (`[("BODY_IDLE_TIMEOUT_MS", "200")]`).
    pub async fn serve_with(service: Service, variables: &[(&str, &str)]) -> Self {
        let pairs = [("TRUSTED_PROXY_HOPS", "1")].iter().chain(variables).copied();
        let environment = Environment::from_pairs(pairs);
        let (http, server_config) =
            config::load(&environment, |settings| (HttpConfig::read(settings), ServerConfig::read(settings)))
                .expect("the test's server variables are valid");
        let router = service::assemble(&service, &http);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let shutdown = Shutdown::new(service.readiness.draining());
        let signal = shutdown.clone();
        let server = tokio::spawn(async move {
            server::serve(listener, router, &server_config, signal).await;
        });
        let anyone = Caller::at(format!("http://{address}"));
        Self { address, anyone, shutdown, server }
    }

    /// Where the service listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:port`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The server's shutdown handle, for tests that watch it drain.
    #[must_use]
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// A caller without a token.
    #[must_use]
    pub fn anonymous(&self) -> Caller {
        self.anyone.clone()
    }

    /// A caller who presents `token`, whatever it is.
    #[must_use]
    pub fn as_bearer(&self, token: impl Into<String>) -> Caller {
        self.anyone.bearing(token)
    }

    /// A caller who presents the user's token.
    #[must_use]
    pub fn as_user(&self, user: &TestUser) -> Caller {
        self.as_bearer(&user.access_token)
    }

    /// [`exchange_raw`] with the service.
    pub async fn raw(&self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        exchange_raw(self.address, bytes).await
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Asserts for each request that its reply is traceable: `Server-Timing` is there, a request id is made when none is sent and
/// is another each time, a well-formed one is echoed, and one that could not be logged safely is replaced.
pub async fn every_reply_has_request_id_and_server_timing(caller: &Caller, requests: &[(Method, &str)]) {
    assert!(!requests.is_empty(), "nothing to ask for");
    for (method, path) in requests {
        let ask = async |id: Option<&str>| {
            let builder = caller.build(method.clone(), path);
            let builder = id.into_iter().fold(builder, |builder, id| builder.header("x-request-id", id));
            let reply = caller.request(builder).await;
            reply.header("x-request-id").map(str::to_owned).unwrap_or_default()
        };
        assert_ne!(ask(None).await, ask(None).await, "{method} {path}: request ids repeat");
        assert_eq!(ask(Some("trace-42.a_B")).await, "trace-42.a_B", "{method} {path}");
        for malformed in ["with space", "<script>", &"x".repeat(300)] {
            assert_ne!(ask(Some(malformed)).await, malformed, "{method} {path}");
        }
    }
}
