//! Refresh tokens: encrypted and opaque, as Cognito's are, so that nothing is kept of a session until it is revoked.
//!
//! The shape is a JWE in compact serialisation (RFC 7516 §7.1) with the header that Cognito's tokens have, and about their size. The
//! encrypted key, which only the pool could read, is random here: the content is sealed with a key of the pool's own.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const HEADER: &str = r#"{"cty":"JWT","enc":"A256GCM","alg":"RSA-OAEP"}"#;
/// Of an RSA key of 2,048 bits.
const ENCRYPTED_KEY_BYTES: usize = 256;
const NONCE_BYTES: usize = 12;

/// What a refresh token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// Whose it is.
    pub(crate) sub: Uuid,
    /// Names the session.
    pub(crate) origin_jti: Uuid,
    /// The app client that it was given to.
    pub(crate) client_id: String,
    /// When the user logged in, Unix time in seconds.
    pub(crate) auth_time: i64,
    /// When it ends.
    pub(crate) exp: i64,
}

/// Makes and reads refresh tokens.
pub(crate) struct Seal {
    key: LessSafeKey,
    header: String,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(redacted)")
    }
}

impl Seal {
    pub(crate) fn new(key: &[u8; 32]) -> anyhow::Result<Self> {
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| anyhow::anyhow!("no key for AES-256-GCM"))?;
        Ok(Self { key: LessSafeKey::new(key), header: URL_SAFE_NO_PAD.encode(HEADER) })
    }

    pub(crate) fn seal(&self, grant: &Grant) -> anyhow::Result<String> {
        let nonce = rand::random::<[u8; NONCE_BYTES]>();
        let mut text = serde_json::to_vec(grant)?;
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(self.header.as_bytes()),
                &mut text,
            )
            .map_err(|_| anyhow::anyhow!("cannot seal"))?;
        let mut filler = [0_u8; ENCRYPTED_KEY_BYTES];
        rand::fill(&mut filler[..]);
        let parts: [&[u8]; 4] = [&filler, &nonce, &text, tag.as_ref()];
        let encoded = parts.map(|part| URL_SAFE_NO_PAD.encode(part));
        Ok(format!("{}.{}", self.header, encoded.join(".")))
    }

    /// What a token says; none where it is not ours.
    pub(crate) fn open(&self, token: &str) -> Option<Grant> {
        let parts: [&str; 5] = token.split('.').collect::<Vec<_>>().try_into().ok()?;
        let [header, _, nonce, text, tag] = parts;
        if header != self.header {
            return None;
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let nonce = Nonce::assume_unique_for_key(decode(nonce)?.try_into().ok()?);
        let mut sealed = decode(text)?;
        sealed.extend(decode(tag)?);
        let text = self.key.open_in_place(nonce, Aad::from(header.as_bytes()), &mut sealed).ok()?;
        serde_json::from_slice(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_opened_by_its_own_pool_and_only_whole() {
        let seal = Seal::new(&[1; 32]).unwrap();
        let grant = Grant {
            sub: Uuid::from_u128(1),
            origin_jti: Uuid::from_u128(2),
            client_id: "client".into(),
            auth_time: 3,
            exp: 4,
        };
        let token = seal.seal(&grant).unwrap();
        assert_eq!(seal.open(&token), Some(grant));
        assert_eq!(token.split('.').count(), 5);
        assert_eq!(Seal::new(&[2; 32]).unwrap().open(&token), None);
        let cut = &token[..token.len() - 3];
        for broken in [cut, "", "a.b.c.d.e", &format!("{token}.x")] {
            assert_eq!(seal.open(broken), None, "{broken}");
        }
    }
}
