//! Fetching the issuer's keys: once for all, and as often as needed until it works.

use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use service_kit::auth::{KeySource, VerifyError};
use test_support::{JwksAnswer, JwksStub};
use uuid::Uuid;

use crate::{FETCH_TIMEOUT, MIN_INTERVAL, REFRESH_AFTER, client, local_issuer, pass, published, subject};

/// The largest key set that is read, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

#[tokio::test]
async fn two_hundred_first_callers_share_one_fetch() {
    let issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    stub.hold();
    let callers: Vec<_> = (0..200)
        .map(|_| {
            let (verifier, token) = (verifier.clone(), issuer.token(Uuid::new_v4()));
            tokio::spawn(async move { verifier.verify(&token).await })
        })
        .collect();
    stub.hit(1).await;
    stub.release();
    for verified in join_all(callers).await {
        assert!(verified.expect("no panic").is_ok());
    }
    assert_eq!(stub.hits(), 1);
}

#[tokio::test]
async fn when_keys_get_old_two_hundred_callers_cause_one_fetch_and_wait_for_none() {
    let issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    assert!(verifier.verify(&issuer.token(subject())).await.is_ok());
    stub.hold();
    pass(REFRESH_AFTER).await;
    for _ in 0..200 {
        // Nobody would get past the held fetch.
        assert!(verifier.verify(&issuer.token(Uuid::new_v4())).await.is_ok());
    }
    stub.hit(2).await;
    stub.release();
    assert_eq!(stub.hits(), 2);
}

#[tokio::test]
async fn a_flood_of_unknown_keys_causes_one_fetch_an_interval_and_disturbs_nobody() {
    let issuer = local_issuer();
    let (stub, _, verifier) = published(&issuer).await;
    let good = issuer.token(subject());
    assert!(verifier.verify(&good).await.is_ok());

    for interval in 1..=2 {
        pass(MIN_INTERVAL).await;
        stub.hold();
        let flood: Vec<_> = (0..1_000)
            .map(|_| {
                let token = issuer.build(subject()).header("kid", Uuid::new_v4().to_string()).sign();
                let verifier = verifier.clone();
                tokio::spawn(async move { verifier.verify(&token).await })
            })
            .collect();
        stub.hit(1 + interval).await;
        assert!(verifier.verify(&good).await.is_ok(), "a remembered token does not wait");
        assert!(verifier.verify(&issuer.token(Uuid::new_v4())).await.is_ok(), "nor does a new one of a known key");
        stub.release();
        for refused in join_all(flood).await {
            assert_eq!(refused.expect("no panic").err(), Some(VerifyError::UnknownKey));
        }
        assert_eq!(stub.hits(), 1 + interval);
    }
}

#[tokio::test]
async fn keys_that_cannot_be_fetched_at_first_are_fetched_later() {
    let issuer = local_issuer();
    let stub = JwksStub::start(JwksAnswer::Status(StatusCode::INTERNAL_SERVER_ERROR)).await;
    let client = client(&stub);
    let readiness = client.readiness();
    let verifier = issuer.verifier_with(KeySource::remote(client));
    let token = issuer.token(subject());

    let padded = |bytes: usize| {
        let mut body = serde_json::to_vec(&issuer.jwks()).expect("keys are JSON");
        body.resize(bytes, b' ');
        JwksAnswer::Body(Bytes::from(body))
    };
    let elsewhere = JwksStub::start(JwksAnswer::Keys(issuer.jwks())).await;
    for (fetches, (answer, reason)) in [
        (JwksAnswer::Status(StatusCode::INTERNAL_SERVER_ERROR), "status 500"),
        (JwksAnswer::Status(StatusCode::NO_CONTENT), "status 204"),
        (JwksAnswer::Redirect(elsewhere.url()), "status 302"),
        (JwksAnswer::Body(Bytes::from_static(b"<html>down for maintenance</html>")), "not a key set"),
        (JwksAnswer::Body(Bytes::from_static(b"{\"keys\":{}}")), "not a key set"),
        (JwksAnswer::Body(Bytes::from_static(b"{\"keys\":[]}")), "no usable key"),
        (JwksAnswer::Body(Bytes::from_static(b"{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}")), "no usable key"),
        (padded(MAX_BODY_BYTES + 1), "answer too large"),
    ]
    .into_iter()
    .enumerate()
    {
        stub.answer(answer);
        assert_eq!(verifier.verify(&token).await.err(), Some(VerifyError::KeysUnavailable), "{reason}");
        assert_eq!(readiness().await, Err(format!("not fetched yet: {reason}")));
        assert_eq!(stub.hits(), fetches + 1);
        pass(MIN_INTERVAL).await;
    }
    assert_eq!(elsewhere.hits(), 0, "redirects are not followed");

    stub.answer(padded(MAX_BODY_BYTES));
    assert!(verifier.verify(&token).await.is_ok());
    assert_eq!(readiness().await, Ok(()));
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_given_up_after_the_timeout() {
    let issuer = local_issuer();
    let (stub, client, verifier) = published(&issuer).await;
    stub.answer(JwksAnswer::Silence);
    let token = issuer.token(subject());
    let waiting = {
        let (verifier, token) = (verifier.clone(), token.clone());
        tokio::spawn(async move { verifier.verify(&token).await })
    };
    stub.hit(1).await;
    assert!(!waiting.is_finished());
    pass(FETCH_TIMEOUT).await;
    let given_up = tokio::time::timeout(FETCH_TIMEOUT, waiting).await.expect("no longer than the timeout");
    assert_eq!(given_up.expect("no panic").err(), Some(VerifyError::KeysUnavailable));
    assert_eq!(client.readiness()().await, Err("not fetched yet: timed out".to_owned()));

    stub.answer(JwksAnswer::Keys(issuer.jwks()));
    pass(MIN_INTERVAL).await;
    assert!(verifier.verify(&token).await.is_ok());
}

#[tokio::test]
async fn an_unreachable_endpoint_keeps_a_task_from_being_ready_and_not_from_starting() {
    let issuer = local_issuer();
    let stub = JwksStub::start(JwksAnswer::Silence).await;
    let client = client(&stub);
    drop(stub);
    let verifier = issuer.verifier_with(KeySource::remote(client.clone()));
    let readiness = client.readiness();
    assert_eq!(readiness().await, Err("not fetched yet".to_owned()));
    let warming = tokio::spawn(client.warm());
    assert_eq!(verifier.verify(&issuer.token(subject())).await.err(), Some(VerifyError::KeysUnavailable));
    assert_eq!(readiness().await, Err("not fetched yet: no connection".to_owned()));
    assert!(!warming.is_finished());
    // Issuers in the same process need nobody.
    assert!(issuer.verifier().verify(&issuer.token(subject())).await.is_ok());
    warming.abort();
}

#[tokio::test]
async fn warming_fetches_before_anybody_asks() {
    let issuer = local_issuer();
    let (stub, client, verifier) = published(&issuer).await;
    client.clone().warm().await;
    assert_eq!(client.readiness()().await, Ok(()));
    assert!(verifier.verify(&issuer.token(subject())).await.is_ok());
    assert_eq!(stub.hits(), 1);
}
