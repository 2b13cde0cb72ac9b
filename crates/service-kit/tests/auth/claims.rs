//! Signed by the right key, and still not to be accepted. The rules themselves are tested beside `Policy`; these tokens went
//! through an issuer's hands.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use service_kit::auth::VerifyError;
use test_support::TestIssuer;

use crate::{clock, local_issuer, subject, verify};

#[tokio::test]
async fn a_token_that_is_not_valid_yet_is_refused() {
    let issuer = local_issuer();
    for claim in ["nbf", "iat"] {
        let token = issuer.build(subject());
        let in_an_hour = token.clone().time_claim(claim, 3_600).sign();
        assert_eq!(verify(&issuer, &in_an_hour).await.err(), Some(VerifyError::NotYetValid), "{claim}");
        let within_the_leeway = token.time_claim(claim, 5).sign();
        assert!(verify(&issuer, &within_the_leeway).await.is_ok(), "{claim}");
    }
}

#[tokio::test]
async fn an_expired_token_is_refused_after_five_seconds_and_not_after_sixty() {
    let clock = clock();
    let issuer = TestIssuer::local(Arc::new(clock.clone()));
    let token = issuer.build(subject()).expires_in(Duration::from_mins(1)).sign();
    for (passed_s, expected) in
        [(60, None), (4, None), (1, Some(VerifyError::Expired)), (25, Some(VerifyError::Expired))]
    {
        clock.advance(Duration::from_secs(passed_s));
        assert_eq!(verify(&issuer, &token).await.err(), expected, "after {passed_s} s more");
    }
}

#[tokio::test]
async fn a_token_for_somebody_else_is_refused() {
    let issuer = local_issuer();
    let token = issuer.build(subject());
    for (changed, claim) in [
        (token.clone().claim("aud", "billing"), "aud"),
        (token.clone().claim("aud", json!(["billing", "payroll"])), "aud"),
        (token.clone().without_claim("aud"), "aud"),
        (token.clone().claim("iss", "https://issuer.test/"), "iss"),
        (token.clone().without_claim("iss"), "iss"),
        (token.clone().claim("token_use", "id"), "token_use"),
        (token.clone().claim("token_use", "refresh"), "token_use"),
        (token.clone().without_claim("token_use"), "token_use"),
        (token.clone().claim("sub", "alice"), "sub"),
        (token.clone().without_claim("sub"), "sub"),
    ] {
        assert_eq!(verify(&issuer, &changed.sign()).await.err(), Some(VerifyError::Claim(claim)));
    }
    assert!(verify(&issuer, &token.claim("aud", json!(["billing", "datum"])).sign()).await.is_ok());
}

#[tokio::test]
async fn times_are_numbers_in_range() {
    let issuer = local_issuer();
    let token = issuer.build(subject());
    for claim in ["exp", "iat", "nbf"] {
        let with = |json: &str| token.clone().without_claim(claim).sign_with_member(claim, json);
        for json in
            [r#""1767268800""#, r#""never""#, "true", "[1767268800]", "{}", "1e400", "-1e400", "NaN", "Infinity"]
        {
            assert_eq!(verify(&issuer, &with(json)).await.err(), Some(VerifyError::Malformed), "{claim} {json}");
        }
        for json in ["-1", "-0.5", "253402300800", "1e300", "18446744073709551615", "-9223372036854775808"] {
            assert_eq!(verify(&issuer, &with(json)).await.err(), Some(VerifyError::Claim(claim)), "{claim} {json}");
        }
        // 12:00:01.5 on the day of the clock.
        assert!(verify(&issuer, &with("1767268801.5")).await.is_ok(), "{claim}");
    }
    for claim in ["exp", "iat"] {
        let missing = token.clone().without_claim(claim).sign();
        assert_eq!(verify(&issuer, &missing).await.err(), Some(VerifyError::Claim(claim)));
    }
    assert!(verify(&issuer, &token.without_claim("nbf").sign()).await.is_ok());
}

#[tokio::test]
async fn claims_that_contradict_themselves_refuse_the_token() {
    let issuer = local_issuer();
    let token = issuer.build(subject());
    for (claim, json) in [
        ("sub", r#""018f4e9a-0000-7000-8000-000000000002""#),
        ("exp", "253402300799"),
        ("scope", r#""actors:read""#),
        ("token_use", r#""access""#),
    ] {
        let doubled = token.sign_with_member(claim, json);
        assert_eq!(verify(&issuer, &doubled).await.err(), Some(VerifyError::Malformed), "{claim}");
        let once = token.clone().without_claim(claim).sign_with_member(claim, json);
        assert!(verify(&issuer, &once).await.is_ok(), "{claim}");
    }
}

#[tokio::test]
async fn a_payload_that_is_no_object_is_malformed() {
    let issuer = local_issuer();
    for payload in ["", "null", "[]", "\"\"", "{", "{}{}", "{\"sub\":", "\u{feff}{}", &"[".repeat(3_000)] {
        let token = issuer.build(subject()).sign_payload(payload);
        assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Malformed), "{payload:?}");
    }
}
