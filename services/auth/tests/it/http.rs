//! What holds for every route, known or not.

use ::http::Method;
use test_support::every_reply_has_request_id_and_server_timing;

use crate::served::{Auth, PASSWORD};

#[tokio::test]
async fn every_reply_can_be_traced() {
    let auth = Auth::start().await;
    let requests = [
        (Method::POST, "/v1/auth/register"),
        (Method::POST, "/v1/auth/confirm"),
        (Method::POST, "/v1/auth/resend"),
        (Method::POST, "/v1/auth/login"),
        (Method::POST, "/v1/auth/refresh"),
        (Method::POST, "/v1/auth/logout"),
        (Method::POST, "/v1/auth/password"),
        (Method::GET, "/v1/auth/login"),
        (Method::GET, "/.well-known/jwks.json"),
        (Method::HEAD, "/.well-known/jwks.json"),
        (Method::GET, "/nowhere"),
        (Method::GET, "/live"),
        (Method::GET, "/ready"),
        (Method::GET, "/openapi.json"),
    ];
    every_reply_has_request_id_and_server_timing(&auth.app.anonymous(), &requests).await;
}

#[tokio::test]
async fn unknown_routes_are_404() {
    let auth = Auth::start().await;
    for path in
        ["/", "/v1/auth", "/v1/auth/", "/v1/auth/login/", "/v1/auth/Login", "/v1/actors/me", "/.well-known", "/%00"]
    {
        auth.app.anonymous().get(path).await.assert_problem(404, "not_found");
    }
}

#[tokio::test]
async fn wrong_methods_are_405_and_say_which_are_right() {
    let auth = Auth::start().await;
    let caller = auth.app.anonymous();
    for route in ["register", "confirm", "resend", "login", "refresh", "logout", "password"] {
        for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
            let reply = caller.request(caller.build(method, &format!("/v1/auth/{route}"))).await;
            reply.assert_problem(405, "method_not_allowed");
            assert_eq!(reply.header("allow"), Some("POST"));
        }
    }
    let reply = caller.request(caller.build(Method::POST, "/.well-known/jwks.json")).await;
    reply.assert_problem(405, "method_not_allowed");
    assert_eq!(reply.header("allow"), Some("GET,HEAD"));
}

#[tokio::test]
async fn the_tasks_own_paths_answer() {
    let auth = Auth::start().await;
    let anyone = auth.app.anonymous();
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    for path in ["/live", "/ready", "/metrics"] {
        anyone.get(path).await.assert_status(200);
    }
    let description = anyone.get("/openapi.json").await;
    assert!(description.assert_status(200).json()["paths"]["/v1/auth/login"]["post"].is_object());
}
