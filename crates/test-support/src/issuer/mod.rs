//! Issuers of access tokens: as the local provider signs them, as Cognito does, and every way in which a token can be wrong.

mod jwks_stub;
mod key;
mod token;

use serde_json::{Map, Value, json};
use service_kit::auth::jwk::Jwks;
use service_kit::auth::{KeySource, Policy, Production, Verifier, VerifierConfig};
use service_kit::clock::SharedClock;
use uuid::Uuid;

pub use jwks_stub::{JwksAnswer, JwksStub};
pub use key::TestKey;
pub use token::TestToken;

use crate::caller::TestUser;

/// Seconds that a token lives, as the local provider's do.
const LIFETIME_S: i64 = 15 * 60;
const AUDIENCE: &str = "datum";
const CLIENT_ID: &str = "test-client";

/// Issues tokens by its clock. The newest key signs, and all keys are published.
#[derive(Debug, Clone)]
pub struct TestIssuer {
    policy: Policy,
    keys: Vec<TestKey>,
    clock: SharedClock,
}

impl TestIssuer {
    /// An issuer like the local provider: ES256, `at+jwt`, audience `datum`.
    #[must_use]
    pub fn local(clock: SharedClock) -> Self {
        let (issuer, audience) = ("https://issuer.test".to_owned(), AUDIENCE.to_owned());
        Self { policy: Policy::Local { issuer, audience }, keys: vec![TestKey::p256()], clock }
    }

    /// An issuer like a Cognito user pool: RS256, no `typ`, no `aud`, client id `test-client`.
    #[must_use]
    pub fn cognito(clock: SharedClock) -> Self {
        let issuer = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_test".to_owned();
        let client_ids = vec![CLIENT_ID.to_owned()];
        Self { policy: Policy::Cognito { issuer, client_ids }, keys: vec![TestKey::rsa()], clock }
    }

    /// What a verifier has to demand of this issuer's tokens.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy.clone()
    }

    /// The key that signs.
    #[must_use]
    pub fn key(&self) -> &TestKey {
        self.keys.last().expect("an issuer always has a key")
    }

    /// All public keys.
    #[must_use]
    pub fn jwks(&self) -> Jwks {
        Jwks { keys: self.keys.iter().map(TestKey::jwk).collect() }
    }

    /// All public keys, for a verifier that fetches nothing.
    #[must_use]
    pub fn key_source(&self) -> KeySource {
        KeySource::fixed(&self.jwks())
    }

    /// A verifier of this issuer's tokens with the issuer's clock and present keys, and a cache of default size.
    #[must_use]
    pub fn verifier(&self) -> Verifier {
        self.verifier_with(self.key_source())
    }

    /// As [`TestIssuer::verifier`], with keys from elsewhere.
    #[must_use]
    pub fn verifier_with(&self, keys: KeySource) -> Verifier {
        let config = VerifierConfig {
            policy: self.policy(),
            token_cache_max: 10_000,
            jwks: None,
            production: Production::default(),
        };
        Verifier::new(&config, keys, self.clock.clone())
    }

    /// Adds a key that signs from now on. The older ones stay published.
    pub fn rotate(&mut self) {
        let key = match &self.policy {
            Policy::Local { .. } => TestKey::p256(),
            Policy::Cognito { .. } => TestKey::rsa(),
        };
        self.keys.push(key);
    }

    /// Takes the oldest key out of what is published. The last one stays.
    pub fn retire(&mut self) {
        if self.keys.len() > 1 {
            self.keys.remove(0);
        }
    }

    /// A good token of `subject`.
    #[must_use]
    pub fn token(&self, subject: Uuid) -> String {
        self.build(subject).sign()
    }

    /// Somebody new with this email and a good token.
    #[must_use]
    pub fn user(&self, email: &str) -> TestUser {
        let id = Uuid::new_v4();
        TestUser { id, email: email.to_owned(), access_token: self.build(id).claim("email", email).sign() }
    }

    /// A good token of `subject` to be changed before it is signed.
    pub fn build(&self, subject: Uuid) -> TestToken {
        let (key, now) = (self.key().clone(), self.clock.now());
        let issued_at = now.unix_timestamp();
        let claims = match &self.policy {
            Policy::Local { issuer, audience } => json!({
                "iss": issuer, "sub": subject, "aud": audience, "client_id": "datum", "token_use": "access", "scope": "",
                "iat": issued_at, "nbf": issued_at, "exp": issued_at + LIFETIME_S, "jti": Uuid::new_v4(),
            }),
            // The claims of a genuine access token ("Understanding the access token", Amazon Cognito Developer Guide).
            Policy::Cognito { issuer, .. } => json!({
                "iss": issuer, "sub": subject, "client_id": CLIENT_ID, "token_use": "access", "username": subject,
                "scope": "aws.cognito.signin.user.admin", "auth_time": issued_at, "iat": issued_at,
                "exp": issued_at + LIFETIME_S, "jti": Uuid::new_v4(), "origin_jti": Uuid::new_v4(),
                "event_id": Uuid::new_v4(),
            }),
        };
        let mut header = object(json!({ "alg": key.algorithm(), "kid": key.kid() }));
        if matches!(self.policy, Policy::Local { .. }) {
            header.insert("typ".to_owned(), json!("at+jwt"));
        }
        TestToken { key, now, header, claims: object(claims) }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => unreachable!("{other} is written as an object above"),
    }
}
