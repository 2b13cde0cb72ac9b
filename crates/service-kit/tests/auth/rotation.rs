//! Keys come and go.

use http::StatusCode;
use service_kit::auth::VerifyError;
use test_support::JwksAnswer;

use crate::{MIN_INTERVAL, REFRESH_AFTER, local_issuer, pass, published, subject};

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it() {
    let mut issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    let of_the_old_key = issuer.token(subject());
    assert!(verifier.verify(&of_the_old_key).await.is_ok());

    issuer.rotate();
    stub.answer(JwksAnswer::Keys(issuer.jwks()));
    let of_the_new_key = issuer.token(subject());
    assert_eq!(verifier.verify(&of_the_new_key).await.err(), Some(VerifyError::UnknownKey), "within the interval");
    pass(MIN_INTERVAL).await;
    assert!(verifier.verify(&of_the_new_key).await.is_ok());
    assert!(verifier.verify(&of_the_old_key).await.is_ok());
    assert_eq!(stub.hits(), 2);
}

#[tokio::test]
async fn tokens_of_a_key_that_is_gone_are_refused_even_when_remembered() {
    let mut issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    let of_the_old_key = issuer.token(subject());
    assert!(verifier.verify(&of_the_old_key).await.is_ok());

    issuer.rotate();
    issuer.retire();
    stub.answer(JwksAnswer::Keys(issuer.jwks()));
    assert!(verifier.verify(&of_the_old_key).await.is_ok(), "nobody has looked yet");
    pass(MIN_INTERVAL).await;
    assert!(verifier.verify(&issuer.token(subject())).await.is_ok(), "waits for the new set");
    assert_eq!(verifier.verify(&of_the_old_key).await.err(), Some(VerifyError::UnknownKey));
}

#[tokio::test]
async fn a_removed_key_is_noticed_when_the_set_gets_old() {
    let mut issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    let of_the_old_key = issuer.token(subject());
    assert!(verifier.verify(&of_the_old_key).await.is_ok());

    issuer.rotate();
    issuer.retire();
    stub.answer(JwksAnswer::Keys(issuer.jwks()));
    pass(REFRESH_AFTER).await;
    assert!(verifier.verify(&of_the_old_key).await.is_ok(), "the old set serves while the new one is fetched");
    // A token of the new key waits for the fetch that the old one caused.
    assert!(verifier.verify(&issuer.token(subject())).await.is_ok());
    assert_eq!(verifier.verify(&of_the_old_key).await.err(), Some(VerifyError::UnknownKey));
    assert_eq!(stub.hits(), 2);
}

#[tokio::test]
async fn an_outage_takes_no_key_away() {
    let mut issuer = local_issuer();
    let (stub, client, verifier) = published(&issuer).await;
    assert!(verifier.verify(&issuer.token(subject())).await.is_ok());
    let key_of_before = issuer.clone();

    stub.answer(JwksAnswer::Status(StatusCode::BAD_GATEWAY));
    issuer.rotate();
    for _ in 0..3 {
        pass(REFRESH_AFTER * 12).await;
        assert_eq!(verifier.verify(&issuer.token(subject())).await.err(), Some(VerifyError::UnknownKey));
        assert!(verifier.verify(&key_of_before.token(subject())).await.is_ok());
        assert_eq!(client.readiness()().await, Ok(()));
    }
    assert_eq!(stub.hits(), 4);

    stub.answer(JwksAnswer::Keys(issuer.jwks()));
    pass(MIN_INTERVAL).await;
    assert!(verifier.verify(&issuer.token(subject())).await.is_ok(), "works after the outage");
}
