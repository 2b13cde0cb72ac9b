//! Health checks, with real tasks that change their minds.

use std::time::Duration;

use balancer::{HealthCheck, Reason, TargetState};
use http::StatusCode;

use crate::support::{PATIENCE, RawStub, Running, Stub, eventually};

async fn checked_often(change: impl FnOnce(&mut HealthCheck)) -> Running {
    Running::with(|config| {
        let health = &mut config.groups[0].health;
        // Patient for a loaded machine: a slow answer is not the failure that these tests are about.
        health.interval = Duration::from_millis(100);
        health.timeout = Duration::from_millis(99);
        health.healthy_threshold = 3;
        health.unhealthy_threshold = 2;
        change(health);
    })
    .await
}

#[tokio::test]
async fn a_target_leaves_and_returns_with_its_health() {
    let (sick, well) = (Stub::saying("sick").await, Stub::saying("well").await);
    let running = checked_often(|_| {}).await;
    running.register(sick.address).await;
    running.register(well.address).await;
    sick.set_health(StatusCode::SERVICE_UNAVAILABLE);
    let mismatch = Some(Reason::ResponseCodeMismatch(503));
    running.until(sick.address, |target| target.state == TargetState::Unhealthy && target.reason == mismatch).await;
    running.until(well.address, |target| target.state == TargetState::Healthy).await;
    let before = running.target(sick.address).unwrap().requests;
    let mut wire = running.wire().await;
    for _ in 0..10 {
        assert_eq!(wire.get("/v1/auth").await.text(), "well");
    }
    assert_eq!(running.target(sick.address).unwrap().requests, before);
    sick.set_health(StatusCode::OK);
    running.until(sick.address, |target| target.state == TargetState::Healthy && target.reason.is_none()).await;
    let answers = [wire.get("/v1/auth").await, wire.get("/v1/auth").await];
    assert!(answers.iter().any(|reply| reply.text() == "sick"));
}

#[tokio::test]
async fn when_all_are_unhealthy_all_get_requests() {
    let (one, two) = (Stub::saying("one").await, Stub::saying("two").await);
    for stub in [&one, &two] {
        stub.set_health(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let running = checked_often(|_| {}).await;
    for stub in [&one, &two] {
        running.register_unchecked(stub.address);
        running.until(stub.address, |target| target.state == TargetState::Unhealthy).await;
    }
    assert!(running.balancer.snapshot()[0].fail_open);
    let mut wire = running.wire().await;
    let mut answers = [wire.get("/v1/auth").await, wire.get("/v1/auth").await].map(|reply| reply.text().to_owned());
    answers.sort();
    assert_eq!(answers, ["one", "two"]);
    one.set_health(StatusCode::OK);
    running.until(one.address, |target| target.state == TargetState::Healthy).await;
    eventually(|| !running.balancer.snapshot()[0].fail_open).await;
    assert_eq!(wire.get("/v1/auth").await.text(), "one");
}

#[tokio::test]
async fn a_new_target_waits_for_its_first_check() {
    let stub = RawStub::start(|stream| async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let running = Running::start().await;
    running.register_unchecked(stub.address);
    let target = running.target(stub.address).unwrap();
    assert_eq!((target.state, target.reason), (TargetState::Initial, Some(Reason::RegistrationInProgress)));
    let ready = Stub::saying("ready").await;
    running.register(ready.address).await;
    let mut wire = running.wire().await;
    for _ in 0..4 {
        assert_eq!(wire.get("/v1/auth").await.text(), "ready");
    }
}

#[tokio::test]
async fn reasons_tell_silence_and_refusal_apart() {
    let silent = RawStub::start(|stream| async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let closing = RawStub::start(|stream| async move { drop(stream) }).await;
    let running = checked_often(|_| {}).await;
    running.register_unchecked(silent.address);
    running.register_unchecked(closing.address);
    running.until(silent.address, |target| target.reason == Some(Reason::Timeout)).await;
    running.until(closing.address, |target| target.reason == Some(Reason::FailedHealthChecks)).await;
    for address in [silent.address, closing.address] {
        assert_eq!(running.target(address).unwrap().state, TargetState::Unhealthy);
    }
}

#[tokio::test]
async fn the_path_and_the_statuses_are_configurable_and_each_check_is_a_new_connection() {
    let stub = RawStub::after_head(|mut stream, head| async move {
        use tokio::io::AsyncWriteExt;
        let answer = if head.starts_with("GET /alive?deep=1 HTTP/1.1\r\n") { 204 } else { 500 };
        let _ = stream.write_all(format!("HTTP/1.1 {answer} X\r\n\r\n").as_bytes()).await;
    })
    .await;
    let running = checked_often(|health| {
        health.path = "/alive?deep=1".parse().unwrap();
        health.success = "200,204".parse().unwrap();
    })
    .await;
    running.register(stub.address).await;
    eventually(|| stub.accepted() >= 3).await;
}

#[tokio::test]
async fn a_target_that_ends_the_connection_with_its_answer_is_healthy() {
    let stub = RawStub::answering(b"").await;
    let running = Running::start().await;
    tokio::time::timeout(PATIENCE, running.register(stub.address)).await.unwrap();
}
