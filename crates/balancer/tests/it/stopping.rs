//! Stopping the balancer itself.

use std::sync::Arc;
use std::time::Duration;

use balancer::Outcome;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::support::{Running, Stub, eventually};

async fn gated(gate: &Arc<Semaphore>) -> Stub {
    let gate = gate.clone();
    Stub::start(move |_| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Stub::text("done")
        }
    })
    .await
}

#[tokio::test]
async fn requests_in_progress_finish_and_say_that_the_connection_ends() {
    let gate = Arc::new(Semaphore::new(0));
    let stub = gated(&gate).await;
    let running = Running::before(&[&stub]).await;
    let (mut busy, mut idle) = (running.wire().await, running.wire().await);
    assert_eq!(idle.get("/live").await.status, 200);
    let mut unused = running.wire().await;
    busy.request("GET", "/v1/auth", "").await;
    running.until(stub.address, |target| target.outstanding == 1).await;
    let address = running.address;
    running.shutdown.begin();
    idle.closed().await;
    unused.closed().await;
    assert!(TcpStream::connect(address).await.is_err(), "it no longer listens");
    gate.add_permits(1);
    let reply = busy.reply().await;
    assert_eq!((reply.text(), reply.header("connection")), ("done", Some("close")));
    busy.closed().await;
    assert_eq!(running.stopped().await, Outcome::Drained);
}

#[tokio::test]
async fn during_the_delay_new_connections_are_served() {
    let running = Running::with(|config| config.stop.delay = Duration::from_hours(1)).await;
    running.shutdown.begin();
    assert_eq!(running.get("/live").await.status, 200);
    assert_eq!(running.get("/live").await.status, 200);
    // A second request to stop does not wait.
    assert_eq!(running.stop().await, Outcome::Drained);
}

#[tokio::test]
async fn what_outlasts_the_deadline_is_cut() {
    let stub = gated(&Arc::new(Semaphore::new(0))).await;
    let running = Running::with(|config| config.stop.deadline = Duration::from_millis(100)).await;
    running.register(stub.address).await;
    let mut wire = running.wire().await;
    wire.request("GET", "/v1/auth", "").await;
    running.until(stub.address, |target| target.outstanding == 1).await;
    assert_eq!(running.stop().await, Outcome::Cut { connections: 1 });
    assert!(wire.try_reply().await.is_err());
    eventually(|| stub.open_connections() == 0).await;
}

#[tokio::test]
async fn a_client_that_is_only_waited_for_does_not_outlast_the_deadline() {
    let running = Running::with(|config| config.stop.deadline = Duration::from_millis(100)).await;
    let mut wire = running.wire().await;
    // Refused, and its body read and dropped for as long as it comes.
    wire.request("POST", "/v1/auth", "content-length: 1000000000\r\n").await;
    assert_eq!(wire.reply().await.problem(), "no_targets");
    let sending = tokio::spawn(async move {
        loop {
            if tokio::io::AsyncWriteExt::write_all(&mut wire.stream, &[0; 100]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let outcome = running.stop().await;
    assert!(matches!(outcome, Outcome::Drained | Outcome::Cut { connections: 1 }), "{outcome:?}");
    crate::support::soon(sending).await.unwrap();
}

#[tokio::test]
async fn with_the_last_handle_the_checks_end() {
    let stub = Stub::saying("hello").await;
    let running = Running::with(|config| {
        config.groups[0].health.interval = Duration::from_millis(5);
        config.groups[0].health.timeout = Duration::from_millis(4);
    })
    .await;
    running.register_unchecked(stub.address);
    let balancer = running.balancer.clone();
    assert_eq!(running.stop().await, Outcome::Drained);
    drop(balancer);
    // The runtime of this test has nothing left but the stub: with a check still running its tasks would outnumber it.
    let metrics = tokio::runtime::Handle::current().metrics();
    eventually(|| metrics.num_alive_tasks() <= 1).await;
}
