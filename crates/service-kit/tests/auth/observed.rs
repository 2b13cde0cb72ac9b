//! What verification leaves behind for operators: a stage of the request's time, and counters.

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use service_kit::auth::{Authenticated, KeySource, Verifier};
use service_kit::health::Readiness;
use service_kit::service::Service;
use service_kit::telemetry;
use test_support::{App, JwksAnswer, JwksStub};

use crate::{client, local_issuer, published, subject};

async fn who(caller: Authenticated) -> String {
    caller.subject.to_string()
}

/// A service that answers who the caller is, and needs no database for it.
fn service(verifier: Verifier) -> Service {
    Service {
        name: "example",
        router: Router::new().route("/who", get(who)).with_state(verifier),
        openapi: utoipa::openapi::OpenApiBuilder::new().build(),
        readiness: Readiness::new(),
        pool: None,
        background: Vec::new(),
        longest_request: None,
        finish: None,
    }
}

#[tokio::test]
async fn verification_is_a_stage_of_the_request_whether_it_succeeds_or_not() {
    let issuer = local_issuer();
    let app = App::serve(service(issuer.verifier())).await;
    let good = issuer.token(subject());
    let stages = async |token: &str| {
        let reply = app.as_bearer(token).get("/who").await;
        reply.header("server-timing").expect("every reply has it").to_owned()
    };
    for token in [good.as_str(), good.as_str(), "nonsense"] {
        let header = stages(token).await;
        assert!(header.contains("verify;dur="), "{header}");
    }
    let header = app.anonymous().get("/who").await.header("server-timing").expect("every reply has it").to_owned();
    assert!(!header.contains("verify;dur="), "nothing was verified: {header}");
}

#[tokio::test]
async fn verifications_and_fetches_are_counted_by_their_results() {
    let counted = |line: &str| telemetry::render().lines().any(|counter| counter.starts_with(line));
    // Nothing is counted before there is a recorder.
    let _ = telemetry::render();
    let issuer = local_issuer();
    let (_stub, _, verifier) = published(&issuer).await;
    let good = issuer.token(subject());
    for _ in 0..2 {
        assert!(verifier.verify(&good).await.is_ok());
    }
    assert!(verifier.verify(&issuer.build(subject()).claim("aud", "billing").sign()).await.is_err());
    let down = JwksStub::start(JwksAnswer::Status(StatusCode::BAD_GATEWAY)).await;
    let without_keys = issuer.verifier_with(KeySource::remote(client(&down)));
    assert!(without_keys.verify(&good).await.is_err());
    for line in [
        r#"token_verifications_total{result="ok",cache="miss"}"#,
        r#"token_verifications_total{result="ok",cache="hit"}"#,
        r#"token_verifications_total{result="claim",cache="miss"}"#,
        r#"token_verifications_total{result="keys_unavailable",cache="miss"}"#,
        r#"jwks_fetches_total{result="ok"}"#,
        r#"jwks_fetches_total{result="status"}"#,
    ] {
        assert!(counted(line), "{line} is missing in:\n{}", telemetry::render());
    }
}
