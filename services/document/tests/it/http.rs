//! What holds for every route, known or not.

use http::Method;
use test_support::every_reply_has_request_id_and_server_timing;

use crate::served::{Documents, stored};

const SOME: &str = "/v1/documents/00000000-0000-0000-0000-000000000007";
const SOME_CONTENT: &str = "/v1/documents/00000000-0000-0000-0000-000000000007/content";

#[tokio::test]
async fn every_reply_can_be_traced() {
    let documents = Documents::start().await;
    let requests = [
        (Method::GET, "/v1/documents"),
        (Method::HEAD, "/v1/documents"),
        (Method::POST, "/v1/documents"),
        (Method::GET, SOME),
        (Method::DELETE, SOME),
        (Method::GET, SOME_CONTENT),
        (Method::HEAD, SOME_CONTENT),
        (Method::PUT, SOME_CONTENT),
        (Method::GET, "/nowhere"),
        (Method::GET, "/ready"),
    ];
    every_reply_has_request_id_and_server_timing(&documents.app.anonymous(), &requests).await;
    every_reply_has_request_id_and_server_timing(&documents.caller(), &requests).await;
}

#[tokio::test]
async fn unknown_routes_are_404() {
    let documents = Documents::start().await;
    for path in ["/", "/v1", "/v1/documents/", "/v1/documents/x/y", "/v1/documents/x/content/", "/v2/documents", "/%00"]
    {
        documents.caller().get(path).await.assert_problem(404, "not_found");
    }
}

#[tokio::test]
async fn wrong_methods_are_405_and_say_which_are_right() {
    let documents = Documents::start().await;
    let caller = documents.caller();
    for (path, allowed) in [
        ("/v1/documents", &["GET", "HEAD", "POST"][..]),
        (SOME, &["DELETE", "GET", "HEAD"]),
        (SOME_CONTENT, &["GET", "HEAD"]),
    ] {
        for method in [Method::PUT, Method::PATCH, Method::OPTIONS] {
            caller.request(caller.build(method, path)).await.assert_method_not_allowed(allowed);
        }
    }
}

#[tokio::test]
async fn the_tasks_own_paths_answer() {
    let documents = Documents::start().await;
    stored(&documents.caller(), "x", "text/plain", "hello").await;
    let anyone = documents.app.anonymous();
    anyone.get("/live").await.assert_status(200);
    anyone.get("/ready").await.assert_status(200);
    let description = anyone.get("/openapi.json").await.assert_status(200).json();
    assert!(description["paths"]["/v1/documents/{id}/content"]["get"].is_object());
    let metrics = anyone.get("/metrics").await;
    for name in ["document_stored_bytes_total", "http_stage_duration_seconds"] {
        assert!(metrics.assert_status(200).text().contains(name), "no {name}");
    }
}
