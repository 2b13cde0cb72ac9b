//! Silent and dribbling clients.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::harness::{Harness, patiently};

#[tokio::test]
async fn silent_and_dribbling_connections_are_closed() {
    let harness = Harness::start(&[("HEADER_READ_TIMEOUT_MS", "200")]).await;
    let mut silent = harness.connect().await;
    let mut dribbling = harness.connect().await;
    dribbling.send("GET /li").await;
    assert_eq!(silent.read_to_end().await.0, b"");
    dribbling.read_to_end().await;
    let mut idle = harness.connect().await;
    idle.send("GET /live HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(idle.read_to_end().await.status(), 200);
}

#[tokio::test]
async fn a_silent_body_is_408_and_the_connection_closes() {
    let harness = Harness::start(&[("BODY_IDLE_TIMEOUT_MS", "200")]).await;
    for path in ["/echo", "/drain-body"] {
        let mut connection = harness.connect().await;
        let head = "HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{";
        connection.send(format!("POST {path} {head}")).await;
        let answer = connection.read_to_end().await;
        answer.assert_problem(408, "request_timeout");
        assert_eq!(answer.header("connection").as_deref(), Some("close"), "{path}");
    }
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_given_up_with_503() {
    let harness = Harness::start(&[("REQUEST_TIMEOUT_MS", "100")]).await;
    let answer = harness.exchange("GET /held HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    answer.assert_problem(503, "request_timeout");
    assert_eq!(answer.header("retry-after").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let harness = Harness::start(&[("WRITE_IDLE_TIMEOUT_MS", "200"), ("MAX_CONNECTIONS", "1")]).await;
    let stalled = TcpStream::connect(harness.address).await.expect("connected");
    let request = b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut { stalled }, request).await.expect("written");
    // The only permit comes back when the stalled connection is cut.
    let answer = harness.exchange("GET /live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn over_the_cap_connections_wait_their_turn() {
    let harness = Harness::start(&[("MAX_CONNECTIONS", "2")]).await;
    let first = harness.connect().await;
    let mut second = harness.connect().await;
    second.send("GET /live HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(second.read_answer().await.status(), 200);
    let mut third = TcpStream::connect(harness.address).await.expect("in the backlog");
    tokio::io::AsyncWriteExt::write_all(&mut third, b"GET /live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .expect("buffered");
    let mut byte = [0];
    assert!(third.try_read(&mut byte).is_err(), "served over the cap");
    drop(first);
    let mut answer = Vec::new();
    patiently(third.read_to_end(&mut answer)).await.expect("answered");
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}
