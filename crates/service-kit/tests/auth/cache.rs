//! Verified tokens are remembered, and never for too long.

use std::sync::Arc;
use std::time::Duration;

use service_kit::auth::{Production, Verifier, VerifierConfig, VerifyError};
use test_support::TestIssuer;

use crate::{clock, local_issuer, subject};

#[tokio::test]
async fn a_remembered_token_gives_the_same_claims_without_copying_them() {
    let issuer = local_issuer();
    let verifier = issuer.verifier();
    let token = issuer.token(subject());
    let first = verifier.verify(&token).await.expect("a good token");
    let second = verifier.clone().verify(&token).await.expect("a remembered token");
    assert!(Arc::ptr_eq(&first, &second));
}

#[tokio::test]
async fn a_cache_of_no_entries_is_off() {
    let issuer = local_issuer();
    let config =
        VerifierConfig { policy: issuer.policy(), token_cache_max: 0, jwks: None, production: Production::default() };
    let verifier = Verifier::new(&config, issuer.key_source(), Arc::new(clock()));
    let token = issuer.token(subject());
    let first = verifier.verify(&token).await.expect("a good token");
    let second = verifier.verify(&token).await.expect("a good token");
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_remembered_token_expires_as_any_other() {
    let clock = clock();
    let issuer = TestIssuer::local(Arc::new(clock.clone()));
    let verifier = issuer.verifier();
    let token = issuer.build(subject()).expires_in(Duration::from_mins(1)).sign();
    let remembered = verifier.verify(&token).await.expect("a good token");
    clock.advance(Duration::from_secs(59));
    assert!(Arc::ptr_eq(&remembered, &verifier.verify(&token).await.expect("not expired yet")));
    clock.advance(Duration::from_secs(1));
    let within_the_leeway = verifier.verify(&token).await.expect("within the leeway");
    assert!(!Arc::ptr_eq(&remembered, &within_the_leeway), "at `exp` the cache stops to answer");
    clock.advance(Duration::from_secs(5));
    assert_eq!(verifier.verify(&token).await.err(), Some(VerifyError::Expired));
}

#[tokio::test]
async fn a_refusal_is_not_remembered() {
    let clock = clock();
    let issuer = TestIssuer::local(Arc::new(clock.clone()));
    let verifier = issuer.verifier();
    let token = issuer.build(subject()).time_claim("nbf", 60).sign();
    assert_eq!(verifier.verify(&token).await.err(), Some(VerifyError::NotYetValid));
    clock.advance(Duration::from_mins(1));
    assert!(verifier.verify(&token).await.is_ok());
}

#[tokio::test]
async fn a_token_that_differs_in_its_signature_only_is_another_token() {
    let issuer = local_issuer();
    let verifier = issuer.verifier();
    let token = issuer.token(subject());
    assert!(verifier.verify(&token).await.is_ok());
    let (message, _) = token.rsplit_once('.').expect("three parts");
    assert_eq!(verifier.verify(&format!("{message}.")).await.err(), Some(VerifyError::Signature));
}
