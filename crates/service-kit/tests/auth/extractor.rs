//! The extractor behind a router, over HTTP semantics.

use axum::Router;
use axum::body::Body;
use axum::extract::FromRef;
use axum::routing::get;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use service_kit::auth::{Authenticated, KeySource, Verifier};
use test_support::{JwksAnswer, JwksStub, TestIssuer};
use tower::ServiceExt;

use crate::{client, local_issuer, subject};

/// A service's state has more in it than the verifier.
#[derive(Clone)]
struct AppState {
    verifier: Verifier,
}

impl FromRef<AppState> for Verifier {
    fn from_ref(state: &AppState) -> Self {
        state.verifier.clone()
    }
}

async fn who(caller: Authenticated) -> String {
    format!("{} {}", caller.subject, caller.scopes.contains("actors:read"))
}

async fn ask(verifier: Verifier, authorization: &[&str]) -> Response<Body> {
    let router = Router::new().route("/who", get(who)).with_state(AppState { verifier });
    let mut request = Request::get("/who");
    for value in authorization {
        request = request.header(AUTHORIZATION, *value);
    }
    router.oneshot(request.body(Body::empty()).expect("a request")).await.expect("routers do not fail")
}

async fn body(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Code and challenge of a 401.
async fn refusal(issuer: &TestIssuer, authorization: &[&str]) -> (String, String) {
    let response = ask(issuer.verifier(), authorization).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{authorization:?}");
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    let challenge = response.headers()[WWW_AUTHENTICATE].to_str().expect("ASCII").to_owned();
    let text = body(response).await;
    for value in authorization {
        let token = value.rsplit(' ').next().unwrap_or_default();
        assert!(token.len() < 4 || !text.contains(token), "the answer repeats the token");
    }
    let problem: Value = serde_json::from_str(&text).expect("JSON");
    (problem["code"].as_str().expect("a code").to_owned(), challenge)
}

const PLAIN: &str = r#"Bearer realm="datum""#;
const INVALID: &str = r#"Bearer realm="datum", error="invalid_token""#;

#[tokio::test]
async fn the_handler_gets_the_claims() {
    let issuer = local_issuer();
    let token = issuer.build(subject()).scope("actors:read").sign();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let response = ask(issuer.verifier(), &[&format!("{scheme} {token}")]).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(body(response).await, format!("{} true", subject()));
    }
}

#[tokio::test]
async fn without_a_token_the_challenge_names_no_error() {
    let issuer = local_issuer();
    for authorization in [&[][..], &["Basic dXNlcjpwYXNzd29yZA=="], &[""]] {
        assert_eq!(refusal(&issuer, authorization).await, ("token_missing".to_owned(), PLAIN.to_owned()));
    }
}

#[tokio::test]
async fn a_token_that_is_not_valid_is_refused_without_a_reason() {
    let issuer = local_issuer();
    let token = issuer.build(subject());
    for bad in [
        "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA".to_owned(),
        token.clone().claim("aud", "billing").sign(),
        token.clone().header("alg", "none").sign_with(|_| Vec::new()),
        token.clone().header("kid", "../../dev/null").sign(),
        token.clone().time_claim("nbf", 3_600).sign(),
        format!("{} {}", token.sign(), token.sign()),
        format!("{},{}", token.sign(), token.sign()),
    ] {
        let refused = refusal(&issuer, &[&format!("Bearer {bad}")]).await;
        assert_eq!(refused, ("token_invalid".to_owned(), INVALID.to_owned()), "{bad}");
    }
    assert_eq!(refusal(&issuer, &["Bearer"]).await, ("token_invalid".to_owned(), INVALID.to_owned()));
}

#[tokio::test]
async fn an_expired_token_says_so() {
    let issuer = local_issuer();
    let token = issuer.build(subject()).time_claim("iat", -960).time_claim("nbf", -960).time_claim("exp", -60).sign();
    let refused = refusal(&issuer, &[&format!("Bearer {token}")]).await;
    assert_eq!(refused, ("token_expired".to_owned(), INVALID.to_owned()));
}

#[tokio::test]
async fn two_authorization_headers_are_refused_even_when_both_are_good() {
    let issuer = local_issuer();
    let value = format!("Bearer {}", issuer.token(subject()));
    assert_eq!(refusal(&issuer, &[&value, &value]).await, ("token_invalid".to_owned(), INVALID.to_owned()));
}

#[tokio::test]
async fn while_there_are_no_keys_the_client_is_asked_to_come_back() {
    let issuer = local_issuer();
    let stub = JwksStub::start(JwksAnswer::Status(StatusCode::INTERNAL_SERVER_ERROR)).await;
    let verifier = issuer.verifier_with(KeySource::remote(client(&stub)));
    let good = format!("Bearer {}", issuer.token(subject()));
    let response = ask(verifier.clone(), &[&good]).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[RETRY_AFTER], "1");
    let problem: Value = serde_json::from_str(&body(response).await).expect("JSON");
    assert_eq!(problem["code"], "keys_unavailable");
    // What could not be valid with any key is refused at once.
    let response = ask(verifier, &["Bearer nonsense"]).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}
