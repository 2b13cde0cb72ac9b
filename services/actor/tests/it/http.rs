//! What holds for every route, known or not.

use http::Method;
use serde_json::json;
use test_support::{Reply, every_reply_has_request_id_and_server_timing};

use crate::served::Actors;

#[tokio::test]
async fn every_reply_can_be_traced() {
    let actors = Actors::start().await;
    let requests = [
        (Method::GET, "/v1/actors/me"),
        (Method::HEAD, "/v1/actors/me"),
        (Method::PATCH, "/v1/actors/me"),
        (Method::DELETE, "/v1/actors/me"),
        (Method::GET, "/v1/actors/nonsense"),
        (Method::GET, "/v1/actors/00000000-0000-0000-0000-000000000007"),
        (Method::GET, "/nowhere"),
        (Method::GET, "/live"),
        (Method::GET, "/ready"),
        (Method::GET, "/metrics"),
        (Method::GET, "/openapi.json"),
    ];
    every_reply_has_request_id_and_server_timing(&actors.app.anonymous(), &requests).await;
    let ada = actors.app.as_user(&actors.user("ada@example.com"));
    every_reply_has_request_id_and_server_timing(&ada, &requests).await;
}

#[tokio::test]
async fn the_time_in_the_database_and_in_verification_is_told() {
    let actors = Actors::start().await;
    let reply = actors.app.as_user(&actors.user("ada@example.com")).get("/v1/actors/me").await;
    let timing = reply.header("server-timing").unwrap();
    for stage in ["verify;", "pool;", "db;", "app;", "total;"] {
        assert!(timing.contains(stage), "no {stage} in {timing}");
    }
}

#[tokio::test]
async fn unknown_routes_are_404() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    for path in [
        "/",
        "/v1",
        "/v1/actors",
        "/v1/actors/",
        "/v1/actors/me/",
        "/v1/actors/me/x",
        "/v2/actors/me",
        "/%00",
        "/%ff",
        "/v1/auth/login",
    ] {
        caller.get(path).await.assert_problem(404, "not_found");
    }
}

#[tokio::test]
async fn wrong_methods_are_405_and_say_which_are_right() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    for (path, allowed) in [
        ("/v1/actors/me", &["GET", "HEAD", "PATCH"][..]),
        ("/v1/actors/00000000-0000-0000-0000-000000000007", &["GET", "HEAD"]),
        ("/live", &["GET", "HEAD"]),
    ] {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::from_bytes(b"BREW").unwrap()] {
            caller.request(caller.build(method, path)).await.assert_method_not_allowed(allowed);
        }
    }
}

#[tokio::test]
async fn the_tasks_own_paths_answer() {
    let actors = Actors::start().await;
    let anyone = actors.app.anonymous();
    actors.app.as_user(&actors.user("ada@example.com")).get("/v1/actors/me").await.assert_status(200);
    anyone.get("/live").await.assert_status(200);
    anyone.get("/ready").await.assert_status(200);
    anyone.head("/ready").await.assert_status(200);
    let description = anyone.get("/openapi.json").await;
    assert!(description.assert_status(200).json()["paths"]["/v1/actors/me"]["patch"].is_object());
    let page = anyone.get("/docs/").await;
    assert!(page.assert_status(200).header("content-type").unwrap().starts_with("text/html"));
    anyone.get("/metrics").await.assert_status(200);
}

#[tokio::test]
async fn bytes_that_are_no_request_are_refused_and_the_next_request_is_served() {
    let actors = Actors::start().await;
    for (bytes, status) in [
        (&b"\xff\xfe\x00garbage\r\n\r\n"[..], 400),
        (b"GET /v1/actors/\xff HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        (b"GET /v1/actors/me HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n", 400),
        (b"GET /v1/actors/me HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n", 400),
    ] {
        assert_eq!(Reply::from_bytes(&actors.app.raw(bytes).await).status, status, "{}", bytes.escape_ascii());
    }
    let large = format!("GET /v1/actors/me HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(100 * 1024));
    assert_eq!(Reply::from_bytes(&actors.app.raw(large).await).status, 431);
    let ada = actors.app.as_user(&actors.user("ada@example.com"));
    ada.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await.assert_status(200);
}
