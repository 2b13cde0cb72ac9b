//! The delay that tests of measuring switch on, in each stage that a request of this service has.

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, login_as};

/// Long beside whatever else happens in a request of these.
const DELAY_MS: f64 = 1_000.0;

#[tokio::test]
async fn a_login_is_slow_in_the_stage_that_is_slowed_down_and_in_no_other() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    for slow in ["admission", "pool", "db", "hash", "app"] {
        let fault = format!("{slow}:{DELAY_MS}ms");
        let app = auth.serve_again(&[("FAULT_STAGE_DELAY", &fault), ("DATUM_ALLOW_FAULTS", "1")]).await;
        let stages = login_as(&app.anonymous(), "ada@example.com", PASSWORD).await;
        let stages = stages.assert_status(200).stages();
        for (name, ms) in &stages {
            let has_it = name == slow || name == "total";
            assert_eq!(*ms >= DELAY_MS, has_it, "{name} is {ms} ms with a delay in {slow}: {stages:?}");
        }
        assert!(stages.contains_key(slow), "{stages:?}");
    }
}

#[tokio::test]
async fn a_slow_verification_is_the_verifications() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let fault = format!("verify:{DELAY_MS}ms");
    let app = auth.serve_again(&[("FAULT_STAGE_DELAY", &fault), ("DATUM_ALLOW_FAULTS", "1")]).await;
    let body = serde_json::json!({"current_password": PASSWORD, "new_password": OTHER_PASSWORD});
    let reply = app.as_bearer(&tokens.access).post_json("/v1/auth/password", body).await;
    let stages = reply.assert_status(204).stages();
    for (name, ms) in &stages {
        let has_it = name == "verify" || name == "total";
        assert_eq!(*ms >= DELAY_MS, has_it, "{name} is {ms} ms: {stages:?}");
    }
}
