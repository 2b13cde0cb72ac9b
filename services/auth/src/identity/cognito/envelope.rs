//! The refresh token that we hand out: Cognito's own, and the pool's name of its user.
//!
//! A client with a secret proves it on every refresh with a hash over that name, and nobody but us would remember it; the email
//! that the user logged in with is only an alias. The envelope needs no signature: Cognito's token inside is what grants anything,
//! and the name is used for nothing but that hash.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

/// Marks our refresh tokens for people and secret scanners, and tells them from the local provider's.
const PREFIX: &str = "dc_";

/// The most bytes of an envelope. Cognito's tokens have about 1,800.
const MAX_BYTES: usize = 8 * 1024;

/// The most bytes of a user name ("username", `SignUp`: 128 characters).
const MAX_USERNAME_BYTES: usize = 512;

/// What is inside.
pub(super) struct Envelope {
    pub(super) username: String,
    pub(super) refresh_token: Zeroizing<String>,
}

impl Envelope {
    /// The text for the client; none of what [`Envelope::open`] would refuse.
    pub(super) fn seal(username: &str, refresh_token: &str) -> Option<Zeroizing<String>> {
        // Allocated once: a string that grows leaves copies of its contents behind.
        let length = PREFIX.len() + username.len() * 4 / 3 + 4 + refresh_token.len();
        let mut text = Zeroizing::new(String::with_capacity(length));
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(username, &mut text);
        text.push('.');
        text.push_str(refresh_token);
        Self::open(&text).is_some().then_some(text)
    }

    /// What a client sent, if it can be ours at all.
    pub(super) fn open(text: &str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let (username, refresh_token) = text.strip_prefix(PREFIX)?.split_once('.')?;
        let username = String::from_utf8(URL_SAFE_NO_PAD.decode(username).ok()?).ok()?;
        let plausible = !refresh_token.is_empty() && refresh_token.bytes().all(|byte| byte.is_ascii_graphic());
        let named = username.len() <= MAX_USERNAME_BYTES && !username.chars().any(char::is_control);
        (plausible && named).then(|| Self { username, refresh_token: Zeroizing::new(refresh_token.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_is_opened() {
        for (username, token) in [
            ("01a22ec5-e2c6-7aa8-b1bd-254186abcf9f", "eyJj.dHk.a-_="),
            ("ada@example.com", "x"),
            ("", "t"),
            ("é", "a.b"),
        ] {
            let text = Envelope::seal(username, token).expect("usable");
            assert!(text.starts_with("dc_"));
            let opened = Envelope::open(&text).expect("ours");
            assert_eq!((opened.username.as_str(), opened.refresh_token.as_str()), (username, token));
        }
    }

    #[test]
    fn what_could_not_be_opened_is_not_sealed() {
        let (long, name) = ("x".repeat(MAX_BYTES), "n".repeat(MAX_USERNAME_BYTES + 1));
        for (username, token) in [("ada", ""), ("ada", "a b"), ("ada", "é"), ("ada", &long), (&name, "t"), ("a\0", "t")]
        {
            assert!(Envelope::seal(username, token).is_none(), "{username:?} {token:?}");
        }
    }

    #[test]
    fn what_cannot_be_ours_is_not_sent_on() {
        let long = format!("dc_YQ.{}", "x".repeat(MAX_BYTES));
        let control = format!("dc_{}.t", URL_SAFE_NO_PAD.encode("a\0b"));
        let name = format!("dc_{}.t", URL_SAFE_NO_PAD.encode("n".repeat(MAX_USERNAME_BYTES + 1)));
        for text in [
            "",
            "dc_",
            "dc_YQ",
            "dc_YQ.",
            "dc_YQ=.t",
            "dc_!.t",
            "DC_YQ.t",
            "dc_YQ.a b",
            "dc_YQ.a\0",
            "dc_YQ.é",
            "dc__w.t",
            "dr_GcLQ2bPmmPOmU1Mgrz4p8YkKvKtMT9Vp8kO6GgWOhv8",
            "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            &long,
            &control,
            &name,
        ] {
            assert!(Envelope::open(text).is_none(), "{text:?}");
        }
        assert!(Envelope::open(&long[..MAX_BYTES]).is_some());
    }
}
