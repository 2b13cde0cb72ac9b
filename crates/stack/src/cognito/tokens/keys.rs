//! The pool's keys: two that sign, as in every pool (one for access tokens, one for ID tokens), and the ones for what only the pool
//! itself reads.

use anyhow::Context;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaPublicKeyComponents};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// An RSA key of 2,048 bits, which is what Cognito's are.
#[derive(Debug)]
pub(crate) struct SigningKey {
    pair: KeyPair,
    /// Names the key in a token's header.
    pub(crate) kid: String,
    random: SystemRandom,
}

impl SigningKey {
    fn new(pair: KeyPair) -> Self {
        // Cognito's are 44 characters of base64.
        let kid = STANDARD.encode(Sha256::digest(pair.public_key().modulus().big_endian_without_leading_zero()));
        Self { pair, kid, random: SystemRandom::new() }
    }

    /// RS256 (RFC 7518 §3.3).
    pub(crate) fn sign(&self, message: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair.sign(&RSA_PKCS1_SHA256, &self.random, message, &mut signature).ok().context("cannot sign")?;
        Ok(signature)
    }

    pub(crate) fn is_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let (n, e) = self.components();
        RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
    }

    fn components(&self) -> (&[u8], &[u8]) {
        let public = self.pair.public_key();
        (public.modulus().big_endian_without_leading_zero(), public.exponent().big_endian_without_leading_zero())
    }

    fn jwk(&self) -> Value {
        let (n, e) = self.components();
        let (n, e) = (URL_SAFE_NO_PAD.encode(n), URL_SAFE_NO_PAD.encode(e));
        json!({"alg": "RS256", "e": e, "kid": self.kid, "kty": "RSA", "n": n, "use": "sig"})
    }
}

/// All keys of a pool.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) access: SigningKey,
    pub(crate) id: SigningKey,
    /// For the hashes of passwords.
    pub(crate) passwords: [u8; 32],
    /// For refresh tokens.
    pub(crate) sealing: [u8; 32],
}

/// As they are kept, in base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    access: String,
    id: String,
    passwords: String,
    sealing: String,
}

impl Keys {
    /// New keys, and how they are kept.
    pub(crate) fn generate() -> anyhow::Result<(Self, Vec<u8>)> {
        let pkcs8 = || -> anyhow::Result<String> {
            let pair = KeyPair::generate(KeySize::Rsa2048).ok().context("cannot make an RSA key")?;
            let der: Pkcs8V1Der<'_> = pair.as_der().ok().context("cannot write an RSA key")?;
            Ok(STANDARD.encode(der.as_ref()))
        };
        let random = || STANDARD.encode(rand::random::<[u8; 32]>());
        let stored = Stored { access: pkcs8()?, id: pkcs8()?, passwords: random(), sealing: random() };
        let text = serde_json::to_vec(&stored)?;
        Ok((Self::read(&text)?, text))
    }

    /// Keys that were kept.
    pub(crate) fn read(text: &[u8]) -> anyhow::Result<Self> {
        let stored: Stored = serde_json::from_slice(text)?;
        let signing = |text: &str| -> anyhow::Result<SigningKey> {
            let pair = KeyPair::from_pkcs8(&STANDARD.decode(text)?).ok().context("no RSA key")?;
            Ok(SigningKey::new(pair))
        };
        let secret = |text: &str| -> anyhow::Result<[u8; 32]> {
            STANDARD.decode(text)?.try_into().ok().context("a key that has not 32 bytes")
        };
        Ok(Self {
            access: signing(&stored.access)?,
            id: signing(&stored.id)?,
            passwords: secret(&stored.passwords)?,
            sealing: secret(&stored.sealing)?,
        })
    }

    /// What is published.
    pub(crate) fn jwks(&self) -> Value {
        json!({"keys": [self.id.jwk(), self.access.jwk()]})
    }
}
