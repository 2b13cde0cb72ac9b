//! Keys to sign tokens with.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use service_kit::auth::jwk::{Jwk, Material};

/// A key pair and the algorithm that fits it. Clones are the same key.
#[derive(Debug, Clone)]
pub struct TestKey(Arc<Pair>);

#[derive(Debug)]
enum Pair {
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl TestKey {
    /// A new P-256 key: signs ES256, as the local provider does.
    #[must_use]
    pub fn p256() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("randomness");
        Self(Arc::new(Pair::P256(pair)))
    }

    /// A new RSA key of 2048 bits: signs RS256, as Cognito does.
    #[must_use]
    pub fn rsa() -> Self {
        Self(Arc::new(Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("randomness"))))
    }

    /// `ES256` or `RS256`.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match &*self.0 {
            Pair::P256(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    /// The key's id: its thumbprint.
    #[must_use]
    pub fn kid(&self) -> String {
        self.jwk().material.thumbprint()
    }

    /// The public key as an issuer publishes it.
    #[must_use]
    pub fn jwk(&self) -> Jwk {
        match &*self.0 {
            Pair::P256(pair) => Jwk::from_p256_point(pair.public_key().as_ref()).expect("an uncompressed point"),
            Pair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                let [n, e] = [public.n, public.e].map(|number| URL_SAFE_NO_PAD.encode(number));
                let material = Material::Rsa { n, e };
                let kid = Some(material.thumbprint());
                Jwk { material, kid, key_use: Some("sig".to_owned()), alg: Some("RS256".to_owned()) }
            }
        }
    }

    /// The public key's bytes: what an attacker knows as well.
    #[must_use]
    pub fn public_bytes(&self) -> Vec<u8> {
        match &*self.0 {
            Pair::P256(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// The signature of `message` in the form that a JWS carries.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &*self.0 {
            Pair::P256(pair) => pair.sign(&random, message).expect("a key that signs").as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("a key that signs");
                signature
            }
        }
    }
}
