//! Which target gets the next request.

use std::collections::HashMap;
use std::sync::Arc;

use balancer::Algorithm;
use tokio::sync::Semaphore;

use crate::support::{Running, Stub, eventually};

#[tokio::test]
async fn round_robin_gives_every_target_the_same_share() {
    let stubs = [Stub::saying("a").await, Stub::saying("b").await, Stub::saying("c").await];
    let running = Running::before(&[&stubs[0], &stubs[1], &stubs[2]]).await;
    let mut wire = running.wire().await;
    let mut answers = HashMap::<String, usize>::new();
    for _ in 0..300 {
        *answers.entry(wire.get("/v1/auth").await.text().to_owned()).or_default() += 1;
    }
    assert_eq!(answers, HashMap::from(["a", "b", "c"].map(|stub| (stub.to_owned(), 100))));
    for stub in &stubs {
        let target = running.target(stub.address).unwrap();
        assert_eq!((target.requests, target.errors, target.outstanding), (100, 0, 0));
        assert_eq!(stub.connections(), 1, "one client at a time needs one connection");
    }
}

#[tokio::test]
async fn least_outstanding_requests_avoids_a_target_that_is_stuck() {
    let gate = Arc::new(Semaphore::new(0));
    let stuck = {
        let gate = gate.clone();
        Stub::start(move |_| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                Stub::text("stuck")
            }
        })
        .await
    };
    let quick = Stub::saying("quick").await;
    let running = Running::with(|config| config.groups[0].algorithm = Algorithm::LeastOutstandingRequests).await;
    running.register(stuck.address).await;
    running.register(quick.address).await;

    let mut waiting = running.wire().await;
    // Equals take turns, so that one of two requests meets the stuck target.
    let mut other = running.wire().await;
    waiting.request("GET", "/v1/auth", "").await;
    eventually(|| {
        running.target(stuck.address).unwrap().requests + running.target(quick.address).unwrap().requests == 1
    })
    .await;
    if running.target(stuck.address).unwrap().outstanding == 0 {
        assert_eq!(waiting.reply().await.text(), "quick");
        waiting.request("GET", "/v1/auth", "").await;
        running.until(stuck.address, |target| target.outstanding == 1).await;
    }
    for _ in 0..20 {
        assert_eq!(other.get("/v1/auth").await.text(), "quick");
    }
    gate.add_permits(1);
    assert_eq!(waiting.reply().await.text(), "stuck");
    running.until(stuck.address, |target| target.outstanding == 0).await;
}

#[tokio::test]
async fn a_target_can_join_at_any_time() {
    let (first, second) = (Stub::saying("first").await, Stub::saying("second").await);
    let running = Running::before(&[&first]).await;
    let mut wire = running.wire().await;
    assert_eq!(wire.get("/v1/auth").await.text(), "first");
    running.register(second.address).await;
    let answers = [wire.get("/v1/auth").await, wire.get("/v1/auth").await];
    assert_eq!(answers.iter().filter(|reply| reply.text() == "second").count(), 1);
    assert!(running.balancer.register("billing", first.address).is_err());
    assert!(running.balancer.deregister("billing", first.address).is_err());
    assert_eq!(running.balancer.deregister("actor", first.address), Ok(false));
}

#[tokio::test]
async fn names_are_looked_up_for_targets() {
    let stub = Stub::saying("found").await;
    let running = Running::with(|config| {
        config.groups[0].targets = vec![format!("dns:localhost:{}", stub.address.port()).parse().unwrap()];
    })
    .await;
    running.until(stub.address, |target| target.requests == 0 && target.reason.is_none()).await;
    assert_eq!(running.get("/v1/auth").await.text(), "found");
}
