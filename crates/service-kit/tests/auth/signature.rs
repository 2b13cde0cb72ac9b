//! Only the issuer's signature counts, made with the algorithm that belongs to the key.

use aws_lc_rs::hmac;
use service_kit::auth::VerifyError;
use test_support::{TestIssuer, TestKey};

use crate::{clock, local_issuer, subject, verify};

#[tokio::test]
async fn a_token_of_the_issuer_is_accepted() {
    let issuer = local_issuer();
    let token = issuer.build(subject()).scope("actors:read").claim("email", "a@x.io").claim("name", "Ada").sign();
    let claims = verify(&issuer, &token).await.expect("a good token");
    assert_eq!(claims.subject, subject());
    assert_eq!((claims.email.as_deref(), claims.name.as_deref()), (Some("a@x.io"), Some("Ada")));
    assert!(claims.scopes.contains("actors:read") && !claims.scopes.contains("actors:write"));
}

#[tokio::test]
async fn an_unsigned_token_is_refused_however_none_is_spelt() {
    let issuer = local_issuer();
    for alg in ["none", "None", "NONE", "nOnE", "none ", ""] {
        let token = issuer.build(subject()).header("alg", alg);
        for unsigned in [token.sign_with(|_| Vec::new()), token.sign(), token.clone().without_header("kid").sign()] {
            assert_eq!(verify(&issuer, &unsigned).await.err(), Some(VerifyError::Header("alg")), "{alg:?}");
        }
    }
    let unsigned = issuer.build(subject()).sign_with(|_| Vec::new());
    assert_eq!(verify(&issuer, &unsigned).await.err(), Some(VerifyError::Signature));
}

#[tokio::test]
async fn a_key_that_is_not_the_issuers_is_refused() {
    let issuer = local_issuer();
    let token = issuer.build(subject()).signed_by(&TestKey::p256()).sign();
    assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Signature));
    let token = issuer.build(subject()).signed_by(&TestKey::rsa()).sign();
    assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Signature));
}

#[tokio::test]
async fn the_public_key_is_no_hmac_secret() {
    for issuer in [local_issuer(), TestIssuer::cognito(std::sync::Arc::new(clock()))] {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &issuer.key().public_bytes());
        let mac = |message: &[u8]| hmac::sign(&secret, message).as_ref().to_vec();
        let claiming_hs256 = issuer.build(subject()).header("alg", "HS256").sign_with(mac);
        assert_eq!(verify(&issuer, &claiming_hs256).await.err(), Some(VerifyError::Header("alg")));
        let claiming_the_right_one = issuer.build(subject()).sign_with(mac);
        assert_eq!(verify(&issuer, &claiming_the_right_one).await.err(), Some(VerifyError::Signature));
    }
}

#[tokio::test]
async fn the_algorithm_is_the_keys_and_not_the_tokens() {
    let issuer = local_issuer();
    // Signed correctly with RSA, under the id of the P-256 key.
    let rsa = TestKey::rsa();
    let token = issuer.build(subject()).header("alg", "RS256").signed_by(&rsa).sign();
    assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Header("alg")));
    // And the other way round.
    let cognito = TestIssuer::cognito(std::sync::Arc::new(clock()));
    let token = cognito.build(subject()).header("alg", "ES256").signed_by(&TestKey::p256()).sign();
    assert_eq!(verify(&cognito, &token).await.err(), Some(VerifyError::Header("alg")));
    for alg in ["ES384", "RS384", "RS512", "PS256", "EdDSA", "ES256K", "es256", "rs256"] {
        let token = issuer.build(subject()).header("alg", alg).sign();
        assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Header("alg")), "{alg}");
    }
}

#[tokio::test]
async fn between_two_keys_of_the_issuer_the_id_decides() {
    let mut issuer = local_issuer();
    let old = issuer.key().clone();
    issuer.rotate();
    assert!(verify(&issuer, &issuer.token(subject())).await.is_ok());
    let of_the_old_key = issuer.build(subject()).header("kid", old.kid()).signed_by(&old).sign();
    assert!(verify(&issuer, &of_the_old_key).await.is_ok());
    let swapped = issuer.build(subject()).header("kid", old.kid()).sign();
    assert_eq!(verify(&issuer, &swapped).await.err(), Some(VerifyError::Signature));
}

#[tokio::test]
async fn every_part_is_covered_by_the_signature() {
    let issuer = local_issuer();
    let good = issuer.token(subject());
    let other = issuer.build(subject()).scope("actors:read").header("cty", "x").sign();
    let [header, payload, signature] = parts(&good);
    let [other_header, other_payload, other_signature] = parts(&other);
    for forged in [
        format!("{other_header}.{payload}.{signature}"),
        format!("{header}.{other_payload}.{signature}"),
        format!("{header}.{payload}.{other_signature}"),
    ] {
        assert_eq!(verify(&issuer, &forged).await.err(), Some(VerifyError::Signature));
    }
}

#[tokio::test]
async fn a_signature_of_another_length_or_alphabet_is_refused() {
    let issuer = local_issuer();
    let good = issuer.token(subject());
    let [header, payload, signature] = parts(&good);
    let truncated = &signature[..signature.len() - 4];
    for bad in [
        "",
        truncated,
        &format!("{signature}AAAA"),
        &format!("{signature}="),
        "!!!!",
        &signature.replace(['-', '_'], "+"),
    ] {
        let token = format!("{header}.{payload}.{bad}");
        if token != good {
            assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Signature), "{bad:?}");
        }
    }
}

#[tokio::test]
async fn what_is_no_token_is_malformed() {
    let issuer = local_issuer();
    let good = issuer.token(subject());
    let opaque_refresh_token = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA";
    for bad in [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "null",
        opaque_refresh_token,
        &format!("{good}."),
        &format!("{good}.."),
        &format!(".{good}"),
        &format!(" {good}"),
        &format!("{good}\0"),
        &good.replace('.', ","),
        &"x".repeat(9_000),
        &".".repeat(9_000),
        "ünïcödé.ünïcödé.ünïcödé",
    ] {
        let refused = verify(&issuer, bad).await.err();
        // A NUL at the end belongs to the signature part.
        assert!(matches!(refused, Some(VerifyError::Malformed | VerifyError::Signature)), "{bad:?}: {refused:?}");
    }
}

#[tokio::test]
async fn a_very_long_token_is_refused_although_it_is_signed() {
    let issuer = local_issuer();
    let token = issuer.build(subject()).claim("name", "x".repeat(4_000)).sign();
    assert!(verify(&issuer, &token).await.is_ok());
    let token = issuer.build(subject()).claim("name", "x".repeat(10_000)).sign();
    assert_eq!(verify(&issuer, &token).await.err(), Some(VerifyError::Malformed));
}

fn parts(token: &str) -> [&str; 3] {
    let parts: Vec<_> = token.split('.').collect();
    parts.try_into().expect("three parts")
}
