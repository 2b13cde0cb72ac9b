//! Deregistering a target.

use std::sync::Arc;
use std::time::Duration;

use balancer::{Reason, TargetState};
use tokio::sync::Semaphore;

use crate::support::{Running, Stub, eventually};

/// A stub that answers when the gate lets it.
async fn gated(gate: &Arc<Semaphore>, text: &'static str) -> Stub {
    let gate = gate.clone();
    Stub::start(move |_| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Stub::text(text)
        }
    })
    .await
}

#[tokio::test]
async fn a_draining_target_finishes_what_it_has_and_gets_nothing_new() {
    let gate = Arc::new(Semaphore::new(0));
    let old = gated(&gate, "old").await;
    let running = Running::before(&[&old]).await;
    let mut waiting = running.wire().await;
    waiting.request("GET", "/v1/auth", "").await;
    running.until(old.address, |target| target.outstanding == 1).await;

    assert_eq!(running.balancer.deregister("auth", old.address), Ok(true));
    let target = running.target(old.address).unwrap();
    assert_eq!((target.state, target.reason), (TargetState::Draining, Some(Reason::DeregistrationInProgress)));
    assert_eq!(running.get("/v1/auth").await.problem(), "no_targets", "not even as the last one");
    let new = Stub::saying("new").await;
    running.register(new.address).await;
    assert_eq!(running.get("/v1/auth").await.text(), "new");

    gate.add_permits(1);
    assert_eq!(waiting.reply().await.text(), "old");
    eventually(|| running.target(old.address).is_none()).await;
    assert_eq!(running.balancer.deregister("auth", old.address), Ok(false));
}

#[tokio::test]
async fn an_idle_target_is_gone_at_once_and_its_connections_are_closed() {
    let stub = Stub::saying("hello").await;
    let running = Running::before(&[&stub]).await;
    let mut wire = running.wire().await;
    assert_eq!(wire.get("/v1/auth").await.text(), "hello");
    assert_eq!(stub.open_connections(), 1);
    running.balancer.deregister("auth", stub.address).unwrap();
    eventually(|| running.target(stub.address).is_none() && stub.open_connections() == 0).await;
    assert_eq!(wire.get("/v1/auth").await.problem(), "no_targets");
}

#[tokio::test]
async fn requests_that_outlast_the_deregistration_delay_are_502() {
    let gate = Arc::new(Semaphore::new(0));
    let stub = gated(&gate, "never").await;
    let running = Running::with(|config| config.groups[0].deregistration_delay = Duration::from_millis(100)).await;
    running.register(stub.address).await;
    let mut waiting = running.wire().await;
    waiting.request("GET", "/v1/auth", "").await;
    running.until(stub.address, |target| target.outstanding == 1).await;
    running.balancer.deregister("auth", stub.address).unwrap();
    let reply = waiting.reply().await;
    assert_eq!(reply.refusal(), (502, "bad_gateway".to_owned()));
    assert!(reply.text().contains("deregist"), "{}", reply.text());
    eventually(|| running.target(stub.address).is_none()).await;
    assert_eq!(waiting.get("/live").await.status, 200);
}

#[tokio::test]
async fn a_draining_target_can_be_registered_again() {
    let gate = Arc::new(Semaphore::new(0));
    let stub = gated(&gate, "back").await;
    let running = Running::before(&[&stub]).await;
    let mut waiting = running.wire().await;
    waiting.request("GET", "/v1/auth", "").await;
    running.until(stub.address, |target| target.outstanding == 1).await;
    running.balancer.deregister("auth", stub.address).unwrap();
    running.balancer.register("auth", stub.address).unwrap();
    let states = || -> Vec<_> { running.balancer.snapshot()[0].targets.iter().map(|target| target.state).collect() };
    eventually(|| states() == [TargetState::Draining, TargetState::Healthy]).await;
    gate.add_permits(2);
    assert_eq!(waiting.reply().await.text(), "back");
    assert_eq!(running.get("/v1/auth").await.text(), "back");
    eventually(|| states() == [TargetState::Healthy]).await;
}
