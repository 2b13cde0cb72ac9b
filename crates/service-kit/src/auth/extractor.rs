//! The caller as a handler's parameter.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use zeroize::Zeroizing;

use super::claims::Claims;
use super::error::VerifyError;
use super::verifier::Verifier;
use crate::problem::Problem;
use crate::stages::{self, Stage};

/// How soon a client may ask again when there are no token keys yet.
const KEYS_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The verified caller. A handler that takes it cannot run without a valid access token.
///
/// Answers 401 `token_missing`, `token_invalid` or `token_expired` with the challenge of RFC 6750 §3, and 503
/// `keys_unavailable` as long as the issuer's keys could never be fetched.
#[derive(Debug, Clone)]
pub struct Authenticated(pub Arc<Claims>);

impl Deref for Authenticated {
    type Target = Claims;

    fn deref(&self) -> &Claims {
        &self.0
    }
}

/// The access token as it was presented, for calls to the identity provider in the caller's name. Take it beside
/// [`Authenticated`], which verifies it. Wiped when dropped, and it does not show.
#[derive(Clone)]
pub struct PresentedToken(Zeroizing<String>);

impl PresentedToken {
    /// The token of a request's headers.
    ///
    /// # Errors
    /// As [`Authenticated`], without looking at the token itself.
    pub fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        bearer(headers).map(|token| Self(Zeroizing::new(token.to_owned())))
    }

    /// The token itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PresentedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresentedToken(…)")
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PresentedToken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(&parts.headers)
    }
}

impl<S> FromRequestParts<S> for Authenticated
where
    S: Send + Sync,
    Verifier: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let token = bearer(&parts.headers)?;
        let claims = stages::timed(Stage::Verify, Verifier::from_ref(state).verify(token)).await?;
        Ok(Self(claims))
    }
}

impl From<VerifyError> for Problem {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::KeysUnavailable => Self::unavailable(
                "keys_unavailable",
                "Access tokens cannot be verified at the moment.",
                KEYS_RETRY_AFTER,
            ),
            VerifyError::Expired => invalid_token("token_expired", "The access token has expired."),
            _ => invalid_token("token_invalid", "The access token is not valid."),
        }
        .with_source(error)
    }
}

/// The token of the one `Authorization` header, not looked at yet.
fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(missing()) };
    if values.next().is_some() {
        return Err(invalid_token("token_invalid", "There is more than one Authorization header."));
    }
    let unreadable = || invalid_token("token_invalid", "The Authorization header is not valid.");
    let value = value.to_str().map_err(|_| unreadable())?;
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim_matches(' ')),
        None if value.eq_ignore_ascii_case("bearer") => Err(unreadable()),
        // Another scheme is no attempt to present a token (RFC 6750 §3.1).
        _ => Err(missing()),
    }
}

/// 401 without an error in the challenge: nothing was presented that could be wrong.
fn missing() -> Problem {
    Problem::unauthorized("token_missing", "An access token is needed: Authorization: Bearer <token>.")
}

fn invalid_token(code: &'static str, detail: &'static str) -> Problem {
    let challenge = HeaderValue::from_static(r#"Bearer realm="datum", error="invalid_token""#);
    Problem::unauthorized(code, detail).with_header(WWW_AUTHENTICATE, challenge)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http::StatusCode;
    use http::header::RETRY_AFTER;

    use super::*;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let values = values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_bytes(value).unwrap()));
        let mut headers = HeaderMap::new();
        values.for_each(|(name, value)| _ = headers.append(name, value));
        headers
    }

    fn token(values: &[&[u8]]) -> Result<String, &'static str> {
        bearer(&headers(values)).map(str::to_owned).map_err(|problem| problem.code())
    }

    #[test]
    fn the_scheme_knows_no_case() {
        for value in ["Bearer t.o.k", "bearer t.o.k", "BEARER t.o.k", "bEaReR  t.o.k", "Bearer t.o.k "] {
            assert_eq!(token(&[value.as_bytes()]).as_deref(), Ok("t.o.k"), "{value:?}");
        }
    }

    #[test]
    fn no_header_and_other_schemes_present_no_token() {
        assert_eq!(token(&[]), Err("token_missing"));
        for value in ["", "Basic dXNlcjpwYXNz", "t.o.k", "Token t.o.k", "Bearer\tt.o.k", "BearerX t.o.k", " Bearer t"] {
            assert_eq!(token(&[value.as_bytes()]), Err("token_missing"), "{value:?}");
        }
    }

    #[test]
    fn a_bearer_header_that_cannot_be_read_is_invalid() {
        assert_eq!(token(&[b"Bearer"]), Err("token_invalid"));
        assert_eq!(token(&[b"Bearer t\xff"]), Err("token_invalid"));
    }

    #[test]
    fn two_headers_are_refused_even_when_they_agree() {
        assert_eq!(token(&[b"Bearer t", b"Bearer t"]), Err("token_invalid"));
        assert_eq!(token(&[b"Bearer t", b"Basic dXNlcjpwYXNz"]), Err("token_invalid"));
    }

    #[test]
    fn a_presented_token_is_as_it_came_and_does_not_show() {
        let presented = PresentedToken::of(&headers(&[b"bearer  t.o.k "])).unwrap();
        assert_eq!(presented.expose(), "t.o.k");
        assert!(!format!("{presented:?}").contains("t.o.k"));
        assert_eq!(PresentedToken::of(&headers(&[])).unwrap_err().code(), "token_missing");
    }

    #[test]
    fn the_challenge_has_an_error_only_where_a_token_was_presented() {
        let challenge = |problem: Problem| {
            let response = problem.into_response();
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
            response.headers()[WWW_AUTHENTICATE].to_str().unwrap().to_owned()
        };
        assert_eq!(challenge(missing()), r#"Bearer realm="datum""#);
        for error in [VerifyError::Malformed, VerifyError::Expired, VerifyError::Claim("aud"), VerifyError::UnknownKey]
        {
            assert_eq!(challenge(error.into()), r#"Bearer realm="datum", error="invalid_token""#, "{error}");
        }
    }

    #[test]
    fn a_client_learns_whether_renewing_helps_and_no_more() {
        assert_eq!(Problem::from(VerifyError::Expired).code(), "token_expired");
        for error in [
            VerifyError::Malformed,
            VerifyError::Header("alg"),
            VerifyError::UnknownKey,
            VerifyError::Signature,
            VerifyError::Claim("client_id"),
            VerifyError::NotYetValid,
        ] {
            assert_eq!(Problem::from(error).code(), "token_invalid", "{error}");
        }
    }

    #[test]
    fn without_keys_the_client_is_told_when_to_come_back() {
        let response = Problem::from(VerifyError::KeysUnavailable).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        assert!(response.headers().get(WWW_AUTHENTICATE).is_none());
    }
}
