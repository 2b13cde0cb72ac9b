//! Any router on a port of its own, behind the server that production uses.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use service_kit::{
    config::{self, Environment},
    server::{self, ServerConfig, Shutdown},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// A running server: a stub, or part of a service. Dropping it ends the server at once.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    client: reqwest::Client,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
}

impl TestServer {
    /// Serves `router` on a free port of 127.0.0.1 with the server's default limits.
    pub async fn serve(router: Router) -> Self {
        Self::serve_with(router, &[]).await
    }

    /// As [`TestServer::serve`], with server variables set (`[("SHUTDOWN_DELAY_MS", "0")]`).
    pub async fn serve_with(router: Router, variables: &[(&str, &str)]) -> Self {
        let environment = Environment::from_pairs(variables.iter().copied());
        let config = config::load(&environment, ServerConfig::read).expect("the test's server variables are valid");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let shutdown = Shutdown::default();
        let signal = shutdown.clone();
        let serving = tokio::spawn(async move {
            server::serve(listener, router, &config, signal).await;
        });
        let client = reqwest::Client::builder().no_proxy().build().expect("a client without options that can fail");
        Self { address, client, shutdown, serving }
    }

    /// `http://127.0.0.1:port`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client that keeps connections open.
    #[must_use]
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Stops as production does, and waits for the end.
    pub async fn stop(mut self) {
        self.shutdown.begin();
        let _ = (&mut self.serving).await;
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
