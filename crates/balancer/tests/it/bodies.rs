//! Bodies: streamed in both directions, held back, refused early, broken off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::support::{Answer, IDLE_TIMEOUT, RawStub, Running, StandingTime, Stub, Wire, quiet, read_head, soon};

/// Sends every frame of the request back as it comes.
async fn echo() -> Stub {
    Stub::start(|request| async move { Response::new(request.into_body().boxed()) }).await
}

fn refusing(status: StatusCode) -> Answer {
    let mut answer = Stub::text("refused");
    *answer.status_mut() = status;
    answer
}

/// What is counted, once no more comes: everybody waits, and looking again changes nothing.
async fn settled(counted: &AtomicUsize) -> usize {
    let mut before = 0;
    loop {
        quiet().await;
        let now = counted.load(Ordering::SeqCst);
        if now == before && now > 0 {
            return now;
        }
        before = now;
    }
}

#[tokio::test]
async fn a_body_comes_back_while_it_is_still_being_sent() {
    let stub = echo().await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    wire.request("POST", "/v1/auth", "transfer-encoding: chunked\r\n").await;
    wire.send("5\r\nfirst\r\n").await;
    let head = wire.head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
    assert_eq!(wire.take(10).await.unwrap(), b"5\r\nfirst\r\n");
    wire.send("6\r\nsecond\r\n").await;
    assert_eq!(wire.take(11).await.unwrap(), b"6\r\nsecond\r\n");
    wire.send("0\r\n\r\n").await;
    assert_eq!(wire.take(5).await.unwrap(), b"0\r\n\r\n");
}

#[tokio::test]
async fn trailers_travel_in_both_directions() {
    let stub = Stub::start(|request| async move {
        let collected = request.into_body().collect().await.unwrap();
        let trailer = collected.trailers().unwrap()["x-sum"].clone();
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-echoed", trailer);
        let frames = [Frame::data(Bytes::from_static(b"data")), Frame::trailers(trailers)].map(Ok);
        let mut answer = Response::new(BodyExt::boxed(StreamBody::new(stream::iter(frames))));
        answer.headers_mut().insert("trailer", "x-echoed".parse().unwrap());
        answer
    })
    .await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    wire.request("POST", "/v1/auth", "te: trailers\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n").await;
    wire.send("4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n").await;
    assert_eq!(wire.reply().await.text(), "datax-echoed: 42");
}

#[tokio::test]
async fn sixty_four_mebibytes_pass_and_only_buffers_of_them_are_held() {
    const TOTAL: usize = 64 * 1024 * 1024;
    // What the kernel may buffer for two connections (`net.ipv4.tcp_rmem`, `tcp_wmem`), with room to spare.
    const HELD_MAX: usize = 40 * 1024 * 1024;
    let gate = Arc::new(Semaphore::new(0));
    let stub = {
        let gate = gate.clone();
        Stub::start(move |request| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                let (mut sum, mut length, mut body) = (0_u64, 0_usize, request.into_body());
                while let Some(frame) = body.frame().await {
                    let data = frame.unwrap().into_data().unwrap();
                    length += data.len();
                    sum = data.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
                }
                Stub::text(format!("{length} {sum}"))
            }
        })
        .await
    };
    let running = Running::before(&[&stub]).await;
    let wire = running.wire().await;
    let (mut reader, mut writer) = wire.stream.into_split();
    let sent = Arc::new(AtomicUsize::new(0));
    let sending = {
        let sent = sent.clone();
        tokio::spawn(async move {
            let head =
                format!("PUT /v1/auth HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {TOTAL}\r\n\r\n");
            writer.write_all(head.as_bytes()).await.unwrap();
            let (mut sum, mut block) = (0_u64, vec![0_u8; 64 * 1024]);
            for number in 0..TOTAL / block.len() {
                for (at, byte) in block.iter_mut().enumerate() {
                    *byte = u8::try_from((number * 7 + at) % 251).unwrap();
                }
                sum = block.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
                writer.write_all(&block).await.unwrap();
                sent.fetch_add(block.len(), Ordering::SeqCst);
            }
            (writer, sum)
        })
    };
    running.until(stub.address, |target| target.outstanding == 1).await;
    // The stub reads nothing: once no more is taken from the client, all that is held is held somewhere in between.
    let held = settled(&sent).await;
    assert!(held < HELD_MAX, "{held} bytes are held for a target that reads nothing");

    gate.add_permits(1);
    let (_writer, sum) = soon(sending).await.unwrap();
    let mut answer = String::new();
    soon(reader.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.ends_with(&format!("\r\n\r\n{TOTAL} {sum}")), "{answer}");
}

#[tokio::test]
async fn a_large_answer_waits_for_a_slow_reader() {
    const BLOCK: usize = 64 * 1024;
    const BLOCKS: usize = 1024;
    let made = Arc::new(AtomicUsize::new(0));
    let stub = {
        let made = made.clone();
        Stub::start(move |_| {
            let made = made.clone();
            async move {
                let block = Bytes::from(vec![b'x'; BLOCK]);
                let blocks = stream::iter(0..BLOCKS).map(move |_| {
                    made.fetch_add(1, Ordering::SeqCst);
                    Ok(Frame::data(block.clone()))
                });
                Response::new(BodyExt::boxed(StreamBody::new(blocks)))
            }
        })
        .await
    };
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    wire.request("GET", "/v1/auth", "").await;
    let held = settled(&made).await;
    assert!(held * BLOCK < 40 * 1024 * 1024, "{held} blocks are held for a client that reads nothing");
    let reply = wire.reply().await;
    assert_eq!(reply.body.len(), BLOCK * BLOCKS);
    assert!(reply.body.iter().all(|byte| *byte == b'x'));
}

#[tokio::test]
async fn with_expect_the_body_is_asked_for_by_the_target() {
    let read =
        |request: Request<Incoming>| async { Stub::text(request.into_body().collect().await.unwrap().to_bytes()) };
    let stub = Stub::start(read).await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    wire.request("POST", "/v1/auth", "expect: 100-Continue\r\ncontent-length: 4\r\n").await;
    assert_eq!(wire.head().await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    wire.send("body").await;
    assert_eq!(wire.reply().await.text(), "body");
    assert_eq!(wire.get("/live").await.status, 200);
}

#[tokio::test]
async fn with_expect_a_refusal_comes_before_any_of_the_body() {
    for status in [StatusCode::UNAUTHORIZED, StatusCode::PAYLOAD_TOO_LARGE] {
        let stub = Stub::start(move |_| async move { refusing(status) }).await;
        let running = Running::with(|config| config.continue_timeout = Duration::from_hours(1)).await;
        running.register(stub.address).await;
        let mut wire = running.wire().await;
        wire.request("POST", "/v1/auth", "expect: 100-continue\r\ncontent-length: 1000000000\r\n").await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.text()), (status.as_u16(), "refused"), "no 100 Continue came first");
        assert_eq!(reply.header("connection"), Some("close"));
    }
    // The balancer's own refusals, too.
    let running = Running::start().await;
    for (path, code) in [("/nowhere", "not_found"), ("/v1/auth", "no_targets")] {
        let mut wire = running.wire().await;
        wire.request("POST", path, "expect: 100-continue\r\ncontent-length: 1000000000\r\n").await;
        assert_eq!(wire.reply().await.problem(), code);
    }
}

#[tokio::test]
async fn a_target_that_does_not_know_expect_gets_its_body_all_the_same() {
    let asked = Arc::new(Notify::new());
    let heard = asked.clone();
    let stub = RawStub::after_head(move |mut stream, head| {
        heard.notify_one();
        async move {
            assert!(head.contains("expect: 100-continue\r\n"), "{head}");
            let mut body = [0; 4];
            stream.read_exact(&mut body).await.unwrap();
            assert_eq!(&body, b"body");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        }
    })
    .await;
    let running = Running::with(|config| config.continue_timeout = Duration::from_secs(10)).await;
    running.register(stub.address).await;
    let time = StandingTime::new();
    let mut wire = running.wire().await;
    wire.request("POST", "/v1/auth", "expect: 100-continue\r\ncontent-length: 4\r\n").await;
    wire.send("body").await;
    asked.notified().await;
    time.pass(Duration::from_secs(10)).await;
    assert_eq!(wire.head().await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(wire.reply().await.text(), "ok");
}

/// Sends the head and 10 MB, whatever the other side does, and only then looks at the answer.
async fn send_all_then_read(wire: Wire) -> std::io::Result<String> {
    let (mut reader, mut writer) = wire.stream.into_split();
    let head = "POST /v1/auth HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000\r\n\r\n";
    writer.write_all(head.as_bytes()).await?;
    let block = vec![0; 100_000];
    for _ in 0..100 {
        if writer.write_all(&block).await.is_err() {
            break;
        }
    }
    let mut answer = String::new();
    reader.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn an_early_refusal_is_readable_with_ten_megabytes_in_flight() {
    // A task that drains politely, and one that hangs up on what it did not read.
    let polite = Stub::start(|request| async move {
        tokio::spawn(async move {
            let mut body = request.into_body();
            while let Some(Ok(_)) = body.frame().await {}
        });
        refusing(StatusCode::PAYLOAD_TOO_LARGE)
    })
    .await;
    let rude =
        RawStub::answering(b"HTTP/1.1 413 Payload Too Large\r\nconnection: close\r\ncontent-length: 7\r\n\r\nrefused")
            .await;
    for address in [polite.address, rude.address] {
        let running = Running::start().await;
        running.register(address).await;
        let answer = soon(send_all_then_read(running.wire().await)).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nrefused"), "{answer}");
    }
}

#[tokio::test]
async fn the_balancers_own_refusal_is_readable_with_ten_megabytes_in_flight() {
    let running = Running::start().await;
    let answer = soon(send_all_then_read(running.wire().await)).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("no_targets"), "{answer}");
}

#[tokio::test]
async fn a_target_that_answers_without_reading_does_not_keep_the_connection() {
    let stub = RawStub::after_head(|mut stream, _| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        // Keeps the connection open, with half of a body in it.
        std::future::pending::<()>().await;
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    wire.request("POST", "/v1/auth", "content-length: 10\r\n").await;
    wire.send("half").await;
    let reply = wire.reply().await;
    assert_eq!((reply.text(), reply.header("connection")), ("ok", Some("close")));
    let target = running.target(stub.address).unwrap();
    assert_eq!((target.idle_connections, target.outstanding), (0, 0));
}

#[tokio::test]
async fn a_client_that_falls_silent_within_its_body_is_408() {
    let (ended, mut has_ended) = mpsc::channel(1);
    let (begun, mut has_begun) = mpsc::channel(1);
    let stub = RawStub::after_head(move |mut stream, _| {
        let (begun, ended) = (begun.clone(), ended.clone());
        async move {
            let mut body = vec![0; 4];
            stream.read_exact(&mut body).await.unwrap();
            begun.send(()).await.unwrap();
            let _ = stream.read_to_end(&mut body).await;
            ended.send(body).await.unwrap();
        }
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let time = StandingTime::new();
    let mut wire = running.wire().await;
    wire.request("POST", "/v1/auth", "content-length: 10\r\n").await;
    wire.send("half").await;
    soon(has_begun.recv()).await.unwrap();
    time.pass(IDLE_TIMEOUT).await;
    let reply = wire.reply().await;
    assert_eq!(reply.refusal(), (408, "request_timeout".to_owned()));
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(soon(has_ended.recv()).await.unwrap(), b"half", "the target sees the connection end");
    assert_eq!(running.target(stub.address).unwrap().errors, 0, "which was not the target's fault");
}

#[tokio::test]
async fn a_client_that_leaves_within_its_body_ends_the_targets_connection() {
    let (ended, mut has_ended) = mpsc::channel(1);
    let stub = RawStub::after_head(move |mut stream, head| {
        let ended = ended.clone();
        async move {
            assert!(head.contains("transfer-encoding: chunked"), "{head}");
            let mut body = Vec::new();
            let _ = stream.read_to_end(&mut body).await;
            ended.send(body).await.unwrap();
        }
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    wire.request("POST", "/v1/auth", "transfer-encoding: chunked\r\n").await;
    wire.send("4\r\nhalf\r\n").await;
    running.until(stub.address, |target| target.outstanding == 1).await;
    drop(wire);
    let body = soon(has_ended.recv()).await.unwrap();
    assert!(!body.ends_with(b"0\r\n\r\n"), "a body that broke off must not look whole");
    running.until(stub.address, |target| target.outstanding == 0).await;
}

#[tokio::test]
async fn a_body_follows_its_head_on_a_kept_connection() {
    let stub = RawStub::after_head(|mut stream, mut head| async move {
        while !head.is_empty() {
            let mut body = [0; 4];
            stream.read_exact(&mut body).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n").await.unwrap();
            stream.write_all(&body).await.unwrap();
            head = read_head(&mut stream).await;
        }
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    for body in ["aaaa", "bbbb", "cccc"] {
        wire.request("POST", "/v1/auth", "content-length: 4\r\n").await;
        // Head and body in packets of their own.
        running.until(stub.address, |target| target.outstanding == 1).await;
        wire.send(body).await;
        assert_eq!(wire.reply().await.text(), body);
    }
    assert_eq!(stub.accepted(), 2, "one for the health check, one for all three");
}
