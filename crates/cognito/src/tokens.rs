//! The tokens of an answer, with what an answer may leave out.

use std::time::Duration;

use aws_sdk_cognitoidentityprovider::types::AuthenticationResultType;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

/// The life of an access token where neither answer nor token tell it: Cognito's default ("Using the access token").
const DEFAULT_LIFETIME: Duration = Duration::from_hours(1);

/// What a session consists of. The ID token is dropped: no service takes one.
pub struct Tokens {
    /// For the services.
    pub access_token: String,
    /// How long the access token is valid.
    pub expires_in: Duration,
    /// Absent where the pool gives none: on refresh the old one stays good.
    pub refresh_token: Option<Zeroizing<String>>,
    /// The pool's own name of the user, as the access token says; empty if it does not.
    pub username: String,
}

/// Read without verification: the answer comes from the issuer itself, and every service verifies the token before it believes it.
struct Peeked {
    username: Option<String>,
    sub: Option<String>,
    exp: Option<f64>,
    iat: Option<f64>,
}

impl Tokens {
    /// `None` without an access token that can be one: nobody could verify another. A missing or other `TokenType` is no reason to refuse: there is only Bearer.
    pub(crate) fn of(result: AuthenticationResultType) -> Option<Self> {
        let AuthenticationResultType { access_token, expires_in, refresh_token, .. } = result;
        let access_token = access_token.filter(|token| !token.is_empty())?;
        let peeked = peek(&access_token)?;
        let stated = u64::try_from(expires_in).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
        Some(Self {
            expires_in: stated.or_else(|| peeked.lifetime()).unwrap_or(DEFAULT_LIFETIME),
            refresh_token: refresh_token.filter(|token| !token.is_empty()).map(Zeroizing::new),
            username: peeked.username.or(peeked.sub).unwrap_or_default(),
            access_token,
        })
    }
}

impl Peeked {
    /// `exp` - `iat`, whole seconds, if that is a time.
    fn lifetime(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.exp? - self.iat?).ok().map(|life| Duration::from_secs(life.as_secs()))
    }
}

fn peek(token: &str) -> Option<Peeked> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Map<String, Value> = serde_json::from_slice(&payload).ok()?;
    // A claim of another type is none.
    let text = |name: &str| claims.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| claims.get(name).and_then(Value::as_f64);
    Some(Peeked { username: text("username"), sub: text("sub"), exp: number("exp"), iat: number("iat") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(payload: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload))
    }

    fn answer(access: Option<&str>) -> AuthenticationResultType {
        AuthenticationResultType::builder().set_access_token(access.map(str::to_owned)).build()
    }

    #[test]
    fn what_the_answer_leaves_out_is_taken_from_the_token_or_is_cognitos_default() {
        let given =
            AuthenticationResultType::builder().access_token(token(r#"{"exp":90,"iat":10}"#)).expires_in(7).build();
        assert_eq!(Tokens::of(given).unwrap().expires_in, Duration::from_secs(7));
        for (payload, seconds) in [
            (r#"{"exp":900,"iat":300.0}"#, 600),
            (r#"{"exp":300,"iat":900}"#, 3_600),
            (r#"{"exp":"900","iat":300}"#, 3_600),
            ("{}", 3_600),
        ] {
            let tokens = Tokens::of(answer(Some(&token(payload)))).unwrap();
            assert_eq!(tokens.expires_in, Duration::from_secs(seconds), "{payload}");
            assert!(tokens.refresh_token.is_none());
        }
    }

    #[test]
    fn the_user_is_named_as_the_pool_does() {
        let name = |payload| Tokens::of(answer(Some(&token(payload)))).unwrap().username;
        assert_eq!(name(r#"{"sub":"s","username":"ada"}"#), "ada");
        assert_eq!(name(r#"{"sub":"s"}"#), "s");
    }

    #[test]
    fn without_an_access_token_there_are_no_tokens() {
        assert!(Tokens::of(answer(None)).is_none());
        for odd in ["", "opaque", "a.b.c", "e30.W10.c2ln"] {
            assert!(Tokens::of(answer(Some(odd))).is_none(), "{odd:?}");
        }
    }
}
