//! Tokens, good and bad.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::key::TestKey;

/// A token in the making. It begins as a good one; each method changes one thing.
#[derive(Debug, Clone)]
#[must_use = "sign it"]
pub struct TestToken {
    pub(super) key: TestKey,
    pub(super) now: OffsetDateTime,
    pub(super) header: Map<String, Value>,
    pub(super) claims: Map<String, Value>,
}

impl TestToken {
    /// Sets a claim.
    pub fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.claims.insert(name.to_owned(), value.into());
        self
    }

    /// Leaves a claim out.
    pub fn without_claim(mut self, name: &str) -> Self {
        self.claims.remove(name);
        self
    }

    /// Sets a time claim to `seconds` from the clock's now; negative is the past.
    pub fn time_claim(self, name: &str, seconds: i64) -> Self {
        let instant = self.now.unix_timestamp() + seconds;
        self.claim(name, instant)
    }

    /// Sets `exp` to so long after the clock's now.
    pub fn expires_in(self, lifetime: Duration) -> Self {
        let seconds = i64::try_from(lifetime.as_secs()).expect("a sensible lifetime");
        self.time_claim("exp", seconds)
    }

    /// Sets `scope`.
    pub fn scope(self, scope: &str) -> Self {
        self.claim("scope", scope)
    }

    /// Sets a header member.
    pub fn header(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.header.insert(name.to_owned(), value.into());
        self
    }

    /// Leaves a header member out.
    pub fn without_header(mut self, name: &str) -> Self {
        self.header.remove(name);
        self
    }

    /// Lets another key sign, and nothing else change: neither `alg` nor `kid`.
    pub fn signed_by(mut self, key: &TestKey) -> Self {
        self.key = key.clone();
        self
    }

    /// The compact token.
    #[must_use]
    pub fn sign(&self) -> String {
        self.sign_payload(&Value::Object(self.claims.clone()).to_string())
    }

    /// The compact token with this text for its claims, JSON or not.
    #[must_use]
    pub fn sign_payload(&self, payload: &str) -> String {
        let header = Value::Object(self.header.clone()).to_string();
        compact(&header, payload, |message| self.key.sign(message))
    }

    /// The compact token with one more member in front of its claims, written as it stands: numbers that `serde_json`
    /// cannot hold, and members that are there twice.
    #[must_use]
    pub fn sign_with_member(&self, name: &str, json: &str) -> String {
        let claims = Value::Object(self.claims.clone()).to_string();
        self.sign_payload(&claims.replacen('{', &format!("{{\"{name}\":{json},"), 1))
    }

    /// The compact token with a signature of the test's own making; it gets the bytes that a signature covers.
    #[must_use]
    pub fn sign_with(&self, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let header = Value::Object(self.header.clone()).to_string();
        compact(&header, &Value::Object(self.claims.clone()).to_string(), sign)
    }
}

fn compact(header: &str, payload: &str, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}
