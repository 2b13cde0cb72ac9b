//! What a target sees of a request, and a client of an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::StatusCode;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use crate::support::{RawStub, Running, Stub, read_head};

/// Sends this head to a mirror and returns the head that arrived there.
async fn mirrored(head: &str) -> String {
    let stub = Stub::mirror().await;
    let running = Running::before(&[&stub]).await;
    let reply = running.wire().await.exchange(head).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text().replace(&format!(": {}\n", running.address.port()), ": PORT\n")
}

fn value<'m>(mirrored: &'m str, name: &str) -> Option<&'m str> {
    let mut values = mirrored.lines().filter_map(|line| line.split_once(": ")).filter(|(found, _)| *found == name);
    let first = values.next();
    assert!(values.next().is_none(), "{name} is there twice");
    first.map(|(_, value)| value)
}

#[tokio::test]
async fn the_target_learns_who_asks_and_how() {
    let head =
        mirrored("GET /v1/auth/x?y=%20z HTTP/1.1\r\nHost: datum.example\r\nAuthorization: Bearer t\r\n\r\n").await;
    assert!(head.starts_with("GET /v1/auth/x?y=%20z\n"), "{head}");
    assert_eq!(value(&head, "host"), Some("datum.example"));
    assert_eq!(value(&head, "authorization"), Some("Bearer t"));
    assert_eq!(value(&head, "x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(value(&head, "x-forwarded-proto"), Some("http"));
    assert_eq!(value(&head, "x-forwarded-port"), Some("PORT"));
    assert_eq!(value(&head, "x-request-id").unwrap().len(), 32);
    assert_eq!(value(&head, "connection"), None);
}

#[tokio::test]
async fn a_forward_delay_passes_before_the_target_sees_anything() {
    let delay = Duration::from_millis(300);
    let (asked, mut seen) = mpsc::unbounded_channel();
    let stub = Stub::start(move |_| {
        let asked = asked.clone();
        async move {
            asked.send(Instant::now()).unwrap();
            Stub::text("served")
        }
    })
    .await;
    let running = Running::with(|config| config.forward_delay = Some(delay)).await;
    running.register(stub.address).await;
    let started = Instant::now();
    let reply = running.get("/v1/auth/x").await;
    assert_eq!((reply.status, reply.text()), (200, "served"));
    let waited = seen.recv().await.unwrap().duration_since(started);
    assert!(waited >= delay, "it arrived after {waited:?}");
}

#[tokio::test]
async fn claims_are_kept_before_the_balancers_own_word() {
    let head = mirrored(
        "GET /v1/auth HTTP/1.1\r\nhost: a\r\nX-Forwarded-For: 192.0.2.1, 192.0.2.2\r\nX-Forwarded-For: 192.0.2.3\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-Port: 443\r\nX-Request-Id: mine\r\n\r\n",
    )
    .await;
    assert_eq!(value(&head, "x-forwarded-for"), Some("192.0.2.1, 192.0.2.2, 192.0.2.3, 127.0.0.1"));
    assert_eq!(value(&head, "x-forwarded-proto"), Some("http"));
    assert_eq!(value(&head, "x-forwarded-port"), Some("PORT"));
    assert_eq!(value(&head, "x-request-id"), Some("mine"));
}

#[tokio::test]
async fn what_concerns_one_hop_stays_there() {
    let head = mirrored(
        "GET /v1/auth HTTP/1.1\r\nhost: a\r\nConnection: keep-alive, X-Secret, X-Forwarded-For, Host\r\nX-Secret: 1\r\n\
         Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\nTE: trailers, gzip\r\nX-Kept: 1\r\n\
         X-Forwarded-For: 192.0.2.1\r\n\r\n",
    )
    .await;
    for name in ["connection", "x-secret", "keep-alive", "proxy-connection", "upgrade"] {
        assert_eq!(value(&head, name), None, "{name}");
    }
    assert_eq!(value(&head, "te"), Some("trailers"));
    assert_eq!(value(&head, "x-kept"), Some("1"));
    assert_eq!(value(&head, "host"), Some("a"));
    assert_eq!(value(&head, "x-forwarded-for"), Some("127.0.0.1"), "what the client disowns is not appended to");
}

#[tokio::test]
async fn an_absolute_target_becomes_a_relative_one() {
    let head = mirrored("GET http://user@real.example:81/v1/auth?x HTTP/1.1\r\nhost: other\r\n\r\n").await;
    assert!(head.starts_with("GET /v1/auth?x\n"), "{head}");
    assert_eq!(value(&head, "host"), Some("real.example:81"));
}

#[tokio::test]
async fn an_old_client_is_served_and_its_target_sees_http_1_1() {
    let stub = Stub::mirror().await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    wire.send("GET /v1/auth HTTP/1.0\r\n\r\n").await;
    let whole = String::from_utf8(wire.rest().await.unwrap()).unwrap();
    assert!(whole.starts_with("HTTP/1.0 200 OK\r\n"), "{whole}");
    assert!(whole.contains(&format!("\nhost: {}\n", stub.address)), "{whole}");
    assert!(!whole.to_ascii_lowercase().contains("transfer-encoding"), "{whole}");

    let mut kept = running.wire().await;
    let head = "GET /v1/auth HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n";
    let reply = kept.exchange(head).await;
    assert_eq!(reply.header("connection"), Some("keep-alive"));
    assert_eq!(kept.exchange(head).await.status, 200);
}

#[tokio::test]
async fn the_answer_comes_through_as_it_is() {
    let stub = RawStub::answering(
        b"HTTP/1.1 299 Quite Fine\r\nServer-Timing: db;dur=1.5, total;dur=2\r\nETag: \"x\"\r\nSet-Cookie: a=1\r\n\
          Set-Cookie: b=2\r\nX-Request-Id: theirs\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
          Content-Length: 4\r\n\r\nbody",
    )
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    let reply = wire.get("/v1/auth").await;
    assert!(reply.head.starts_with("HTTP/1.1 299 Quite Fine\r\n"), "{}", reply.head);
    assert_eq!(reply.header("server-timing"), Some("db;dur=1.5, total;dur=2"));
    assert_eq!(reply.header("etag"), Some("\"x\""));
    assert_eq!(reply.header("x-request-id"), Some("theirs"));
    assert_eq!(reply.head.matches("set-cookie: ").count(), 2);
    for name in ["connection", "x-hop", "keep-alive", "server"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    assert_eq!(reply.text(), "body");
    assert_eq!(wire.get("/live").await.status, 200, "the target's close is not the client's");
}

#[tokio::test]
async fn an_answer_without_a_request_id_gets_the_one_that_the_target_saw() {
    let stub = Stub::mirror().await;
    let running = Running::before(&[&stub]).await;
    let reply = running.get("/v1/auth").await;
    assert_eq!(reply.header("x-request-id"), value(reply.text(), "x-request-id"));
}

#[tokio::test]
async fn answers_without_bodies_keep_their_lengths_and_the_connection() {
    let stub = RawStub::after_head(|mut stream, mut head| async move {
        while !head.is_empty() {
            let answer = match head.split(' ').nth(1).unwrap() {
                "/v1/auth/204" => "HTTP/1.1 204 No Content\r\n\r\n",
                "/v1/auth/304" => "HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n",
                "/v1/auth/empty" => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n",
            };
            stream.write_all(answer.as_bytes()).await.unwrap();
            head = read_head(&mut stream).await;
        }
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    wire.request("HEAD", "/v1/auth/head", "").await;
    assert_eq!(wire.head_reply().await.header("content-length"), Some("1234"));
    assert_eq!(wire.get("/v1/auth/204").await.status, 204);
    assert_eq!(wire.get("/v1/auth/304").await.header("etag"), Some("\"x\""));
    assert_eq!(wire.get("/v1/auth/empty").await.body, b"");
    wire.request("HEAD", "/v1/auth/head", "").await;
    assert_eq!(wire.head_reply().await.status, 200);
    // One connection for the health check.
    assert_eq!(stub.accepted(), 2, "all on one connection");
}

#[tokio::test]
async fn connections_are_kept_on_both_sides_and_many_clients_share_them() {
    let stub = Stub::saying("hello").await;
    let running = Running::before(&[&stub]).await;
    for _ in 0..5 {
        let mut wire = running.wire().await;
        for _ in 0..20 {
            assert_eq!(wire.get("/v1/auth").await.text(), "hello");
        }
    }
    assert_eq!(stub.connections(), 1);
    assert_eq!(running.target(stub.address).unwrap().idle_connections, 1);
}

#[tokio::test]
async fn what_is_kept_is_closed_before_the_target_would() {
    let stub = Stub::saying("hello").await;
    let running = Running::with(|config| {
        config.target_connections.idle_timeout = std::time::Duration::from_millis(50);
        config.groups[0].health.interval = std::time::Duration::from_millis(20);
        config.groups[0].health.timeout = std::time::Duration::from_millis(19);
    })
    .await;
    running.register_unchecked(stub.address);
    assert_eq!(running.get("/v1/auth").await.text(), "hello");
    running.until(stub.address, |target| target.idle_connections == 0).await;
    crate::support::eventually(|| stub.open_connections() == 0).await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let turn = Arc::new(AtomicUsize::new(0));
    let stub = {
        let turn = turn.clone();
        Stub::start(move |request| {
            let number = turn.fetch_add(1, Ordering::SeqCst);
            async move {
                let mut answer = Stub::text(format!("{number} {}", request.uri().path()));
                *answer.status_mut() = StatusCode::ACCEPTED;
                answer
            }
        })
        .await
    };
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    wire.send(request("/v1/auth/a") + &request("/nowhere") + &request("/v1/auth/b") + &request("/live")).await;
    let mut texts = Vec::new();
    for _ in 0..4 {
        let reply = wire.reply().await;
        texts.push(if reply.status == 404 { reply.problem() } else { reply.text().to_owned() });
    }
    assert_eq!(texts, ["0 /v1/auth/a", "not_found", "1 /v1/auth/b", r#"{"status":"alive"}"#]);
}
