//! What every answer carries, and what the extractors refuse.

use crate::harness::Harness;

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
}

fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn answers_carry_a_request_id_and_the_stages() {
    let harness = Harness::start(&[]).await;
    let answer =
        harness.exchange("GET /staged HTTP/1.1\r\nhost: x\r\nx-request-id: mine-1\r\nconnection: close\r\n\r\n").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("x-request-id").as_deref(), Some("mine-1"));
    let timing = answer.header("server-timing").expect("a header");
    assert!(timing.starts_with("db;dur=7.000, app;dur="), "{timing}");
    let malformed =
        harness.exchange("GET /staged HTTP/1.1\r\nhost: x\r\nx-request-id: a b\r\nconnection: close\r\n\r\n").await;
    assert_eq!(malformed.header("x-request-id").expect("an id").len(), 32);
}

#[tokio::test]
async fn unknown_routes_and_wrong_methods_are_problems() {
    let harness = Harness::start(&[]).await;
    harness.exchange(get("/nothing")).await.assert_problem(404, "not_found");
    let wrong = harness.exchange("DELETE /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    wrong.assert_problem(405, "method_not_allowed");
    assert_eq!(wrong.header("allow").as_deref(), Some("post"));
}

#[tokio::test]
async fn each_refusal_of_a_body_has_its_status() {
    let harness = Harness::start(&[]).await;
    let good = harness.exchange(post("/echo", JSON, r#"{"text":"hello"}"#)).await;
    assert_eq!((good.status(), good.body()), (200, &b"hello"[..]));
    harness.exchange(post("/echo", JSON, "{")).await.assert_problem(400, "malformed_json");
    harness.exchange(post("/echo", JSON, "")).await.assert_problem(400, "malformed_json");
    harness.exchange(post("/echo", JSON, "{}")).await.assert_problem(422, "invalid_request");
    harness.exchange(post("/echo", "", "{}")).await.assert_problem(415, "unsupported_media_type");
    harness
        .exchange(post("/echo", "content-type: text/plain\r\n", "{}"))
        .await
        .assert_problem(415, "unsupported_media_type");
    let encoded = format!("{JSON}content-encoding: gzip\r\n");
    harness.exchange(post("/echo", &encoded, "x")).await.assert_problem(415, "unsupported_media_type");
    let identity = format!("{JSON}content-encoding: identity\r\n");
    assert_eq!(harness.exchange(post("/echo", &identity, r#"{"text":"x"}"#)).await.status(), 200);
}

#[tokio::test]
async fn queries_and_paths_are_refused_in_the_same_shape() {
    let harness = Harness::start(&[]).await;
    assert_eq!(harness.exchange(get("/query?text=a%20b&utm=1")).await.body(), b"a b");
    harness.exchange(get("/query?text=%ff")).await.assert_problem(400, "malformed_query");
    harness.exchange(get("/query?text=")).await.assert_problem(422, "invalid_request");
    harness.exchange(get("/query?text=a&text=b")).await.assert_problem(422, "invalid_request");
    for path in ["/path/x", "/path/%00", "/path/%ff", "/path/-1"] {
        harness.exchange(get(path)).await.assert_problem(400, "invalid_path");
    }
}

#[tokio::test]
async fn a_panic_is_a_problem_that_tells_nothing() {
    let harness = Harness::start(&[]).await;
    let answer = harness.exchange(get("/panic")).await;
    answer.assert_problem(500, "internal_error");
    assert!(!String::from_utf8_lossy(&answer.0).contains("SELECT"));
    assert_eq!(harness.exchange(get("/live")).await.status(), 200);
}

#[tokio::test]
async fn forwarded_addresses_count_only_behind_trusted_proxies() {
    let request =
        "GET /client HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 203.0.113.1, 203.0.113.2\r\nconnection: close\r\n\r\n";
    let direct = Harness::start(&[]).await;
    assert_eq!(direct.exchange(request).await.body(), b"127.0.0.1");
    let behind = Harness::start(&[("TRUSTED_PROXY_HOPS", "1")]).await;
    assert_eq!(behind.exchange(request).await.body(), b"203.0.113.2");
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let harness = Harness::start(&[]).await;
    let answer = harness.exchange("HEAD /live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert_eq!((answer.status(), answer.body()), (200, &b""[..]));
    assert_eq!(answer.header("content-length").as_deref(), Some("18"));
}

#[tokio::test]
async fn metrics_and_documentation_are_served_without_internet() {
    let harness = Harness::start(&[]).await;
    assert_eq!(harness.exchange(get("/staged")).await.status(), 200);
    let metrics = String::from_utf8(harness.exchange(get("/metrics")).await.0).expect("text");
    assert!(
        metrics.contains(r#"http_stage_duration_seconds_bucket{route="/staged",stage="db",le="0.01"} "#),
        "{metrics}"
    );
    assert!(metrics.contains(r#"http_request_duration_seconds_count{method="GET",route="/staged",status="200"}"#));
    assert_eq!(harness.exchange(get("/openapi.json")).await.status(), 200);
    let page = String::from_utf8(harness.exchange(get("/docs/")).await.0).expect("text");
    assert!(page.contains("swagger-ui") && !page.contains("src=\"http"), "{page}");
}
