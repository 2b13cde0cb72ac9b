//! Where a request ends: nothing may be understood in two ways.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{RawStub, Running, Stub, soon};

/// A balancer before a stub that counts what reaches it.
async fn counted() -> (Running, Stub) {
    let stub = Stub::start(|request| async move { Stub::text(request.uri().path().to_owned()) }).await;
    let running = Running::before(&[&stub]).await;
    (running, stub)
}

const SMUGGLED: &str = "GET /v1/auth/smuggled HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn ambiguous_lengths_are_refused_and_end_the_connection() {
    for (framing, body, code) in [
        ("content-length: 4\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n", "malformed_request"),
        ("transfer-encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n", "malformed_request"),
        ("content-length: 4\r\ncontent-length: 5\r\n", "abcd", "malformed_request"),
        ("content-length: 4, 5\r\n", "abcd", "malformed_request"),
        ("content-length: +4\r\n", "abcd", "malformed_request"),
        ("content-length: -1\r\n", "", "malformed_request"),
        ("content-length: 0x4\r\n", "abcd", "malformed_request"),
        ("content-length: 99999999999999999999\r\n", "abcd", "malformed_request"),
        ("content-length:\r\n", "abcd", "malformed_request"),
        ("content-length : 4\r\n", "abcd", "malformed_request"),
        ("transfer-encoding : chunked\r\n", "0\r\n\r\n", "malformed_request"),
        ("x: y\r\n transfer-encoding: chunked\r\n", "0\r\n\r\n", "malformed_request"),
        ("transfer-encoding: gzip\r\n", "abcd", "unsupported_transfer_encoding"),
        ("transfer-encoding: gzip, chunked\r\n", "0\r\n\r\n", "unsupported_transfer_encoding"),
        ("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n", "unsupported_transfer_encoding"),
        ("transfer-encoding: xchunked\r\n", "0\r\n\r\n", "unsupported_transfer_encoding"),
        ("transfer-encoding: chunked, chunked\r\n", "0\r\n\r\n", "unsupported_transfer_encoding"),
        ("transfer-encoding: \"chunked\"\r\n", "0\r\n\r\n", "unsupported_transfer_encoding"),
    ] {
        let (running, stub) = counted().await;
        let mut wire = running.wire().await;
        wire.send(format!("POST /v1/auth HTTP/1.1\r\nhost: a\r\n{framing}\r\n{body}{SMUGGLED}")).await;
        let reply = wire.reply().await;
        assert_eq!(reply.problem(), code, "{framing:?}");
        assert_eq!(reply.header("connection"), Some("close"), "{framing:?}");
        wire.closed().await;
        assert_eq!(stub.connections(), 0, "{framing:?} reached a target");
    }
}

/// Where the ambiguous request hides behind another one, hyper's repair holds: chunks count, the length is not passed on,
/// and the connection ends after it.
#[tokio::test]
async fn an_ambiguous_request_that_was_pipelined_is_repaired_and_ends_the_connection() {
    let stub = Stub::mirror().await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    let first = "GET /v1/auth/first HTTP/1.1\r\nhost: a\r\n\r\n";
    let second =
        "POST /v1/auth/second HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    wire.send(format!("{first}{second}{SMUGGLED}")).await;
    assert_eq!(wire.reply().await.status, 200);
    let reply = wire.reply().await;
    assert!(!reply.text().contains("content-length"), "{}", reply.text());
    assert!(reply.text().contains("transfer-encoding: chunked"), "{}", reply.text());
    assert_eq!(reply.header("connection"), Some("close"));
    wire.closed().await;
}

#[tokio::test]
async fn equal_lengths_said_twice_are_one() {
    let stub = Stub::mirror().await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    let request = "POST /v1/auth HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ncontent-length: 4\r\n\r\nabcd";
    let reply = wire.exchange(request).await;
    assert_eq!(reply.text().matches("content-length: 4\n").count(), 1, "{}", reply.text());
}

/// Reads whatever arrives until the connection ends or the marker has come.
async fn read_until(stream: &mut TcpStream, marker: &str) -> String {
    let mut read = Vec::new();
    let mut chunk = [0; 1024];
    while !String::from_utf8_lossy(&read).contains(marker) {
        match stream.read(&mut chunk).await {
            Ok(count @ 1..) => read.extend_from_slice(&chunk[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn a_broken_chunk_is_400_and_the_target_never_sees_an_end() {
    for chunks in
        ["zz\r\nabc\r\n0\r\n\r\n", "3\r\nabcX\r\n0\r\n\r\n", "-1\r\n\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nabc"]
    {
        let (seen, mut was_seen) = tokio::sync::mpsc::channel(1);
        let stub = RawStub::after_head(move |mut stream, _| {
            let seen = seen.clone();
            async move { seen.send(read_until(&mut stream, "0\r\n\r\n").await).await.unwrap() }
        })
        .await;
        let running = Running::start().await;
        running.register(stub.address).await;
        let mut wire = running.wire().await;
        wire.send(format!("POST /v1/auth HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{SMUGGLED}"))
            .await;
        let reply = wire.reply().await;
        assert_eq!(reply.refusal(), (400, "incomplete_body".to_owned()), "{chunks:?}");
        wire.closed().await;
        let seen = soon(was_seen.recv()).await.unwrap();
        assert!(!seen.contains("0\r\n\r\n") && !seen.contains("smuggled"), "{chunks:?} became {seen:?}");
    }
}

#[tokio::test]
async fn a_chunked_get_keeps_its_body_and_its_boundary() {
    let stub = RawStub::after_head(|mut stream, head| async move {
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let body = read_until(&mut stream, "0\r\n\r\n").await;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    wire.send("GET /v1/auth HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").await;
    assert_eq!(wire.reply().await.text(), "3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(wire.get("/live").await.status, 200);
}

#[tokio::test]
async fn hosts_are_exactly_one() {
    let (running, stub) = counted().await;
    for head in [
        "GET /v1/auth HTTP/1.1\r\n\r\n",
        "GET /v1/auth HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
        "GET /v1/auth HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n",
    ] {
        let mut wire = running.wire().await;
        wire.send(head).await;
        assert_eq!(wire.reply().await.refusal(), (400, "malformed_request".to_owned()), "{head:?}");
        wire.closed().await;
    }
    assert_eq!(stub.connections(), 0);
}

#[tokio::test]
async fn what_is_not_http_1_is_told_so() {
    let (running, stub) = counted().await;
    for (bytes, status, code) in [
        ("GET /v1/auth\r\n\r\n", 400, "malformed_request"),
        ("GET  /v1/auth HTTP/1.1\r\nhost: a\r\n\r\n", 400, "malformed_request"),
        ("GET /v1/auth HTTP/1.1\r\nno colon\r\n\r\n", 400, "malformed_request"),
        ("GET /v1/auth HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n", 400, "malformed_request"),
        ("GET /v1/auth\u{7f} HTTP/1.1\r\nhost: a\r\n\r\n", 400, "malformed_request"),
        ("G\u{1}T / HTTP/1.1\r\nhost: a\r\n\r\n", 400, "malformed_request"),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0", 400, "malformed_request"),
        ("GET /v1/auth HTTP/2.0\r\nhost: a\r\n\r\n", 505, "unsupported_version"),
        ("GET /v1/auth HTTP/3\r\nhost: a\r\n\r\n", 505, "unsupported_version"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0", 505, "unsupported_version"),
    ] {
        let mut wire = running.wire().await;
        wire.send(bytes).await;
        let reply = wire.reply().await;
        assert_eq!(reply.refusal(), (status, code.to_owned()), "{bytes:?}");
        assert!(reply.header("date").is_some() && reply.header("x-request-id").is_some());
        wire.closed().await;
    }
    assert_eq!(stub.connections(), 0);
}

#[tokio::test]
async fn methods_that_an_alb_refuses_are_refused() {
    let (running, stub) = counted().await;
    for head in ["TRACE /v1/auth HTTP/1.1\r\nhost: a\r\n\r\n", "CONNECT datum:80 HTTP/1.1\r\nhost: datum:80\r\n\r\n"] {
        let mut wire = running.wire().await;
        wire.send(head).await;
        assert_eq!(wire.reply().await.refusal(), (405, "method_not_allowed".to_owned()), "{head:?}");
    }
    let mut wire = running.wire().await;
    wire.send("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(wire.reply().await.refusal(), (404, "not_found".to_owned()));
    assert_eq!(stub.connections(), 0);
    wire.send("PROPFIND /v1/auth HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(wire.reply().await.text(), "/v1/auth", "methods are the service's business");
}

#[tokio::test]
async fn websockets_are_refused_and_other_upgrades_passed_over() {
    let (running, _stub) = counted().await;
    let upgrade = |protocol: &str| {
        format!("GET /v1/auth HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n")
    };
    let mut wire = running.wire().await;
    assert_eq!(wire.exchange(upgrade("websocket")).await.refusal(), (501, "unsupported_upgrade".to_owned()));
    assert_eq!(wire.exchange(upgrade("h2c")).await.text(), "/v1/auth");
}
