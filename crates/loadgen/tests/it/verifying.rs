//! What the checks before a load find out. That a right system passes is shown by the journeys through a whole one.

use loadgen::run::Timeouts;
use loadgen::verify::{OK, is_verified, verify};
use url::Url;

use crate::stub::{Act, Stub};

#[tokio::test]
async fn a_target_that_lets_everything_pass_is_found_out_step_by_step() {
    let stub = Stub::start();
    let checks = verify(&stub.url(), "test", Timeouts::default()).await;
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
    let checks = verify(&stub.url(), "test", Timeouts::default()).await;
    assert!(checks["get-user"].starts_with("its id is 1 instead of "), "{checks:?}");
    let stub = Stub::start_with(|_, path| match path {
        "/v1/auth/login" => Act::Other(500, &[], ""),
        _ => Act::Answer,
    });
    let checks = verify(&stub.url(), "test", Timeouts::default()).await;
    assert_eq!(checks["login"], "answered 500 instead of 200");
    assert_eq!(checks["get-user"], "not asked: the login failed");
}

#[tokio::test]
async fn a_target_that_is_not_there_passes_nothing() {
    let nowhere = Url::parse("http://127.0.0.1:9").unwrap();
    let checks = verify(&nowhere, "test", Timeouts::default()).await;
    assert_eq!(checks["register"], "no answer (connect)");
    assert!(checks.values().all(|outcome| outcome != OK), "{checks:?}");
    let no_target = verify(&Url::parse("ftp://127.0.0.1/").unwrap(), "test", Timeouts::default()).await;
    assert!(no_target["target"].contains("http or https") && !is_verified(&no_target));
}
