//! Refresh tokens as clients hold them: random text of which only the hash is stored.

use std::fmt;

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Marks our refresh tokens for people and secret scanners.
const PREFIX: &str = "dr_";

const RANDOM_BYTES: usize = 32;

/// 32 bytes in base64url without padding.
const RANDOM_CHARACTERS: usize = 43;

/// The SHA-256 of a refresh token: what is stored and looked up. 256 random bits cannot be guessed from it, so that no slow
/// hash is needed.
pub type TokenHash = [u8; 32];

/// A refresh token. Never shown.
#[derive(Clone)]
pub struct RefreshToken(Zeroizing<String>);

impl RefreshToken {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn generate() -> anyhow::Result<Self> {
        let mut random = Zeroizing::new([0; RANDOM_BYTES]);
        rand::fill(&mut random[..])?;
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + RANDOM_CHARACTERS));
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(&random[..], &mut text);
        Ok(Self(text))
    }

    /// What a client sent, if it can be a refresh token of ours at all.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let random = text.strip_prefix(PREFIX)?;
        let is_ours = random.len() == RANDOM_CHARACTERS
            && random.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        is_ours.then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// What is stored.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The token itself, for the one answer that carries it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RefreshToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefreshToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_token_is_read_back_and_no_two_are_alike() {
        let (one, two) = (RefreshToken::generate().expect("token"), RefreshToken::generate().expect("token"));
        assert_ne!(one.hash(), two.hash());
        assert_eq!(RefreshToken::parse(one.expose()).expect("ours").hash(), one.hash());
        assert_eq!(one.expose().len(), 46);
    }

    #[test]
    fn what_cannot_be_ours_is_not_looked_up() {
        let good = RefreshToken::generate().expect("token");
        let good = good.expose();
        for text in [
            "",
            "dr_",
            &good[3..],
            &good[..45],
            &format!("{good}A"),
            &good.replace("dr_", "DR_"),
            &format!("dr_{}\0", &good[3..45]),
            &format!("dr_{}=", &good[3..45]),
            "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        ] {
            assert!(RefreshToken::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn tokens_do_not_show_in_debug_output() {
        let token = RefreshToken::generate().expect("token");
        assert!(!format!("{token:?}").contains(&token.expose()[3..]));
    }
}
