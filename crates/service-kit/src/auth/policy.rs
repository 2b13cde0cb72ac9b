//! What a token must say to be accepted.

use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::claims::{Claims, RawClaims, Scopes};
use super::error::VerifyError;
use super::token::Header;

/// How far clocks may be apart: `exp`, `nbf` and `iat` are checked with this leeway.
const LEEWAY: Duration = Duration::seconds(5);

/// Whose tokens are accepted, and what marks an access token meant for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// Our own issuer: RFC 9068 tokens (`typ: at+jwt`) whose `aud` names us.
    Local {
        /// `iss`, compared as it stands.
        issuer: String,
        /// What `aud` has to contain.
        audience: String,
    },
    /// An Amazon Cognito user pool. Its access tokens have no `aud`; `client_id` says which application they are for
    /// ("Verifying JSON web tokens", Amazon Cognito Developer Guide). ID tokens are refused.
    Cognito {
        /// `iss`: `https://cognito-idp.<region>.amazonaws.com/<pool id>`.
        issuer: String,
        /// Applications whose tokens are accepted, in the configured order.
        client_ids: Vec<String>,
    },
}

impl Policy {
    /// The `iss` of every accepted token.
    #[must_use]
    pub fn issuer(&self) -> &str {
        match self {
            Self::Local { issuer, .. } | Self::Cognito { issuer, .. } => issuer,
        }
    }

    /// What can be refused before a key is looked for.
    pub(super) fn check_header(&self, header: &Header) -> Result<(), VerifyError> {
        expect_header(!header.crit, "crit")?;
        let typ = header.typ.as_deref();
        let accepted = match self {
            Self::Local { .. } => typ.is_some_and(is_access_token_type),
            // Cognito states none, emulators the usual one. Any other type means something else, such as a token that
            // only the holder of a key may use.
            Self::Cognito { .. } => typ.is_none_or(|typ| typ.eq_ignore_ascii_case("JWT") || is_access_token_type(typ)),
        };
        expect_header(accepted, "typ")
    }

    /// Checks the claims of a token whose signature was verified.
    pub(super) fn accept(&self, raw: RawClaims, now: OffsetDateTime) -> Result<Claims, VerifyError> {
        expect(raw.iss.as_deref() == Some(self.issuer()), "iss")?;
        expect(raw.token_use.as_deref() == Some("access"), "token_use")?;
        // A token for the holder of a key alone: as a bearer token anybody could use it who has seen it.
        expect(raw.cnf.is_none(), "cnf")?;
        match self {
            Self::Local { audience, .. } => {
                expect(raw.aud.is_some_and(|aud| aud.contains(audience)), "aud")?;
            }
            Self::Cognito { client_ids, .. } => {
                expect(raw.client_id.as_ref().is_some_and(|id| client_ids.contains(id)), "client_id")?;
            }
        }
        let subject = raw.sub.as_deref().and_then(uuid).ok_or(VerifyError::Claim("sub"))?;
        let expires_at = raw.exp.ok_or(VerifyError::Claim("exp"))?.instant("exp")?;
        let issued_at = raw.iat.ok_or(VerifyError::Claim("iat"))?.instant("iat")?;
        let not_before = raw.nbf.map(|nbf| nbf.instant("nbf")).transpose()?;
        // Differences, because the last second of the year 9999 has no successor.
        if now - expires_at >= LEEWAY {
            return Err(VerifyError::Expired);
        }
        if not_before.map_or(issued_at, |nbf| nbf.max(issued_at)) - now > LEEWAY {
            return Err(VerifyError::NotYetValid);
        }
        Ok(Claims {
            subject,
            email: raw.email,
            name: raw.name,
            client_id: raw.client_id,
            scopes: raw.scope.map(Scopes::new).unwrap_or_default(),
            expires_at,
            issued_at,
            token_id: raw.jti,
        })
    }
}

fn expect(holds: bool, claim: &'static str) -> Result<(), VerifyError> {
    if holds { Ok(()) } else { Err(VerifyError::Claim(claim)) }
}

fn expect_header(holds: bool, parameter: &'static str) -> Result<(), VerifyError> {
    if holds { Ok(()) } else { Err(VerifyError::Header(parameter)) }
}

/// `at+jwt`, with or without its `application/` (RFC 9068 §2.1); media types know no case.
fn is_access_token_type(typ: &str) -> bool {
    typ.eq_ignore_ascii_case("at+jwt") || typ.eq_ignore_ascii_case("application/at+jwt")
}

/// The hyphenated form only: a user has one `sub`, not five spellings of it.
fn uuid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-01-01 12:00 UTC);

    fn seconds(offset: i64) -> Value {
        json!(NOW.unix_timestamp() + offset)
    }

    fn local() -> Policy {
        Policy::Local { issuer: "https://issuer.test".to_owned(), audience: "datum".to_owned() }
    }

    fn cognito() -> Policy {
        let client_ids = vec!["web".to_owned(), "load".to_owned()];
        Policy::Cognito { issuer: "https://issuer.test".to_owned(), client_ids }
    }

    /// Claims that both policies accept.
    fn claims() -> Value {
        json!({
            "iss": "https://issuer.test", "sub": "018f4e9a-0000-7000-8000-000000000001", "aud": "datum",
            "client_id": "web", "token_use": "access", "exp": seconds(900), "iat": seconds(0), "nbf": seconds(0),
            "jti": "t1", "scope": "actors:read", "email": "a@x.io", "name": "Ada",
        })
    }

    fn accept(policy: &Policy, claims: Value) -> Result<Claims, VerifyError> {
        let raw = serde_json::from_value(claims).map_err(|_| VerifyError::Malformed)?;
        policy.accept(raw, NOW)
    }

    fn with(name: &str, value: Value) -> Value {
        let mut claims = claims();
        claims[name] = value;
        claims
    }

    fn without(name: &str) -> Value {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        claims
    }

    #[test]
    fn accepted_claims_reach_the_handler() {
        let accepted = accept(&local(), claims()).unwrap();
        assert_eq!(accepted.subject.to_string(), "018f4e9a-0000-7000-8000-000000000001");
        assert_eq!((accepted.email.as_deref(), accepted.name.as_deref()), (Some("a@x.io"), Some("Ada")));
        assert_eq!((accepted.client_id.as_deref(), accepted.token_id.as_deref()), (Some("web"), Some("t1")));
        assert_eq!((accepted.issued_at, accepted.expires_at), (NOW, NOW + Duration::seconds(900)));
        assert!(accepted.scopes.contains("actors:read"));
    }

    #[test]
    fn each_demanded_claim_is_demanded() {
        for claim in ["iss", "sub", "aud", "exp", "iat", "token_use"] {
            assert_eq!(accept(&local(), without(claim)), Err(VerifyError::Claim(claim)), "{claim}");
        }
        for claim in ["iss", "sub", "client_id", "exp", "iat", "token_use"] {
            assert_eq!(accept(&cognito(), without(claim)), Err(VerifyError::Claim(claim)), "{claim}");
        }
        for claim in ["nbf", "jti", "scope", "email", "name", "client_id"] {
            assert!(accept(&local(), without(claim)).is_ok(), "{claim}");
        }
    }

    #[test]
    fn another_issuer_is_refused_to_the_letter() {
        for issuer in ["https://issuer.test/", "https://ISSUER.test", "https://other.test", ""] {
            assert_eq!(accept(&local(), with("iss", json!(issuer))), Err(VerifyError::Claim("iss")), "{issuer}");
            assert_eq!(accept(&cognito(), with("iss", json!(issuer))), Err(VerifyError::Claim("iss")), "{issuer}");
        }
    }

    #[test]
    fn the_audience_is_one_string_or_among_several() {
        for aud in [json!("datum"), json!(["datum"]), json!(["other", "datum"])] {
            assert!(accept(&local(), with("aud", aud.clone())).is_ok(), "{aud}");
        }
        for aud in [json!("other"), json!(["other"]), json!([]), json!("datum other"), json!("DATUM"), json!(null)] {
            assert_eq!(accept(&local(), with("aud", aud.clone())), Err(VerifyError::Claim("aud")), "{aud}");
        }
        for aud in [json!(7), json!({"datum": true}), json!([["datum"]]), json!(["datum", 7])] {
            assert_eq!(accept(&local(), with("aud", aud.clone())), Err(VerifyError::Malformed), "{aud}");
        }
    }

    #[test]
    fn cognito_needs_no_audience_but_a_known_client() {
        assert!(accept(&cognito(), without("aud")).is_ok());
        assert!(accept(&cognito(), with("client_id", json!("load"))).is_ok());
        assert_eq!(accept(&cognito(), with("client_id", json!("other"))), Err(VerifyError::Claim("client_id")));
    }

    #[test]
    fn only_access_tokens_are_accepted() {
        for policy in [local(), cognito()] {
            for token_use in ["id", "refresh", "ACCESS", ""] {
                let refused = accept(&policy, with("token_use", json!(token_use)));
                assert_eq!(refused, Err(VerifyError::Claim("token_use")), "{token_use}");
            }
        }
    }

    #[test]
    fn times_have_five_seconds_of_leeway_and_no_more() {
        let at = |name, offset| accept(&local(), with(name, seconds(offset))).err();
        assert_eq!(at("exp", -4), None);
        assert_eq!(at("exp", -5), Some(VerifyError::Expired));
        assert_eq!(at("nbf", 5), None);
        assert_eq!(at("nbf", 6), Some(VerifyError::NotYetValid));
        assert_eq!(at("iat", 5), None);
        assert_eq!(at("iat", 6), Some(VerifyError::NotYetValid));
    }

    #[test]
    fn a_token_that_is_bound_to_a_key_is_no_bearer_token() {
        let bound = with("cnf", json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}));
        assert_eq!(accept(&local(), bound), Err(VerifyError::Claim("cnf")));
    }

    #[test]
    fn the_last_representable_expiry_does_not_overflow() {
        assert!(accept(&local(), with("exp", json!(253_402_300_799_u64))).is_ok());
    }

    #[test]
    fn the_subject_is_a_hyphenated_uuid() {
        for sub in [
            "",
            "alice",
            "018f4e9a000070008000000000000001",
            "{018f4e9a-0000-7000-8000-000000000001}",
            "urn:uuid:018f4e9a-0000-7000-8000-000000000001",
            "018f4e9a-0000-7000-8000-00000000000g",
        ] {
            assert_eq!(accept(&local(), with("sub", json!(sub))), Err(VerifyError::Claim("sub")), "{sub}");
        }
    }

    #[test]
    fn the_local_issuer_types_its_access_tokens() {
        let header =
            |typ: Option<&str>| Header { alg: "ES256".to_owned(), kid: None, typ: typ.map(str::to_owned), crit: false };
        for typ in ["at+jwt", "AT+JWT", "application/at+jwt", "Application/AT+jwt"] {
            assert_eq!(local().check_header(&header(Some(typ))), Ok(()), "{typ}");
        }
        for typ in [None, Some("JWT"), Some("jwt"), Some(""), Some("at+jwt "), Some("dpop+jwt"), Some("text/at+jwt")] {
            assert_eq!(local().check_header(&header(typ)), Err(VerifyError::Header("typ")), "{typ:?}");
        }
    }

    #[test]
    fn cognito_types_its_access_tokens_as_nothing_in_particular() {
        let header =
            |typ: Option<&str>| Header { alg: "RS256".to_owned(), kid: None, typ: typ.map(str::to_owned), crit: false };
        for typ in [None, Some("JWT"), Some("jwt"), Some("at+jwt")] {
            assert_eq!(cognito().check_header(&header(typ)), Ok(()), "{typ:?}");
        }
        for typ in ["", "dpop+jwt", "id+jwt", "logout+jwt", "JWT "] {
            assert_eq!(cognito().check_header(&header(Some(typ))), Err(VerifyError::Header("typ")), "{typ:?}");
        }
    }

    #[test]
    fn critical_extensions_are_refused() {
        let header = Header { alg: "ES256".to_owned(), kid: None, typ: Some("at+jwt".to_owned()), crit: true };
        assert_eq!(local().check_header(&header), Err(VerifyError::Header("crit")));
        assert_eq!(cognito().check_header(&header), Err(VerifyError::Header("crit")));
    }
}
