//! Tokens with the claims that Cognito's have ("Understanding the access token", "Understanding the identity (ID) token").

pub(crate) mod keys;
pub(crate) mod refresh;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use self::keys::SigningKey;

/// What lets an access token call the user pools API; tokens of a login by the API have this and nothing else.
pub(crate) const SCOPE: &str = "aws.cognito.signin.user.admin";

/// What the tokens of one answer have in common.
pub(crate) struct Subject<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) sub: Uuid,
    pub(crate) email: &'a str,
    pub(crate) email_verified: bool,
    pub(crate) name: Option<&'a str>,
    pub(crate) origin_jti: Uuid,
    pub(crate) event_id: Uuid,
    pub(crate) auth_time: i64,
    pub(crate) issued_at: i64,
    pub(crate) expires_at: i64,
}

impl Subject<'_> {
    /// An access token: no `aud`, but `client_id`; no email.
    pub(crate) fn access_token(&self, key: &SigningKey) -> anyhow::Result<String> {
        let claims = json!({
            "sub": self.sub,
            "iss": self.issuer,
            "version": 2,
            "client_id": self.client_id,
            "origin_jti": self.origin_jti,
            "event_id": self.event_id,
            "token_use": "access",
            "scope": SCOPE,
            "auth_time": self.auth_time,
            "exp": self.expires_at,
            "iat": self.issued_at,
            "jti": Uuid::new_v4(),
            // In a pool whose users log in with their email, the user name is made by the pool and is the `sub`.
            "username": self.sub,
        });
        sign(key, &claims)
    }

    /// An ID token: `aud` is the client, and the attributes are in it.
    pub(crate) fn id_token(&self, key: &SigningKey) -> anyhow::Result<String> {
        let mut claims = json!({
            "sub": self.sub,
            "email_verified": self.email_verified,
            "iss": self.issuer,
            "cognito:username": self.sub,
            "origin_jti": self.origin_jti,
            "aud": self.client_id,
            "event_id": self.event_id,
            "token_use": "id",
            "auth_time": self.auth_time,
            "exp": self.expires_at,
            "iat": self.issued_at,
            "jti": Uuid::new_v4(),
            "email": self.email,
        });
        if let Some(name) = self.name {
            claims["name"] = name.into();
        }
        sign(key, &claims)
    }
}

fn sign(key: &SigningKey, claims: &Value) -> anyhow::Result<String> {
    let header = json!({"kid": key.kid, "alg": "RS256"}).to_string();
    let mut token = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(token)
}

/// What a call that is authorised by an access token needs of it.
#[derive(Debug, Deserialize)]
pub(crate) struct AccessClaims {
    pub(crate) sub: Uuid,
    pub(crate) origin_jti: Uuid,
    pub(crate) exp: i64,
    token_use: String,
    iss: String,
}

/// Why an access token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unacceptable {
    /// It is no access token of this pool.
    Invalid,
    /// It was one.
    Expired,
}

/// Reads an access token of this pool.
pub(crate) fn read_access_token(
    token: &str,
    key: &SigningKey,
    issuer: &str,
    now: OffsetDateTime,
) -> Result<AccessClaims, Unacceptable> {
    let invalid = Unacceptable::Invalid;
    let (message, signature) = token.rsplit_once('.').ok_or(invalid)?;
    let (_, payload) = message.split_once('.').ok_or(invalid)?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| invalid);
    if !key.is_signed(message.as_bytes(), &decode(signature)?) {
        return Err(invalid);
    }
    let claims: AccessClaims = serde_json::from_slice(&decode(payload)?).map_err(|_| invalid)?;
    if claims.token_use != "access" || claims.iss != issuer {
        return Err(invalid);
    }
    if claims.exp <= now.unix_timestamp() { Err(Unacceptable::Expired) } else { Ok(claims) }
}
