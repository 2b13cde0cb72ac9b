//! `GET /.well-known/jwks.json`, and tokens as others verify them.

use std::sync::Arc;

use auth::keys::generate_pem;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use service_kit::auth::jwk::Jwks;
use service_kit::auth::{KeySource, Verifier, VerifierConfig};
use service_kit::config::{self, Environment};

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, Tokens};

const JWKS: &str = "/.well-known/jwks.json";

/// What a token says, unverified.
pub(crate) fn claims(access_token: &str) -> Value {
    part(access_token, 1)
}

fn part(token: &str, index: usize) -> Value {
    let part = token.split('.').nth(index).expect("a JWS in compact form");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("json")
}

/// A verifier as another service has it, with the keys that this task publishes.
async fn verifier(auth: &Auth) -> Verifier {
    let jwks: Jwks = auth.app.anonymous().get(JWKS).await.json_as();
    let environment = Environment::from_pairs([("AUTH_ISSUER", "https://datum.test")]);
    let config = config::load(&environment, VerifierConfig::read_for_issuer).expect("valid");
    Verifier::new(&config, KeySource::fixed(&jwks), Arc::new(auth.clock.clone()))
}

#[tokio::test]
async fn the_published_keys_verify_what_was_issued() {
    let auth = Auth::start().await;
    let id = auth.register("ada@example.com", PASSWORD).await.json()["id"].clone();
    let access = auth.session("ada@example.com", PASSWORD).await.access;
    let claims = verifier(&auth).await.verify(&access).await.expect("accepted");
    assert_eq!(claims.subject.to_string(), id.as_str().unwrap());
    assert_eq!(claims.email.as_deref(), Some("ada@example.com"));
    assert!(claims.scopes.contains("profile") && claims.scopes.contains("documents"));
    assert!(!claims.scopes.contains("actors:read"));
}

#[tokio::test]
async fn keys_are_public_halves_and_may_be_kept_for_a_while() {
    let auth = Auth::start().await;
    let reply = auth.app.anonymous().get(JWKS).await;
    reply.assert_status(200);
    assert_eq!(reply.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.json();
    let keys = body["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 1);
    let mut members: Vec<_> = keys[0].as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
    assert_eq!((&keys[0]["kty"], &keys[0]["crv"], &keys[0]["alg"]), (&"EC".into(), &"P-256".into(), &"ES256".into()));
    let access = auth.sign_up("ada@example.com").await.access;
    let header = part(&access, 0);
    assert_eq!(header["kid"], keys[0]["kid"]);
    assert_eq!((&header["typ"], &header["alg"]), (&"at+jwt".into(), &"ES256".into()));
    auth.app.anonymous().head(JWKS).await.assert_status(200);
}

#[tokio::test]
async fn keys_are_exchanged_without_anybody_noticing() {
    let (old, new) = (generate_pem().unwrap(), generate_pem().unwrap());
    // First the new key is published, then it signs, then the old one goes.
    let steps = [old.to_string(), format!("{}{}", *old, *new), format!("{}{}", *new, *old), new.to_string()];
    let auth = Auth::start_with(&[("AUTH_SIGNING_KEYS", &steps[0])]).await;
    let before = auth.sign_up("ada@example.com").await;

    let published = auth.another_task_with(&[("AUTH_SIGNING_KEYS", &steps[1])]).await;
    let signing = auth.another_task_with(&[("AUTH_SIGNING_KEYS", &steps[2])]).await;
    let after = Tokens::of(&signing.refresh(&before.refresh).await);
    assert_ne!(part(&before.access, 0)["kid"], part(&after.access, 0)["kid"]);
    for task in [&published, &signing] {
        let verifier = verifier(task).await;
        verifier.verify(&before.access).await.expect("the old key still verifies");
        verifier.verify(&after.access).await.expect("the new key verifies already");
        task.change_password(&after.access, OTHER_PASSWORD, PASSWORD)
            .await
            .assert_problem(403, "current_password_wrong");
    }
    let gone = auth.another_task_with(&[("AUTH_SIGNING_KEYS", &steps[3])]).await;
    gone.change_password(&before.access, PASSWORD, OTHER_PASSWORD).await.assert_problem(401, "token_invalid");
    gone.change_password(&after.access, PASSWORD, OTHER_PASSWORD).await.assert_status(204);
}
