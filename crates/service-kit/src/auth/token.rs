//! A token before anything about it is believed: split, its header read.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

use super::error::VerifyError;

/// Longest token that is looked at, in bytes. Tokens of the local issuer have about 700, Cognito's about 1,100.
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// Longest `kid`, in bytes. RFC 7638 thumbprints have 43, Cognito's ids 44.
pub(super) const MAX_KID_BYTES: usize = 256;

/// The parts of a JWS in compact form, none of them verified.
pub(super) struct UnverifiedToken<'t> {
    pub(super) header: Header,
    /// What the signature covers: header and payload as they were sent.
    pub(super) message: &'t [u8],
    /// Still base64url.
    pub(super) signature: &'t str,
    payload: &'t str,
}

/// The members of a JOSE header that decide something. `jku`, `x5u`, `x5c` and `jwk` are ignored: a token does not say
/// which keys are trusted.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    pub(super) kid: Option<String>,
    pub(super) typ: Option<String>,
    /// Whether there is a `crit`, whatever it holds: no extension is understood here.
    #[serde(default, deserialize_with = "present")]
    pub(super) crit: bool,
}

impl<'t> UnverifiedToken<'t> {
    pub(super) fn parse(token: &'t str) -> Result<Self, VerifyError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(VerifyError::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(VerifyError::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(VerifyError::Malformed)?;
        if payload.contains('.') {
            return Err(VerifyError::Malformed);
        }
        Ok(Self { header: json_object(header)?, message: message.as_bytes(), signature, payload })
    }

    /// The claims. To be called after the signature was verified.
    pub(super) fn payload<T: DeserializeOwned>(&self) -> Result<T, VerifyError> {
        json_object(self.payload)
    }
}

/// A base64url JSON object. serde would take an array of the members' values as well.
fn json_object<T: DeserializeOwned>(part: &str) -> Result<T, VerifyError> {
    let json = URL_SAFE_NO_PAD.decode(part).map_err(|_| VerifyError::Malformed)?;
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(VerifyError::Malformed);
    }
    serde_json::from_slice(&json).map_err(|_| VerifyError::Malformed)
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str) -> String {
        format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode("{}"))
    }

    fn header(json: &str) -> Result<Header, VerifyError> {
        UnverifiedToken::parse(&token(json)).map(|token| token.header)
    }

    #[test]
    fn three_parts_are_split_and_the_header_is_read() {
        let token = token(r#"{"alg":"ES256","kid":"k","typ":"at+jwt","jku":"https://attacker.test/keys"}"#);
        let parsed = UnverifiedToken::parse(&token).unwrap();
        assert_eq!((parsed.header.alg.as_str(), parsed.header.kid.as_deref()), ("ES256", Some("k")));
        assert_eq!((parsed.header.typ.as_deref(), parsed.header.crit), (Some("at+jwt"), false));
        assert_eq!(parsed.signature, "c2ln");
        assert_eq!(parsed.message, &token.as_bytes()[..token.len() - 5]);
    }

    #[test]
    fn a_token_that_is_not_three_base64url_parts_is_malformed() {
        let good = token(r#"{"alg":"ES256"}"#);
        let (head, rest) = good.split_once('.').unwrap();
        let (payload, signature) = rest.split_once('.').unwrap();
        for bad in [
            String::new(),
            ".".to_owned(),
            "..".to_owned(),
            head.to_owned(),
            format!("{head}.{payload}"),
            format!("{good}."),
            format!(".{good}"),
            format!("{good}.{signature}"),
            format!("{head}=.{payload}.{signature}"),
            format!("{head} .{payload}.{signature}"),
            format!("!{head}.{payload}.{signature}"),
            format!("{head}..{payload}.{signature}"),
        ] {
            assert_eq!(UnverifiedToken::parse(&bad).err(), Some(VerifyError::Malformed), "{bad}");
        }
    }

    #[test]
    fn the_length_is_bounded_before_anything_is_decoded() {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
        let padded = |length: usize| format!("{header}.{}.x", "e".repeat(length - header.len() - 3));
        assert!(UnverifiedToken::parse(&padded(MAX_TOKEN_BYTES)).is_ok());
        assert_eq!(UnverifiedToken::parse(&padded(MAX_TOKEN_BYTES + 1)).err(), Some(VerifyError::Malformed));
    }

    #[test]
    fn a_header_of_another_shape_is_malformed() {
        for bad in [
            "",
            "null",
            "[]",
            r#"["ES256","k","at+jwt",true]"#,
            "{}",
            r#"{"alg":null}"#,
            r#"{"alg":["ES256"]}"#,
            r#"{"alg":{"ES256":null}}"#,
            r#"{"alg":"ES256","kid":7}"#,
            r#"{"alg":"ES256","kid":["k"]}"#,
            r#"{"alg":"ES256","alg":"none"}"#,
            r#"{"alg":"ES256","kid":"a","kid":"b"}"#,
            r#"{"alg":"ES256"} trailing"#,
            r#"{"alg":"ES256""#,
        ] {
            assert_eq!(header(bad).err(), Some(VerifyError::Malformed), "{bad}");
        }
    }

    #[test]
    fn crit_is_noticed_whatever_it_holds() {
        for crit in [r#"["exp"]"#, "[]", "null", "false", "{}", r#""b64""#] {
            assert!(header(&format!(r#"{{"alg":"ES256","crit":{crit}}}"#)).unwrap().crit, "{crit}");
        }
    }
}
