//! Tokens of an Amazon Cognito user pool.

use std::sync::Arc;

use service_kit::auth::VerifyError;
use test_support::TestIssuer;

use crate::{clock, subject, verify};

fn cognito_issuer() -> TestIssuer {
    TestIssuer::cognito(Arc::new(clock()))
}

#[tokio::test]
async fn a_genuine_access_token_has_no_audience_and_is_accepted() {
    let issuer = cognito_issuer();
    let claims = verify(&issuer, &issuer.token(subject())).await.expect("a good token");
    assert_eq!((claims.subject, claims.client_id.as_deref()), (subject(), Some("test-client")));
    assert_eq!((claims.email.as_deref(), claims.name.as_deref()), (None, None));
    assert!(claims.scopes.contains("aws.cognito.signin.user.admin"));
}

#[tokio::test]
async fn a_token_of_another_client_of_the_pool_is_refused() {
    let issuer = cognito_issuer();
    let token = issuer.build(subject());
    for changed in [
        token.clone().claim("client_id", "other-client"),
        token.clone().claim("client_id", ""),
        token.clone().without_claim("client_id"),
        // The audience of an ID token does not stand in for it.
        token.clone().without_claim("client_id").claim("aud", "test-client"),
    ] {
        assert_eq!(verify(&issuer, &changed.sign()).await.err(), Some(VerifyError::Claim("client_id")));
    }
}

#[tokio::test]
async fn an_id_token_is_refused() {
    let issuer = cognito_issuer();
    let token = issuer.build(subject());
    let id_token = token.clone().claim("token_use", "id").claim("aud", "test-client").claim("email", "a@x.io");
    assert_eq!(verify(&issuer, &id_token.sign()).await.err(), Some(VerifyError::Claim("token_use")));
    let id_token = id_token.without_claim("client_id");
    assert!(verify(&issuer, &id_token.sign()).await.is_err());
}

#[tokio::test]
async fn of_several_keys_the_one_that_a_token_names_verifies_it() {
    // A pool has two from the start, and changes them one by one ("Understanding user pool JSON web tokens").
    let mut issuer = cognito_issuer();
    let of_the_first = issuer.token(subject());
    issuer.rotate();
    let of_the_second = issuer.token(subject());
    assert!(verify(&issuer, &of_the_first).await.is_ok());
    assert!(verify(&issuer, &of_the_second).await.is_ok());
    let names_the_first = issuer.build(subject()).header("kid", issuer.jwks().keys[0].kid.clone()).sign();
    assert_eq!(verify(&issuer, &names_the_first).await.err(), Some(VerifyError::Signature));
    issuer.retire();
    assert_eq!(verify(&issuer, &of_the_first).await.err(), Some(VerifyError::UnknownKey));
    assert!(verify(&issuer, &of_the_second).await.is_ok());
}

#[tokio::test]
async fn a_token_of_another_pool_is_refused() {
    let issuer = cognito_issuer();
    let token =
        issuer.build(subject()).claim("iss", "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_other");
    assert_eq!(verify(&issuer, &token.sign()).await.err(), Some(VerifyError::Claim("iss")));
}

#[tokio::test]
async fn the_local_issuers_tokens_are_not_cognitos_and_the_reverse() {
    let (local, cognito) = (TestIssuer::local(Arc::new(clock())), cognito_issuer());
    let (local_token, cognito_token) = (local.token(subject()), cognito.token(subject()));
    assert_eq!(verify(&cognito, &local_token).await.err(), Some(VerifyError::UnknownKey));
    assert_eq!(verify(&local, &cognito_token).await.err(), Some(VerifyError::Header("typ")));
}
