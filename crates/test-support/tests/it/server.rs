//! A router on a port.

use axum::{Router, routing::get};
use test_support::TestServer;

#[tokio::test]
async fn a_router_answers_until_its_server_is_stopped() {
    let router = Router::new().route("/hello", get(async || "hello"));
    let server = TestServer::serve_with(router, &[("SHUTDOWN_DELAY_MS", "0")]).await;
    let url = format!("{}/hello", server.url());
    let client = server.client().clone();
    assert_eq!(client.get(&url).send().await.unwrap().text().await.unwrap(), "hello");
    server.stop().await;
    assert!(client.get(&url).send().await.unwrap_err().is_connect());
}
