//! The local issuer's signing keys: ES256, from PEM. The first signs; all are published, so that keys can be exchanged while
//! tokens of the old one are still out.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls_pki_types::pem::{PemObject, SectionKind};
use service_kit::auth::jwk::{Jwk, Jwks};
use zeroize::{Zeroize, Zeroizing};

/// What is wrong with configured keys. Never repeats key material.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no PEM section.
    #[error("holds no PEM key; one begins with -----BEGIN PRIVATE KEY-----")]
    None,
    /// The PEM armour is broken.
    #[error("is not valid PEM after key {0}")]
    Pem(usize),
    /// The section is something else.
    #[error(
        "key {0} is no PKCS#8 private key (-----BEGIN PRIVATE KEY-----); `openssl pkcs8 -topk8 -nocrypt` converts one"
    )]
    NotPkcs8(usize),
    /// The key is of another kind.
    #[error("key {0} is not an EC key on the curve P-256, which ES256 demands")]
    NotP256(usize),
    /// The same key again.
    #[error("key {0} is there twice")]
    Duplicate(usize),
}

/// Signing keys, in the configured order.
pub struct SigningKeys {
    signer: EcdsaKeyPair,
    signer_id: String,
    jwks: Jwks,
}

impl SigningKeys {
    /// Reads concatenated PKCS#8 PEM sections.
    ///
    /// # Errors
    /// Which key (counted from 1) is not acceptable, and why.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        // Some ways of passing an environment variable write line ends as `\n`; base64 has no backslash.
        let pem = Zeroizing::new(pem.replace("\\n", "\n"));
        let mut signer: Option<(EcdsaKeyPair, String)> = None;
        let mut keys: Vec<Jwk> = Vec::new();
        for (section, number) in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes()).zip(1..) {
            let (kind, mut der) = section.map_err(|_| KeyError::Pem(number - 1))?;
            let key_pair = match kind {
                SectionKind::PrivateKey => EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).ok(),
                _ => return Err(KeyError::NotPkcs8(number)),
            };
            der.zeroize();
            let key_pair = key_pair.ok_or(KeyError::NotP256(number))?;
            let jwk = Jwk::from_p256_point(key_pair.public_key().as_ref()).map_err(|_| KeyError::NotP256(number))?;
            if keys.contains(&jwk) {
                return Err(KeyError::Duplicate(number));
            }
            signer.get_or_insert((key_pair, jwk.material.thumbprint()));
            keys.push(jwk);
        }
        let (signer, signer_id) = signer.ok_or(KeyError::None)?;
        Ok(Self { signer, signer_id, jwks: Jwks { keys } })
    }

    /// The public halves of all keys.
    #[must_use]
    pub fn jwks(&self) -> &Jwks {
        &self.jwks
    }

    /// The id of the key that signs: its RFC 7638 thumbprint.
    #[must_use]
    pub fn signer_id(&self) -> &str {
        &self.signer_id
    }

    /// The JWS of a header and a payload, in compact form (RFC 7515 §3.1). The header must say ES256 and [`Self::signer_id`].
    pub(crate) fn sign(&self, header: &[u8], payload: &[u8]) -> anyhow::Result<String> {
        let mut token = String::with_capacity((header.len() + payload.len()) * 4 / 3 + 96);
        URL_SAFE_NO_PAD.encode_string(header, &mut token);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(payload, &mut token);
        let signature = self.signer.sign(&SystemRandom::new(), token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

/// Keys never show.
impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKeys").field("signer_id", &self.signer_id).finish_non_exhaustive()
    }
}

/// A new signing key as PKCS#8 PEM.
///
/// # Errors
/// When the system has no random bytes.
pub fn generate_pem() -> anyhow::Result<Zeroizing<String>> {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())?;
    let base64 = Zeroizing::new(STANDARD.encode(key.as_ref()));
    let mut pem = Zeroizing::new(String::with_capacity(512));
    pem.push_str("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = tail;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt`.
    const OPENSSL_P256: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHRdeYaQo47Uvbkt/
/c+akk4TA1rNbYVLyovUu5OmO9ahRANCAATvM92aSAks3gVCmw3LpoE9AMuYjhig
DFgDnrQItRAcrLNzQpUAjDpgpFQntyutDvSh4l71nxFSbFnKkHWamZ8Z
-----END PRIVATE KEY-----
";

    /// The same with `-name secp384r1`.
    const OPENSSL_P384: &str = "-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDD7cyItENqcCcbecFOd
Ikiks9Q7keRUg7YF1NfKqsbhKUMZsf4oH2HlhyXc5EDQSsqhZANiAARZ0/9ONOSk
zKPnTq6UrIRJvXGzL6wji4BltbsmNp8kpRarBHcH0nneW2HyKVdm26QQyNPrPSkg
VR3+m4H6x0pXgD/x/M6G8TwlngXx2WXb2kBKW28HmVy+0Km8qItCa8Q=
-----END PRIVATE KEY-----
";

    fn error(pem: &str) -> KeyError {
        SigningKeys::from_pem(pem).expect_err("refused")
    }

    #[test]
    fn the_first_key_signs_and_all_are_published() {
        let (one, two) = (generate_pem().expect("key"), generate_pem().expect("key"));
        let keys = SigningKeys::from_pem(&format!("{}{OPENSSL_P256}{}", *one, *two)).expect("valid");
        assert_eq!(keys.jwks().keys.len(), 3);
        assert_eq!(keys.jwks().keys[0].kid.as_deref(), Some(keys.signer_id()));
        let alone = SigningKeys::from_pem(&one).expect("valid");
        assert_eq!(alone.signer_id(), keys.signer_id());
    }

    #[test]
    fn a_key_keeps_its_id_and_escaped_line_ends_are_understood() {
        let keys = SigningKeys::from_pem(OPENSSL_P256).expect("valid");
        assert_eq!(keys.signer_id(), "3uakLIevyM1Rw8C8W4L-3WkA4urLiAqk8Y_oaHe9h_k");
        let escaped = SigningKeys::from_pem(&OPENSSL_P256.replace('\n', "\\n")).expect("valid");
        assert_eq!(escaped.signer_id(), keys.signer_id());
    }

    #[test]
    fn what_cannot_sign_es256_is_refused_and_named() {
        let good = generate_pem().expect("key");
        assert_eq!(error(""), KeyError::None);
        assert_eq!(error("not PEM"), KeyError::None);
        assert_eq!(error(&format!("{}{OPENSSL_P384}", *good)), KeyError::NotP256(2));
        assert_eq!(error(&format!("{}{OPENSSL_P256}{}", *good, *good)), KeyError::Duplicate(3));
        assert_eq!(error(&good.replace("PRIVATE KEY", "EC PRIVATE KEY")), KeyError::NotPkcs8(1));
        assert_eq!(error(&good.replace("PRIVATE KEY", "CERTIFICATE")), KeyError::NotPkcs8(1));
        assert_eq!(error("-----BEGIN PRIVATE KEY-----\n????\n-----END PRIVATE KEY-----\n"), KeyError::Pem(0));
        assert_eq!(error("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), KeyError::NotP256(1));
        assert_eq!(error(&good.replace("-----END PRIVATE KEY-----", "")), KeyError::Pem(0));
    }

    #[test]
    fn keys_do_not_show_in_debug_output() {
        let keys = SigningKeys::from_pem(OPENSSL_P256).expect("valid");
        let base64 = OPENSSL_P256.lines().nth(1).expect("a line");
        assert!(!format!("{keys:?}").contains(base64));
    }
}
