//! Issuing access tokens: ES256 JWTs after RFC 9068, checked everywhere by `service_kit::auth`.

use std::time::Duration;

use serde::Serialize;
use service_kit::clock::SharedClock;
use uuid::Uuid;

use crate::keys::SigningKeys;

/// Scopes that every user has.
const EVERYBODYS_SCOPES: [&str; 2] = ["profile", "documents"];

/// What an access token says about its bearer.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// `sub`.
    pub id: Uuid,
    /// `email`, canonical.
    pub email: &'a str,
    /// `name`.
    pub display_name: Option<&'a str>,
    /// Scopes beyond everybody's.
    pub scopes: &'a [String],
}

/// The fixed parts of every token.
#[derive(Debug, Clone)]
pub struct TokenConfig {
    /// `iss`.
    pub issuer: String,
    /// `aud`.
    pub audience: String,
    /// `client_id`.
    pub client_id: String,
    /// From `iat` to `exp`, whole seconds.
    pub ttl: Duration,
}

/// Issues access tokens.
pub struct TokenIssuer {
    keys: SigningKeys,
    header: Vec<u8>,
    config: TokenConfig,
    clock: SharedClock,
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    typ: &'static str,
    kid: &'a str,
}

#[derive(Serialize)]
struct Payload<'a> {
    iss: &'a str,
    sub: Uuid,
    aud: &'a str,
    client_id: &'a str,
    exp: i64,
    iat: i64,
    nbf: i64,
    jti: Uuid,
    token_use: &'static str,
    scope: String,
    email: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl TokenIssuer {
    /// An issuer that signs with the first of `keys`.
    ///
    /// # Errors
    /// Never in practice: the header is a struct of strings.
    pub fn new(keys: SigningKeys, config: TokenConfig, clock: SharedClock) -> anyhow::Result<Self> {
        let header = serde_json::to_vec(&Header { alg: "ES256", typ: "at+jwt", kid: keys.signer_id() })?;
        Ok(Self { keys, header, config, clock })
    }

    /// How long a token is valid.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.config.ttl
    }

    /// Signs a token that is valid from now on.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn issue(&self, subject: Subject<'_>) -> anyhow::Result<String> {
        let now = self.clock.now().unix_timestamp();
        let ttl = i64::try_from(self.config.ttl.as_secs())?;
        let scopes = EVERYBODYS_SCOPES.into_iter().chain(subject.scopes.iter().map(String::as_str));
        let payload = Payload {
            iss: &self.config.issuer,
            sub: subject.id,
            aud: &self.config.audience,
            client_id: &self.config.client_id,
            exp: now + ttl,
            iat: now,
            nbf: now,
            jti: Uuid::new_v4(),
            token_use: "access",
            scope: scopes.collect::<Vec<_>>().join(" "),
            email: subject.email,
            name: subject.display_name,
        };
        self.keys.sign(&self.header, &serde_json::to_vec(&payload)?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};
    use service_kit::clock::ManualClock;
    use time::OffsetDateTime;

    use super::*;
    use crate::keys::generate_pem;

    fn issuer() -> TokenIssuer {
        let keys = SigningKeys::from_pem(&generate_pem().expect("key")).expect("valid");
        let config = TokenConfig {
            issuer: "https://datum.test".to_owned(),
            audience: "datum".to_owned(),
            client_id: "datum-web".to_owned(),
            ttl: Duration::from_mins(15),
        };
        let now = OffsetDateTime::from_unix_timestamp(1_700_000_000).expect("a date") + Duration::from_millis(900);
        TokenIssuer::new(keys, config, Arc::new(ManualClock::at(now))).expect("issuer")
    }

    fn decode(part: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("json")
    }

    #[test]
    fn a_token_says_what_rfc_9068_demands() {
        let issuer = issuer();
        let id = Uuid::from_u128(7);
        let scopes = ["actors:read".to_owned()];
        let subject = Subject { id, email: "ada@example.com", display_name: Some("Ada"), scopes: &scopes };
        let token = issuer.issue(subject).expect("token");
        let parts: Vec<_> = token.split('.').collect();
        assert_eq!(decode(parts[0]), json!({"alg": "ES256", "typ": "at+jwt", "kid": issuer.keys.signer_id()}));
        let mut payload = decode(parts[1]);
        let jti = payload["jti"].take();
        assert!(Uuid::parse_str(jti.as_str().expect("a string")).is_ok());
        assert_eq!(
            payload,
            json!({
                "iss": "https://datum.test", "sub": id, "aud": "datum", "client_id": "datum-web",
                "iat": 1_700_000_000, "nbf": 1_700_000_000, "exp": 1_700_000_900, "jti": null,
                "token_use": "access", "scope": "profile documents actors:read", "email": "ada@example.com", "name": "Ada",
            })
        );
    }

    #[test]
    fn a_token_without_a_display_name_has_no_name_claim_and_each_token_its_own_id() {
        let issuer = issuer();
        let subject = Subject { id: Uuid::from_u128(7), email: "ada@example.com", display_name: None, scopes: &[] };
        let payloads = [(); 2].map(|()| {
            let token = issuer.issue(subject).expect("token");
            decode(token.split('.').nth(1).expect("a payload"))
        });
        assert!(payloads[0].get("name").is_none());
        assert_eq!(payloads[0]["scope"], "profile documents");
        assert_ne!(payloads[0]["jti"], payloads[1]["jti"]);
    }
}
