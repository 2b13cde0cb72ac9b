//! Who answers which path.

use axum::Router;
use axum::routing::get;
use balancer::TargetState;

use crate::support::{Running, Stub};

/// A balancer with one stub a group, each answering with the group's name.
async fn three_groups() -> (Running, [Stub; 3]) {
    let running = Running::with(|config| {
        config.pages = Some(Router::new().route("/docs/{page}", get(|| async { "the page" })));
    })
    .await;
    let stubs = [Stub::saying("auth").await, Stub::saying("actor").await, Stub::saying("document").await];
    for (group, stub) in ["auth", "actor", "document"].iter().zip(&stubs) {
        running.balancer.register(group, stub.address).unwrap();
        running.until(stub.address, |target| target.state == TargetState::Healthy).await;
    }
    (running, stubs)
}

#[tokio::test]
async fn every_prefix_reaches_its_group_in_both_forms() {
    let (running, _stubs) = three_groups().await;
    for (path, group) in [
        ("/v1/auth", "auth"),
        ("/v1/auth/login", "auth"),
        ("/v1/auth/", "auth"),
        ("/.well-known/jwks.json", "auth"),
        ("/v1/actors", "actor"),
        ("/v1/actors?limit=1", "actor"),
        ("/v1/actors/me", "actor"),
        ("/v1/documents", "document"),
        ("/v1/documents/1/content?x=/v1/auth", "document"),
        // Matched as it was sent.
        ("/v1/documents/../auth/login", "document"),
        ("/v1/documents/%2e%2e/auth", "document"),
    ] {
        assert_eq!(running.get(path).await.text(), group, "{path}");
    }
}

#[tokio::test]
async fn what_no_rule_knows_is_a_json_404_of_the_balancers_own() {
    let (running, _stubs) = three_groups().await;
    for path in [
        "/",
        "/ready",
        "/metrics",
        "/v1",
        "/v1/authx",
        "/V1/auth",
        "/v1/documentsx/1",
        "//v1/auth",
        "/.well-known/jwks.json/x",
        "/openapi.jsonx",
        "/docsx",
    ] {
        let reply = running.get(path).await;
        assert_eq!(reply.refusal(), (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_path_keeps_the_connection_and_echoes_the_request_id() {
    let running = Running::start().await;
    let mut wire = running.wire().await;
    wire.request("GET", "/nowhere", "x-request-id: mine-1\r\n").await;
    let reply = wire.reply().await;
    assert_eq!(reply.header("x-request-id"), Some("mine-1"));
    assert_eq!(wire.get("/nowhere").await.header("x-request-id").unwrap().len(), 32);
    assert_eq!(wire.post("/nowhere", "a small body").await.status, 404);
    assert_eq!(wire.get("/live").await.status, 200);
}

#[tokio::test]
async fn live_is_the_balancers_own_whatever_the_targets_do() {
    let running = Running::start().await;
    let reply = running.get("/live").await;
    assert_eq!((reply.status, reply.text()), (200, r#"{"status":"alive"}"#));
    assert_eq!(reply.header("server"), Some("datum-balancer"));
    assert_eq!(reply.header("content-type"), Some("application/json"));

    let mut wire = running.wire().await;
    wire.request("HEAD", "/live", "").await;
    let head = wire.head_reply().await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("18")));
    let refused = wire.post("/live", "").await;
    assert_eq!(refused.refusal(), (405, "method_not_allowed".to_owned()));
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    assert_eq!(running.get("/live/x").await.status, 404);
}

#[tokio::test]
async fn pages_are_answered_by_whoever_was_given_for_them() {
    let (running, _stubs) = three_groups().await;
    let mut wire = running.wire().await;
    let reply = wire.get("/docs/index.html").await;
    assert_eq!((reply.status, reply.text()), (200, "the page"));
    assert_eq!(reply.header("server"), Some("datum-balancer"));
    assert!(reply.header("x-request-id").is_some());
    // What is no page is refused as everything else is, also where the router has no words for it.
    assert_eq!(wire.get("/openapi.json").await.problem(), "not_found");
    let refused = wire.post("/docs/index.html", "").await;
    assert_eq!(refused.refusal(), (405, "method_not_allowed".to_owned()));
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
}

#[tokio::test]
async fn without_pages_their_paths_are_unknown() {
    let running = Running::start().await;
    for path in ["/docs", "/docs/", "/openapi.json"] {
        assert_eq!(running.get(path).await.problem(), "not_found", "{path}");
    }
}
