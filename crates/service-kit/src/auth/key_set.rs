//! The keys in use: each one picked by its id, each one good for exactly one algorithm.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};

use super::error::VerifyError;
use super::jwk::{Jwk, Jwks, Material};
use super::token::{MAX_KID_BYTES, UnverifiedToken};

/// Smallest RSA modulus that is accepted, in bits (RFC 7518 §3.3).
const MIN_RSA_BITS: usize = 2048;

/// Verification keys by id.
#[derive(Debug)]
pub(super) struct KeySet {
    /// Rises with every change of the keys; what was verified with an older generation has to be verified again.
    pub(super) generation: u64,
    keys: HashMap<String, PinnedKey>,
}

impl KeySet {
    /// The usable keys of a published set. A key without an id cannot be asked for; of two with one id the first counts.
    pub(super) fn new(jwks: &Jwks, generation: u64) -> Self {
        let mut keys = HashMap::new();
        for jwk in &jwks.keys {
            let Some(kid) = jwk.kid.as_ref().filter(|kid| kid.len() <= MAX_KID_BYTES) else { continue };
            if let (Some(key), Entry::Vacant(place)) = (PinnedKey::new(jwk), keys.entry(kid.clone())) {
                place.insert(key);
            }
        }
        Self { generation, keys }
    }

    pub(super) fn get(&self, kid: &str) -> Option<&PinnedKey> {
        self.keys.get(kid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether both sets hold the same keys under the same ids.
    pub(super) fn same_keys(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

/// A public key and the one algorithm it verifies. The algorithm comes from the key, never from a token (RFC 8725 §3.1).
#[derive(Debug)]
pub(super) struct PinnedKey {
    algorithm: PinnedAlgorithm,
    material: Material,
    key: DecodingKey,
}

impl PartialEq for PinnedKey {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && self.material == other.material
    }
}

/// What keys can be pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PinnedAlgorithm {
    Es256,
    Rs256,
}

impl PinnedAlgorithm {
    /// The algorithm of a header, compared to the letter.
    pub(super) fn named(alg: &str) -> Option<Self> {
        [Self::Es256, Self::Rs256].into_iter().find(|algorithm| algorithm.name() == alg)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }
}

impl PinnedKey {
    /// The key, if it is one that signs tokens: P-256 or RSA of at least 2048 bits, not marked for another use or
    /// another algorithm.
    fn new(jwk: &Jwk) -> Option<Self> {
        let (algorithm, key) = match &jwk.material {
            Material::Ec { crv, x, y } if crv == "P-256" && is_coordinate(x) && is_coordinate(y) => {
                (PinnedAlgorithm::Es256, DecodingKey::from_ec_components(x, y).ok()?)
            }
            Material::Rsa { n, e } if bits(n)? >= MIN_RSA_BITS => {
                (PinnedAlgorithm::Rs256, DecodingKey::from_rsa_components(n, e).ok()?)
            }
            _ => return None,
        };
        let for_signatures = jwk.key_use.as_deref().is_none_or(|key_use| key_use == "sig");
        let agrees = jwk.alg.as_deref().is_none_or(|alg| alg == algorithm.name());
        (for_signatures && agrees).then(|| Self { algorithm, material: jwk.material.clone(), key })
    }

    /// Whether the token was signed with this key and says that it was signed with this key's algorithm.
    pub(super) fn check(&self, token: &UnverifiedToken<'_>) -> Result<(), VerifyError> {
        if token.header.alg != self.algorithm.name() {
            return Err(VerifyError::Header("alg"));
        }
        let algorithm = match self.algorithm {
            PinnedAlgorithm::Es256 => Algorithm::ES256,
            PinnedAlgorithm::Rs256 => Algorithm::RS256,
        };
        match jsonwebtoken::crypto::verify(token.signature, token.message, &self.key, algorithm) {
            Ok(true) => Ok(()),
            _ => Err(VerifyError::Signature),
        }
    }
}

/// A coordinate of P-256 has exactly 32 bytes (RFC 7518 §6.2.1.2).
fn is_coordinate(base64url: &str) -> bool {
    URL_SAFE_NO_PAD.decode(base64url).is_ok_and(|bytes| bytes.len() == 32)
}

/// The length of a big-endian number without its leading zeros.
fn bits(base64url: &str) -> Option<usize> {
    let bytes = URL_SAFE_NO_PAD.decode(base64url).ok()?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    Some((bytes.len() - first) * 8 - bytes[first].leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "literals are written where it is called")]
    fn usable(key: Value) -> bool {
        let jwks: Jwks = serde_json::from_value(json!({ "keys": [key] })).unwrap();
        !KeySet::new(&jwks, 0).is_empty()
    }

    fn number(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn ec(changes: Value) -> Value {
        merged(json!({"kty": "EC", "crv": "P-256", "x": number(&[1; 32]), "y": number(&[2; 32]), "kid": "k"}), changes)
    }

    fn rsa(changes: Value) -> Value {
        merged(json!({"kty": "RSA", "n": number(&[0x80; 256]), "e": "AQAB", "kid": "k"}), changes)
    }

    #[allow(clippy::needless_pass_by_value, reason = "literals are written where it is called")]
    fn merged(mut key: Value, changes: Value) -> Value {
        for (name, value) in changes.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    }

    #[test]
    fn the_algorithm_follows_from_the_key() {
        let jwks: Jwks = serde_json::from_value(json!({ "keys": [ec(json!({})), rsa(json!({"kid": "r"}))] })).unwrap();
        let set = KeySet::new(&jwks, 3);
        assert_eq!(set.get("k").unwrap().algorithm, PinnedAlgorithm::Es256);
        assert_eq!(set.get("r").unwrap().algorithm, PinnedAlgorithm::Rs256);
        assert_eq!((set.len(), set.generation), (2, 3));
        assert!(set.get("K").is_none());
    }

    #[test]
    fn keys_for_other_purposes_are_ignored() {
        for make in [ec, rsa] {
            assert!(usable(make(json!({}))));
            assert!(usable(make(json!({"use": "sig"}))));
            assert!(!usable(make(json!({"use": "enc"}))));
            for alg in ["HS256", "none", "ES384", "PS256", "RSA-OAEP", ""] {
                assert!(!usable(make(json!({"alg": alg}))), "{alg}");
            }
        }
        assert!(usable(ec(json!({"alg": "ES256"}))) && !usable(ec(json!({"alg": "RS256"}))));
        assert!(usable(rsa(json!({"alg": "RS256"}))) && !usable(rsa(json!({"alg": "ES256"}))));
    }

    #[test]
    fn a_key_needs_an_id_of_reasonable_length() {
        assert!(!usable(ec(json!({"kid": null}))));
        assert!(usable(ec(json!({"kid": "k".repeat(MAX_KID_BYTES)}))));
        assert!(!usable(ec(json!({"kid": "k".repeat(MAX_KID_BYTES + 1)}))));
    }

    #[test]
    fn other_curves_and_broken_points_are_ignored() {
        for crv in ["P-384", "P-521", "secp256k1", "p-256", ""] {
            assert!(!usable(ec(json!({"crv": crv}))), "{crv}");
        }
        for x in [number(&[1; 31]), number(&[1; 33]), String::new(), "!".to_owned(), format!("{}=", number(&[1; 32]))] {
            assert!(!usable(ec(json!({"x": x.clone()}))), "x {x}");
            assert!(!usable(ec(json!({"y": x.clone()}))), "y {x}");
        }
    }

    #[test]
    fn short_rsa_keys_are_ignored() {
        assert!(!usable(rsa(json!({"n": number(&[0xff; 128])}))), "1024 bits");
        assert!(!usable(rsa(json!({"n": number(&[0x7f; 256])}))), "2047 bits");
        let padded = [&[0; 128][..], &[0xff; 128]].concat();
        assert!(!usable(rsa(json!({"n": number(&padded)}))), "1024 bits behind zeros");
        assert!(!usable(rsa(json!({"n": number(&[0; 256])}))), "zero");
        assert!(!usable(rsa(json!({"n": ""}))));
        assert!(!usable(rsa(json!({"e": "!"}))));
    }

    #[test]
    fn the_first_of_two_keys_with_one_id_counts() {
        let set = |keys: Value| KeySet::new(&serde_json::from_value(json!({ "keys": keys })).unwrap(), 0);
        let first = set(json!([ec(json!({})), rsa(json!({}))]));
        assert_eq!((first.len(), first.get("k").unwrap().algorithm), (1, PinnedAlgorithm::Es256));
        let behind_an_unusable_one = set(json!([ec(json!({"use": "enc"})), rsa(json!({}))]));
        assert_eq!(behind_an_unusable_one.get("k").unwrap().algorithm, PinnedAlgorithm::Rs256);
    }

    #[test]
    fn sets_are_compared_by_id_and_material() {
        let set = |keys: Value| KeySet::new(&serde_json::from_value(json!({ "keys": keys })).unwrap(), 0);
        let both = set(json!([ec(json!({})), rsa(json!({"kid": "r"}))]));
        assert!(both.same_keys(&set(json!([rsa(json!({"kid": "r"})), ec(json!({}))]))));
        assert!(!both.same_keys(&set(json!([ec(json!({}))]))));
        assert!(!both.same_keys(&set(json!([ec(json!({"x": number(&[9; 32])})), rsa(json!({"kid": "r"}))]))));
        assert!(!both.same_keys(&set(json!([ec(json!({"kid": "other"})), rsa(json!({"kid": "r"}))]))));
    }

    #[test]
    fn algorithms_are_named_to_the_letter() {
        assert_eq!(PinnedAlgorithm::named("ES256"), Some(PinnedAlgorithm::Es256));
        assert_eq!(PinnedAlgorithm::named("RS256"), Some(PinnedAlgorithm::Rs256));
        for other in ["none", "None", "nOnE", "", "es256", "ES256 ", "HS256", "RS512", "PS256", "EdDSA"] {
            assert_eq!(PinnedAlgorithm::named(other), None, "{other}");
        }
    }
}
