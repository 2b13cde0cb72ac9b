//! What the checks before a load find out. That a right system passes is shown by the journeys through a whole one.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use loadgen::Trust;
use loadgen::verify::{OK, Patience, is_verified};
use url::Url;

use crate::stub::{Act, Stub};

async fn verify(target: &Url) -> BTreeMap<String, String> {
    loadgen::verify::verify(target, &Trust::default(), "test", Patience::default()).await
}

#[tokio::test]
async fn a_target_that_lets_everything_pass_is_found_out_step_by_step() {
    let stub = Stub::start();
    let checks = verify(&stub.url()).await;
    let expected = [
        ("download", "not asked: the upload failed"),
        ("duplicate-refused", "answered 201 instead of 409"),
        ("get-user", OK),
        ("login", OK),
        ("no-token-refused", "answered 200 instead of 401"),
        ("register", OK),
        // The stub numbers its documents.
        ("upload", "it has no id"),
        ("wrong-password-refused", "answered 200 instead of 401"),
    ];
    assert_eq!(checks, expected.map(|(name, outcome)| (name.to_owned(), outcome.to_owned())).into());
    assert!(!is_verified(&checks));
}

#[tokio::test]
async fn somebody_elses_profile_and_a_broken_login_are_found_out() {
    let stub = Stub::start_with(|_, path| match path {
        "/v1/actors/me" => Act::Other(200, &[], r#"{"id":"1","email":"eve@example.com"}"#),
        _ => Act::Answer,
    });
    let checks = verify(&stub.url()).await;
    assert!(checks["get-user"].starts_with("its id is 1 instead of "), "{checks:?}");
    let stub = Stub::start_with(|_, path| match path {
        "/v1/auth/login" => Act::Other(500, &[], ""),
        _ => Act::Answer,
    });
    let checks = verify(&stub.url()).await;
    assert_eq!(checks["login"], "answered 500 instead of 200");
    assert_eq!(checks["get-user"], "not asked: the login failed");
}

#[tokio::test]
async fn a_target_that_is_not_there_passes_nothing() {
    let nowhere = Url::parse("http://127.0.0.1:9").unwrap();
    let checks = verify(&nowhere).await;
    assert!(checks["register"].starts_with("no answer (connect: Connection refused"), "{checks:?}");
    assert!(checks.values().all(|outcome| outcome != OK), "{checks:?}");
    let no_target = verify(&Url::parse("ftp://127.0.0.1/").unwrap()).await;
    assert!(no_target["target"].contains("http or https") && !is_verified(&no_target));
}

/// With paused time, which goes on when everybody only waits.
#[tokio::test(start_paused = true)]
async fn a_target_that_hangs_is_found_out_within_the_patience_for_all_checks() {
    // The kernel accepts for it; nobody ever reads.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let began = tokio::time::Instant::now();
    let checks = verify(&url).await;
    let took = began.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(31)).contains(&took), "{took:?}");
    assert_eq!(checks["register"], "no answer within 10 s");
    assert_eq!(checks["no-token-refused"], "not asked: the 30 s for all checks were over");
    assert!(checks.values().all(|outcome| outcome != OK), "{checks:?}");
}
