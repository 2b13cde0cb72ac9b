//! Whose tokens open what. That each kind of wrong token is refused is tested with the verifier; here, that every route
//! asks it, and how the service and its keys live together.

use http::Method;
use serde_json::json;
use test_support::{Caller, eventually};

use crate::served::Actors;

const ROUTES: [(Method, &str); 4] = [
    (Method::GET, "/v1/actors/me"),
    (Method::HEAD, "/v1/actors/me"),
    (Method::PATCH, "/v1/actors/me"),
    (Method::GET, "/v1/actors/00000000-0000-0000-0000-000000000001"),
];

async fn assert_refused(caller: &Caller, code: &str) {
    for (method, path) in ROUTES {
        let reply = caller.request(caller.build(method.clone(), path).json(&json!({"display_name": "Eve"}))).await;
        if method == Method::HEAD {
            reply.assert_status(401);
        } else {
            reply.assert_problem(401, code);
        }
    }
}

#[tokio::test]
async fn every_route_needs_a_token() {
    let actors = Actors::start().await;
    assert_refused(&actors.app.anonymous(), "token_missing").await;
    assert_eq!(actors.count().await, 0);
}

#[tokio::test]
async fn every_route_refuses_what_is_not_a_valid_access_token() {
    let actors = Actors::start().await;
    let foreign = Actors::start().await.user("eve@example.com").access_token;
    for token in [
        "",
        "a.b.c",
        &foreign,
        &actors.forged_token(),
        &actors.token(&json!({"aud": "another"})),
        &actors.token(&json!({"token_use": "refresh"})),
    ] {
        assert_refused(&actors.app.as_bearer(token), "token_invalid").await;
    }
    assert_eq!(actors.count().await, 0);
}

#[tokio::test]
async fn a_remembered_token_ends_with_its_expiry() {
    let actors = Actors::start().await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    for _ in 0..3 {
        caller.get("/v1/actors/me").await.assert_status(200);
    }
    assert_eq!(actors.key_fetches(), 1, "the keys are fetched once");
    actors.advance_seconds(3_600);
    assert_refused(&caller, "token_expired").await;
}

#[tokio::test]
async fn many_first_requests_fetch_the_keys_once() {
    let actors = Actors::start().await;
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..50 {
        let caller = actors.app.as_user(&actors.user(&format!("user{number}@example.com")));
        requests.spawn(async move { caller.get("/v1/actors/me").await.status });
    }
    assert!(requests.join_all().await.iter().all(|status| *status == 200));
    assert_eq!(actors.key_fetches(), 1);
}

#[tokio::test]
async fn while_the_keys_cannot_be_fetched_it_is_503_and_then_200() {
    let actors = Actors::start_with(&[("AUTH_JWKS_MIN_INTERVAL_MS", "100")], &[]).await;
    actors.break_keys();
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    caller.get("/v1/actors/me").await.assert_problem(503, "keys_unavailable");
    let reason = actors.app.anonymous().get("/ready").await.assert_problem(503, "not_ready");
    assert!(reason["detail"].as_str().unwrap().contains("token keys"), "{reason}");
    actors.app.anonymous().get("/live").await.assert_status(200);

    actors.mend_keys();
    eventually("the profile is served", async || caller.get("/v1/actors/me").await.status == 200).await;
    actors.app.anonymous().get("/ready").await.assert_status(200);
}
