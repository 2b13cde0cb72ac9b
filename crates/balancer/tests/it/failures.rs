//! Targets that fail, in the cases that an ALB tells apart.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::support::{RawStub, Running, Stub, soon};

/// An address at which nobody listens.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn a_group_without_targets_is_503_with_retry_after() {
    let running = Running::start().await;
    let mut wire = running.wire().await;
    let reply = wire.post("/v1/auth/login", "{}").await;
    assert_eq!(reply.refusal(), (503, "no_targets".to_owned()));
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(wire.get("/v1/actors/me").await.problem(), "no_targets", "the connection goes on");
}

#[tokio::test]
async fn a_refused_connection_goes_to_the_next_target() {
    let stub = Stub::saying("alive").await;
    let running = Running::start().await;
    // Nobody is healthy: all are tried.
    let dead = nobody().await;
    running.register_unchecked(dead);
    running.register(stub.address).await;
    // The dead one was healthy until now, as far as anybody knows.
    let late = Stub::saying("late").await;
    running.register(late.address).await;
    late.kill();
    let mut wire = running.wire().await;
    for _ in 0..6 {
        let reply = wire.post("/v1/auth/register", "{}").await;
        assert_eq!((reply.status, reply.text()), (200, "alive"));
    }
    let target = running.target(late.address).unwrap();
    assert!(target.connect_failures >= 3, "{target:?}");
    assert_eq!(target.requests, 0, "nothing was sent to it");
}

#[tokio::test]
async fn when_every_target_refuses_it_is_502() {
    let running = Running::start().await;
    running.register_unchecked(nobody().await);
    running.register_unchecked(nobody().await);
    assert_eq!(running.get("/v1/auth").await.refusal(), (502, "bad_gateway".to_owned()));
    for target in &running.balancer.snapshot()[0].targets {
        assert!(target.connect_failures >= 1, "{target:?}");
    }
}

/// Accepts and hangs up, as a task does that is out of file descriptors.
#[tokio::test]
async fn a_target_that_hangs_up_at_once_is_not_asked_for_ever() {
    let stub = RawStub::start(|stream| async move { drop(stream) }).await;
    let running = Running::start().await;
    running.register_unchecked(stub.address);
    for _ in 0..20 {
        assert_eq!(running.get("/v1/auth").await.refusal(), (502, "bad_gateway".to_owned()));
    }
    // Each request tried it once, and so did the health check.
    assert!(stub.accepted() <= 21, "{}", stub.accepted());
}

#[tokio::test]
async fn what_is_not_a_whole_head_is_502() {
    for bytes in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
    ] {
        let stub = RawStub::answering(bytes).await;
        let running = Running::start().await;
        running.register(stub.address).await;
        let reply = running.get("/v1/auth").await;
        assert_eq!(reply.refusal(), (502, "bad_gateway".to_owned()), "{}", String::from_utf8_lossy(bytes));
        assert_eq!(running.target(stub.address).unwrap().requests, 1);
    }
}

#[tokio::test]
async fn an_answer_head_without_end_is_502() {
    let stub = RawStub::after_head(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(&[b"x-filler: ".as_slice(), &[b'x'; 1000], b"\r\n"].concat()).await.is_ok() {}
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    assert_eq!(running.get("/v1/auth").await.refusal(), (502, "bad_gateway".to_owned()));
}

#[tokio::test]
async fn a_silent_target_is_504() {
    let stub = RawStub::after_head(|stream, _| async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let running = Running::with(|config| config.idle_timeout = Duration::from_millis(200)).await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    let reply = wire.get("/v1/auth").await;
    assert_eq!(reply.refusal(), (504, "gateway_timeout".to_owned()));
    assert_eq!(running.target(stub.address).unwrap().errors, 1);
    assert_eq!(wire.get("/live").await.status, 200, "the client's connection goes on");
}

/// The kernel ignores connections to a listener whose queue is full.
async fn full_listener() -> (SocketAddr, tokio::net::TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(connected) = tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
        queued.push(connected.unwrap());
    }
    (address, listener, queued)
}

#[tokio::test]
async fn a_target_that_accepts_no_connection_is_504() {
    let (address, _listener, _queued) = full_listener().await;
    let running = Running::with(|config| {
        config.target_connections.connect_timeout = Duration::from_millis(100);
    })
    .await;
    running.register_unchecked(address);
    assert_eq!(running.get("/v1/auth").await.refusal(), (504, "gateway_timeout".to_owned()));
    assert_eq!(running.target(address).unwrap().connect_failures, 1);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_taken_for_a_whole_one() {
    for (request, answer) in [
        ("HTTP/1.1", &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"[..]),
        ("HTTP/1.1", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
        // The client cannot know the length: only the way that the connection ends tells.
        ("HTTP/1.0", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
    ] {
        let stub = RawStub::answering(answer).await;
        let running = Running::start().await;
        running.register(stub.address).await;
        let mut wire = running.wire().await;
        wire.send(format!("GET /v1/auth {request}\r\nhost: datum\r\n\r\n")).await;
        let error = wire.try_reply().await.expect_err("half an answer");
        let kind = error.kind();
        assert!(matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof), "{kind:?}");
        assert!(request != "HTTP/1.0" || kind == io::ErrorKind::ConnectionReset, "{kind:?}");
        running.until(stub.address, |target| target.errors == 1).await;
    }
}

#[tokio::test]
async fn a_target_that_falls_silent_within_its_answer_is_cut() {
    let stub = RawStub::after_head(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
        std::future::pending::<()>().await;
    })
    .await;
    let running = Running::with(|config| config.idle_timeout = Duration::from_millis(200)).await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    wire.request("GET", "/v1/auth", "").await;
    assert!(wire.try_reply().await.is_err());
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_with_it() {
    let (left, mut has_left) = tokio::sync::mpsc::channel(1);
    let stub = RawStub::after_head(move |mut stream, _| {
        let left = left.clone();
        async move {
            let ended = stream.read(&mut [0; 16]).await;
            left.send(matches!(ended, Ok(0) | Err(_))).await.unwrap();
        }
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    wire.request("GET", "/v1/auth", "").await;
    running.until(stub.address, |target| target.outstanding == 1).await;
    drop(wire);
    assert_eq!(soon(has_left.recv()).await, Some(true));
    running.until(stub.address, |target| target.outstanding == 0).await;
}
