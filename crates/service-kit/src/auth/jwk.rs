//! The public key set of an issuer as it goes over the wire (RFC 7517). Private and symmetric members have no place in
//! these types, so that none can be published or taken in by mistake.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// A set of public keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Jwks {
    /// The keys. Those that are not understood are left out when a set is read (RFC 7517 §5).
    #[serde(deserialize_with = "understood")]
    pub keys: Vec<Jwk>,
}

/// One public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Jwk {
    /// The key itself.
    #[serde(flatten)]
    pub material: Material,
    /// The id that tokens refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kid: Option<String>,
    /// `sig`: the key verifies signatures.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "sig")]
    pub key_use: Option<String>,
    /// The only algorithm the key is used with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ES256")]
    pub alg: Option<String>,
}

/// The members that make the key, base64url without padding (RFC 7518 §6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kty")]
pub enum Material {
    /// A point on an elliptic curve.
    #[serde(rename = "EC")]
    Ec {
        /// The curve's name, `P-256` for ours.
        crv: String,
        /// The x coordinate.
        x: String,
        /// The y coordinate.
        y: String,
    },
    /// An RSA key.
    #[serde(rename = "RSA")]
    Rsa {
        /// The modulus.
        n: String,
        /// The public exponent.
        e: String,
    },
}

/// The bytes are not an uncompressed point of P-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an uncompressed P-256 point (65 bytes that start with 0x04)")]
pub struct NotAPoint;

impl Jwk {
    /// The ES256 key of an uncompressed P-256 point (SEC 1 §2.3.3: `0x04`, x, y; 65 bytes). Its id is its thumbprint.
    ///
    /// # Errors
    /// When `point` has another form. Whether it lies on the curve shows when a signature is verified.
    pub fn from_p256_point(point: &[u8]) -> Result<Self, NotAPoint> {
        let Some((0x04, coordinates)) = point.split_first().map(|(form, rest)| (*form, rest)) else {
            return Err(NotAPoint);
        };
        let (x, y) = coordinates.split_at_checked(32).filter(|(_, y)| y.len() == 32).ok_or(NotAPoint)?;
        let [x, y] = [x, y].map(|coordinate| URL_SAFE_NO_PAD.encode(coordinate));
        let material = Material::Ec { crv: "P-256".to_owned(), x, y };
        let kid = material.thumbprint();
        Ok(Self { material, kid: Some(kid), key_use: Some("sig".to_owned()), alg: Some("ES256".to_owned()) })
    }
}

impl Material {
    /// The thumbprint of RFC 7638: base64url of the SHA-256 of the required members in lexicographic order.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Required<'a> {
            Ec { crv: &'a str, kty: &'a str, x: &'a str, y: &'a str },
            Rsa { e: &'a str, kty: &'a str, n: &'a str },
        }
        let required = match self {
            Self::Ec { crv, x, y } => Required::Ec { crv, kty: "EC", x, y },
            Self::Rsa { n, e } => Required::Rsa { e, kty: "RSA", n },
        };
        // A struct of strings always serialises.
        let json = serde_json::to_vec(&required).unwrap_or_default();
        URL_SAFE_NO_PAD.encode(Sha256::digest(json))
    }
}

fn understood<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Jwk>, D::Error> {
    let keys = Vec::<serde_json::Value>::deserialize(deserializer)?;
    Ok(keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_thumbprint_is_that_of_rfc_7638() {
        // The example of RFC 7638 §3.1.
        let material = Material::Rsa {
            n: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCi\
                FV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9\
                c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1\
                jF44-csFCur-kEgU8awapJzKnqDKgw"
                .to_owned(),
            e: "AQAB".to_owned(),
        };
        assert_eq!(material.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn the_thumbprint_of_a_p256_key_covers_curve_and_point() {
        // The key of RFC 7517 appendix A.1 with the thumbprint that other JOSE libraries test against.
        let material = Material::Ec {
            crv: "P-256".to_owned(),
            x: "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4".to_owned(),
            y: "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM".to_owned(),
        };
        assert_eq!(material.thumbprint(), "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s");
    }

    #[test]
    fn a_point_becomes_a_published_key() {
        let mut point = [7; 65];
        point[0] = 0x04;
        let key = Jwk::from_p256_point(&point).unwrap();
        let coordinate = URL_SAFE_NO_PAD.encode([7; 32]);
        assert_eq!(
            serde_json::to_value(&key).unwrap(),
            json!({
                "kty": "EC", "crv": "P-256", "x": coordinate, "y": coordinate, "kid": key.material.thumbprint(),
                "use": "sig", "alg": "ES256",
            })
        );
        let back: Jwks = serde_json::from_value(json!({"keys": [key]})).unwrap();
        assert_eq!(back.keys, [key]);
    }

    #[test]
    fn what_is_no_uncompressed_point_is_refused() {
        let compressed = [&[0x02][..], &[7; 64]].concat();
        for bytes in [&[][..], &[0x04], &[0x04; 64], &[0x04; 66], &compressed] {
            assert_eq!(Jwk::from_p256_point(bytes), Err(NotAPoint), "{} bytes", bytes.len());
        }
    }

    #[test]
    fn keys_that_are_not_understood_do_not_spoil_the_set() {
        let set: Jwks = serde_json::from_value(json!({
            "keys": [
                {"kty": "oct", "k": "c2VjcmV0", "kid": "symmetric"},
                {"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "edwards"},
                {"kty": "EC", "crv": "P-256", "x": "AA", "kid": "half a key"},
                {"kty": "RSA", "n": 7, "e": "AQAB", "kid": "a number"},
                {"kid": "no type"},
                "no object",
                null,
                {"kty": "RSA", "n": "AA", "e": "AQAB", "kid": "good", "x5c": ["AA"], "d": "private"},
            ],
            "other": true,
        }))
        .unwrap();
        let ids: Vec<_> = set.keys.iter().filter_map(|key| key.kid.as_deref()).collect();
        assert_eq!(ids, ["good"]);
        assert!(!serde_json::to_string(&set).unwrap().contains("private"));
    }

    #[test]
    fn a_document_without_keys_is_no_set() {
        for json in ["{}", "[]", "null", r#"{"keys":{}}"#, r#"{"keys":null}"#, "<html>"] {
            assert!(serde_json::from_str::<Jwks>(json).is_err(), "{json}");
        }
    }
}
