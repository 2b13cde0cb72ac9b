//! What a token says: as it arrives, and as a handler sees it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use time::OffsetDateTime;
use uuid::Uuid;

use super::error::VerifyError;

/// What a verified token says about its bearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `sub`: the user's id.
    pub subject: Uuid,
    /// `email`, canonical. Cognito's access tokens carry none.
    pub email: Option<String>,
    /// `name`: the display name given at registration.
    pub name: Option<String>,
    /// `client_id`: the application that the token was issued to.
    pub client_id: Option<String>,
    /// `scope`.
    pub scopes: Scopes,
    /// `exp`.
    pub expires_at: OffsetDateTime,
    /// `iat`.
    pub issued_at: OffsetDateTime,
    /// `jti`.
    pub token_id: Option<String>,
}

/// Granted scopes: a list separated by spaces, compared case-sensitively (RFC 6749 §3.3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(String);

impl Scopes {
    /// Reads a `scope` claim.
    pub fn new(scope: impl Into<String>) -> Self {
        Self(scope.into())
    }

    /// Whether `scope` was granted, as a whole word.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|granted| granted == scope)
    }

    /// Every granted scope, in the order of the claim.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|scope| !scope.is_empty())
    }
}

/// The payload as it arrives. A claim of another JSON type, or one of these twice, refuses the whole token; claims that
/// are not listed are ignored (RFC 7519 §4).
#[derive(Debug, Deserialize)]
pub(super) struct RawClaims {
    pub(super) iss: Option<String>,
    pub(super) sub: Option<String>,
    pub(super) aud: Option<Audience>,
    pub(super) exp: Option<NumericDate>,
    pub(super) iat: Option<NumericDate>,
    pub(super) nbf: Option<NumericDate>,
    pub(super) jti: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) token_use: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) email: Option<String>,
    pub(super) name: Option<String>,
    /// Whose key the token is bound to (RFC 7800).
    pub(super) cnf: Option<IgnoredAny>,
}

/// `aud`: one audience or several (RFC 7519 §4.1.3).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    pub(super) fn contains(&self, audience: &str) -> bool {
        match self {
            Self::One(one) => one == audience,
            Self::Several(several) => several.iter().any(|one| one == audience),
        }
    }
}

/// Seconds since 1970, perhaps with a fraction (RFC 7519 §2). JSON knows no infinity and no NaN, and serde takes no
/// string for a number; what is left is the range.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct NumericDate(f64);

/// 9999-12-31T23:59:59Z, the last second that RFC 3339 can write.
const LAST_SECOND: f64 = 253_402_300_799.0;

impl NumericDate {
    /// The instant, when it lies between 1970 and 9999; `claim` is blamed otherwise.
    pub(super) fn instant(self, claim: &'static str) -> Result<OffsetDateTime, VerifyError> {
        if !(0.0..=LAST_SECOND).contains(&self.0) {
            return Err(VerifyError::Claim(claim));
        }
        #[allow(clippy::cast_possible_truncation, reason = "truncation is meant, and the range was just checked")]
        let (seconds, milliseconds) = (self.0 as i64, (self.0.fract() * 1e3) as i64);
        let whole = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| VerifyError::Claim(claim))?;
        Ok(whole + time::Duration::milliseconds(milliseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_whole_words() {
        let scopes = Scopes::new("actors:read  documents:write");
        assert!(scopes.contains("actors:read") && scopes.contains("documents:write"));
        for absent in ["actors", "actors:read ", "Actors:read", "read", "", " ", "actors:read  documents:write"] {
            assert!(!scopes.contains(absent), "{absent:?}");
        }
        assert_eq!(scopes.iter().count(), 2);
        assert_eq!(Scopes::default().iter().count(), 0);
    }

    fn exp(json: &str) -> Result<OffsetDateTime, VerifyError> {
        serde_json::from_str::<NumericDate>(json).map_err(|_| VerifyError::Malformed)?.instant("exp")
    }

    #[test]
    fn a_numeric_date_is_a_number_and_may_have_a_fraction() {
        assert_eq!(exp("0").unwrap(), OffsetDateTime::UNIX_EPOCH);
        assert_eq!(exp("1700000000").unwrap().unix_timestamp(), 1_700_000_000);
        assert_eq!(exp("1.7e9").unwrap().unix_timestamp(), 1_700_000_000);
        let fraction = exp("1700000000.5").unwrap();
        assert_eq!((fraction.unix_timestamp(), fraction.millisecond()), (1_700_000_000, 500));
        assert_eq!(exp("253402300799").unwrap().year(), 9999);
    }

    #[test]
    fn a_numeric_date_out_of_range_blames_its_claim() {
        for json in ["-1", "-0.5", "253402300800", "1e300", "-1e300", "18446744073709551615", "99999999999999999999"] {
            assert_eq!(exp(json), Err(VerifyError::Claim("exp")), "{json}");
        }
    }

    #[test]
    fn what_is_no_number_is_no_date() {
        for json in
            [r#""1700000000""#, "1e400", "-1e400", "NaN", "Infinity", "null", "true", "[1700000000]", "{}", "0x10"]
        {
            assert_eq!(exp(json), Err(VerifyError::Malformed), "{json}");
        }
    }

    #[test]
    fn a_claim_given_twice_refuses_the_token() {
        for json in [r#"{"sub":"a","sub":"b"}"#, r#"{"exp":1,"exp":2}"#, r#"{"scope":"","scope":"actors:read"}"#] {
            assert!(serde_json::from_str::<RawClaims>(json).is_err(), "{json}");
        }
        assert!(serde_json::from_str::<RawClaims>(r#"{"unknown":1,"other":[]}"#).is_ok());
    }
}
