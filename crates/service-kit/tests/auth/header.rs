//! What a token's header may ask for: nothing.

use serde_json::{Value, json};
use service_kit::auth::{KeySource, VerifyError};
use test_support::{JwksAnswer, JwksStub, TestKey};

use crate::{client, local_issuer, published, subject, verify};

#[tokio::test]
async fn the_key_id_is_only_looked_up() {
    let issuer = local_issuer();
    for kid in ["../../dev/null", "/dev/null", "' OR 1=1--", "\0", "k\0", "", " ", "http://127.0.0.1/keys", "%2e%2e"] {
        let token = issuer.build(subject()).header("kid", kid).sign();
        assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::UnknownKey), "{kid:?}");
    }
    let nearly = format!("{}\0", issuer.key().kid());
    let token = issuer.build(subject()).header("kid", nearly).sign();
    assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::UnknownKey));
}

#[tokio::test]
async fn a_missing_or_absurd_key_id_is_refused_without_a_fetch() {
    let issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    let token = issuer.build(subject());
    for (refused, error) in [
        (token.clone().without_header("kid").sign(), VerifyError::Header("kid")),
        (token.clone().header("kid", Value::Null).sign(), VerifyError::Header("kid")),
        (token.clone().header("kid", "k".repeat(300)).sign(), VerifyError::Header("kid")),
        (token.clone().header("kid", "k".repeat(10_000)).sign(), VerifyError::Malformed),
        (token.clone().header("kid", 1).sign(), VerifyError::Malformed),
        (token.clone().header("kid", json!([issuer.key().kid()])).sign(), VerifyError::Malformed),
    ] {
        assert_eq!(verifier.verify(&refused).await.err(), Some(error));
    }
    assert_eq!(stub.hits(), 0);
}

#[tokio::test]
async fn what_cannot_be_verified_anyway_causes_no_fetch() {
    let issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    let token = issuer.build(subject()).header("kid", "unknown");
    for refused in [
        token.clone().header("alg", "none").sign_with(|_| Vec::new()),
        token.clone().header("alg", "HS256").sign(),
        token.clone().header("typ", "JWT").sign(),
        token.clone().header("crit", json!(["exp"])).sign(),
        "an opaque refresh token".to_owned(),
    ] {
        assert!(verifier.verify(&refused).await.is_err());
    }
    assert_eq!(stub.hits(), 0);
}

#[tokio::test]
async fn keys_that_a_token_brings_along_are_neither_used_nor_fetched() {
    let issuer = local_issuer();
    let (attacker, attackers_key) = (JwksStub::start(JwksAnswer::Silence).await, TestKey::p256());
    attacker.answer(JwksAnswer::Keys(service_kit::auth::jwk::Jwks { keys: vec![attackers_key.jwk()] }));
    let (stub, _, verifier) = published(&issuer).await;
    let place = attacker.url().to_string();
    for (name, value) in [
        ("jku", json!(place)),
        ("x5u", json!(place)),
        ("jwk", serde_json::to_value(attackers_key.jwk()).expect("a key is JSON")),
        ("x5c", json!(["MIIB"])),
    ] {
        let token = issuer.build(subject()).header(name, value);
        let forged = token.clone().signed_by(&attackers_key);
        assert_eq!(verifier.verify(&forged.sign()).await.err(), Some(VerifyError::Signature), "{name}");
        let forged = forged.header("kid", attackers_key.kid());
        assert_eq!(verifier.verify(&forged.sign()).await.err(), Some(VerifyError::UnknownKey), "{name}");
        assert!(verifier.verify(&token.sign()).await.is_ok(), "{name} is ignored");
    }
    assert_eq!((attacker.hits(), stub.hits()), (0, 1));
    // The stub itself works: a client of its own gets the attacker's key.
    let trusting = issuer.verifier_with(KeySource::remote(client(&attacker)));
    let token = issuer.build(subject()).header("kid", attackers_key.kid()).signed_by(&attackers_key).sign();
    assert!(trusting.verify(&token).await.is_ok());
}

#[tokio::test]
async fn critical_extensions_are_refused() {
    let issuer = local_issuer();
    for crit in [json!(["exp"]), json!(["b64"]), json!([]), Value::Null, json!("x")] {
        let token = issuer.build(subject()).header("b64", true).header("crit", crit.clone()).sign();
        assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Header("crit")), "{crit}");
    }
}

#[tokio::test]
async fn the_local_issuers_tokens_say_that_they_are_access_tokens() {
    let issuer = local_issuer();
    let token = issuer.build(subject());
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        assert!(verify(&issuer, &token.clone().header("typ", typ).sign()).await.is_ok(), "{typ}");
    }
    for refused in [
        token.clone().without_header("typ"),
        token.clone().header("typ", "JWT"),
        token.clone().header("typ", "id+jwt"),
        token.clone().header("typ", Value::Null),
    ] {
        assert_eq!(verify(&issuer, &refused.sign()).await.err(), Some(VerifyError::Header("typ")));
    }
    let refused = token.header("typ", json!(["at+jwt"])).sign();
    assert_eq!(verify(&issuer, &refused).await.err(), Some(VerifyError::Malformed));
}
