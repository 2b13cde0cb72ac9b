//! Limits of time, size and number on the client's side.

use std::time::Duration;

use crate::support::{IDLE_TIMEOUT, Running, StandingTime, Stub};

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_word() {
    let running = Running::start().await;
    let time = StandingTime::new();
    let (mut unused, mut used) = (running.wire().await, running.wire().await);
    // Both have been accepted then, in their order.
    assert_eq!(used.get("/live").await.status, 200);
    time.pass(IDLE_TIMEOUT).await;
    unused.closed().await;
    used.closed().await;
}

#[tokio::test]
async fn a_connection_within_its_idle_time_is_kept() {
    let running = Running::start().await;
    let time = StandingTime::new();
    let mut wire = running.wire().await;
    for _ in 0..10 {
        time.pass(IDLE_TIMEOUT.saturating_sub(Duration::from_secs(1))).await;
        assert_eq!(wire.get("/live").await.status, 200);
    }
    time.pass(IDLE_TIMEOUT).await;
    wire.closed().await;
}

#[tokio::test]
async fn a_head_that_dribbles_in_is_408() {
    let running = Running::start().await;
    let time = StandingTime::new();
    let mut wire = running.wire().await;
    wire.send("GET /live HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    assert_eq!(running.get("/live").await.status, 200, "which comes after it was accepted");
    // A byte a second: what counts is the whole head.
    for _ in 0..IDLE_TIMEOUT.as_secs() {
        wire.send("x").await;
        time.pass(Duration::from_secs(1)).await;
    }
    assert_eq!(wire.reply().await.refusal(), (408, "request_timeout".to_owned()));
    wire.closed().await;
}

#[tokio::test]
async fn slow_clients_do_not_hold_up_others() {
    let stub = Stub::saying("quick").await;
    let running = Running::before(&[&stub]).await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut wire = running.wire().await;
        wire.send("POST /v1/auth HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n").await;
        slow.push(wire);
    }
    for _ in 0..20 {
        assert_eq!(running.get("/v1/auth").await.text(), "quick");
    }
    for wire in &mut slow {
        wire.send("\r\nwhole").await;
        assert_eq!(wire.reply().await.text(), "quick");
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_by_what_is_too_large() {
    let running = Running::start().await;
    let long = |bytes: usize| "a".repeat(bytes);
    for (head, status, code) in [
        (format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", long(17_000)), 414, "uri_too_long"),
        (format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", long(200_000)), 414, "uri_too_long"),
        (format!("GET /live HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", long(70_000)), 431, "headers_too_large"),
        (format!("GET /live HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(200)), 431, "headers_too_large"),
    ] {
        let mut wire = running.wire().await;
        wire.send(&head).await;
        assert_eq!(wire.reply().await.refusal(), (status, code.to_owned()), "{}", &head[..40]);
        wire.closed().await;
    }
    let fitting = format!("GET /live?{} HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", long(16_000), long(40_000));
    assert_eq!(running.wire().await.exchange(fitting).await.status, 200);
}

#[tokio::test]
async fn too_many_forwarded_addresses_are_463() {
    let stub = Stub::mirror().await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    let with = |count: usize| format!("x-forwarded-for: {}\r\n", vec!["192.0.2.1"; count].join(","));
    wire.request("GET", "/v1/auth", &with(30)).await;
    assert_eq!(wire.reply().await.status, 200);
    wire.request("GET", "/v1/auth", &with(31)).await;
    assert_eq!(wire.reply().await.refusal(), (463, "too_many_forwarded_addresses".to_owned()));
    assert_eq!(running.target(stub.address).unwrap().requests, 1);
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let running = Running::with(|config| config.max_connections = 2).await;
    let (mut one, mut two, mut three) = (running.wire().await, running.wire().await, running.wire().await);
    for wire in [&mut one, &mut two] {
        assert_eq!(wire.get("/live").await.status, 200);
    }
    let reply = three.get("/live").await;
    assert_eq!(reply.refusal(), (503, "balancer_exhausted".to_owned()));
    assert!(reply.header("retry-after").is_some());
    three.closed().await;
    drop(one);
    // The place is free as soon as the balancer has noticed.
    let mut statuses = Vec::new();
    while statuses.last() != Some(&200) {
        statuses.push(running.get("/live").await.status);
        assert!(statuses.len() < 10_000, "{statuses:?}");
    }
    assert_eq!(two.get("/live").await.status, 200);
}
