//! No request is sent twice, whatever happens to its connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::{RawStub, Running, Stub, Wire, read_head, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_killed_under_load_costs_only_what_it_had_and_duplicates_nothing() {
    const CLIENTS: usize = 8;
    const REQUESTS: usize = 60;
    let slow = |name: &'static str| {
        Stub::start(move |_| async move {
            tokio::task::yield_now().await;
            Stub::text(name)
        })
    };
    let (victim, survivor) = (Arc::new(slow("victim").await), slow("survivor").await);
    let running = Running::before(&[&victim, &survivor]).await;
    let sent = Arc::new(AtomicUsize::new(0));

    let clients = (0..CLIENTS).map(|client| {
        let (address, victim, sent) = (running.address, victim.clone(), sent.clone());
        tokio::spawn(async move {
            let mut wire = Wire::connect(address).await;
            let mut statuses = Vec::new();
            for request in 0..REQUESTS {
                if sent.fetch_add(1, Ordering::SeqCst) == CLIENTS * REQUESTS / 4 {
                    victim.kill();
                }
                let id = format!("{client}-{request}");
                wire.request("POST", "/v1/auth/register", &format!("x-test-id: {id}\r\ncontent-length: 2\r\n")).await;
                wire.send("{}").await;
                let reply = wire.reply().await;
                if reply.header("connection") == Some("close") {
                    // The victim died between the request's head and its body.
                    wire = Wire::connect(address).await;
                }
                statuses.push((id, reply.status));
            }
            statuses
        })
    });
    let mut statuses = HashMap::new();
    for client in clients.collect::<Vec<_>>() {
        statuses.extend(soon(client).await.unwrap());
    }

    assert_eq!(statuses.len(), CLIENTS * REQUESTS);
    let (mut seen, seen_by_victim) = (survivor.ids(), victim.ids());
    assert!(!seen_by_victim.is_empty(), "the victim had its share");
    for (id, times) in seen_by_victim {
        *seen.entry(id).or_default() += times;
    }
    assert!(seen.values().all(|times| *times == 1), "a request was sent twice");
    let failed: Vec<_> = statuses.iter().filter(|(_, status)| **status != 200).collect();
    assert!(failed.iter().all(|(_, status)| **status == 502), "{failed:?}");
    // Each client has at most one request at the victim when it dies.
    assert!(failed.len() <= CLIENTS, "{failed:?}");
    for (id, status) in statuses {
        assert!(status != 200 || seen.contains_key(&id), "{id} was answered and never seen");
    }
}

/// A kept connection ends just as it is used again: the request has left, and nobody knows how far it came.
#[tokio::test]
async fn a_post_on_a_connection_that_closes_under_it_is_502_and_not_repeated() {
    let requests = Arc::new(AtomicUsize::new(0));
    let stub = {
        let requests = requests.clone();
        RawStub::after_head(move |mut stream, _| {
            let requests = requests.clone();
            async move {
                requests.fetch_add(1, Ordering::SeqCst);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                // Reads the next request on this connection and hangs up on it.
                if !read_head(&mut stream).await.is_empty() {
                    requests.fetch_add(1, Ordering::SeqCst);
                }
            }
        })
        .await
    };
    let other = Stub::saying("other").await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    assert_eq!(wire.get("/v1/auth").await.status, 200);
    running.register(other.address).await;
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let reply = wire.post("/v1/auth/register", "{}").await;
        statuses.push((reply.status, if reply.status == 502 { reply.problem() } else { reply.text().to_owned() }));
    }
    statuses.sort();
    assert_eq!(statuses, [(200, "other".to_owned()), (502, "bad_gateway".to_owned())]);
    assert_eq!(requests.load(Ordering::SeqCst), 2, "the first GET, and the POST once");
    assert_eq!(other.connections(), 1);
}

/// A stub that answers one request on each connection and then, each time it is told to, does `after` with it and says so.
async fn answering_once<F, Fut>(after: F) -> (RawStub, impl AsyncFn())
where
    F: Fn(TcpStream) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Option<TcpStream>> + Send + 'static,
{
    let (tell, told, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(after));
    let stub = {
        let (tell, told) = (tell.clone(), told.clone());
        RawStub::after_head(move |mut stream, _| {
            let (tell, told, done) = (tell.clone(), told.clone(), done.clone());
            async move {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                tell.notified().await;
                let left = done(stream).await;
                told.notify_one();
                if let Some(mut stream) = left {
                    let _ = stream.read(&mut [0; 1]).await;
                }
            }
        })
        .await
    };
    let act = async move || {
        tell.notify_one();
        soon(told.notified()).await;
    };
    (stub, act)
}

/// A kept connection that ended while nobody used it: nothing is sent on it, and nothing is lost.
#[tokio::test]
async fn a_connection_that_closed_while_it_was_kept_is_replaced() {
    let (stub, close) = answering_once(|stream| async move {
        drop(stream);
        None
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    for _ in 0..20 {
        assert_eq!(wire.post("/v1/auth/register", "{}").await.text(), "ok");
        close().await;
    }
    let target = running.target(stub.address).unwrap();
    assert_eq!((target.requests, target.errors), (20, 0));
    // One for the health check.
    assert_eq!(stub.accepted(), 21);
}

#[tokio::test]
async fn a_target_that_speaks_unasked_loses_its_connection() {
    let (stub, speak) = answering_once(|mut stream| async move {
        // An answer to a question that nobody asked.
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil").await.unwrap();
        Some(stream)
    })
    .await;
    let running = Running::start().await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    assert_eq!(wire.get("/v1/auth").await.text(), "ok");
    speak().await;
    assert_eq!(wire.get("/v1/auth").await.text(), "ok", "the next client does not get it");
}
