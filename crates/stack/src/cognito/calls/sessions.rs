//! `InitiateAuth`, `RespondToAuthChallenge`, `RevokeToken`.

use serde::Deserialize;
use serde_json::json;
use service_kit::config::Secret;

use super::{Call, Parameters};
use crate::cognito::pool::unknown_user;
use crate::cognito::pool::user::{Status, User};
use crate::cognito::wire::{CognitoError, Outcome};

/// The challenge of an account that an administrator has made.
const NEW_PASSWORD: &str = "NEW_PASSWORD_REQUIRED";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct InitiateAuth {
    client_id: String,
    auth_flow: String,
    #[serde(default)]
    auth_parameters: Parameters,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RespondToAuthChallenge {
    client_id: String,
    challenge_name: String,
    session: Option<String>,
    #[serde(default)]
    challenge_responses: Parameters,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RevokeToken {
    client_id: String,
    client_secret: Option<String>,
    token: String,
}

impl Call<'_> {
    pub(super) fn initiate_auth(&self, input: &InitiateAuth) -> Outcome {
        self.pool.check_client(&input.client_id)?;
        match input.auth_flow.as_str() {
            "USER_PASSWORD_AUTH" => self.log_in(&input.auth_parameters),
            "REFRESH_TOKEN_AUTH" | "REFRESH_TOKEN" => self.renew(&input.auth_parameters),
            flow @ ("USER_SRP_AUTH" | "CUSTOM_AUTH" | "USER_AUTH") => {
                Err(CognitoError::invalid_parameter(format!("{flow} is not enabled for the client.")))
            }
            _ => Err(CognitoError::constraint("authFlow", "satisfy enum value set")),
        }
    }

    fn log_in(&self, parameters: &Parameters) -> Outcome {
        let pool = self.pool;
        let username = required(parameters, "USERNAME")?;
        let password = required(parameters, "PASSWORD")?;
        pool.check_secret_hash(username, parameters.get("SECRET_HASH").map(String::as_str))?;
        let user = pool.find(username);
        if let Some(user) = &user {
            self.reads(user)?;
        }
        let kept = user.as_ref().map(|user| (user.sub, user.state().password));
        // Whatever comes of it: an unknown user must not be answered sooner.
        let is_right = pool.hasher.is_right(kept, password);
        let Some(user) = user else {
            return Err(if pool.options.hides_users { wrong_password() } else { unknown_user() });
        };
        let status = {
            let (mut state, now) = (user.state(), pool.clock.now());
            if !state.logins.admits(now) {
                return Err(CognitoError::not_authorized("Password attempts exceeded"));
            }
            if state.status == Status::Unconfirmed {
                // Before the password is looked at, by public reports (aws/aws-sdk-js#4608).
                return Err(CognitoError::new("UserNotConfirmedException", "User is not confirmed."));
            }
            if !is_right {
                state.logins.failed(now);
                return Err(wrong_password());
            }
            state.logins.succeeded();
            state.status
        };
        match status {
            Status::ForceChangePassword => Ok(self.ask_for_password(&user)),
            Status::Confirmed | Status::Unconfirmed => pool.begin_session(&user),
        }
    }

    fn ask_for_password(&self, user: &User) -> serde_json::Value {
        let attributes = json!({"email": user.email, "email_verified": user.state().email_verified.to_string()});
        json!({
            "ChallengeName": NEW_PASSWORD,
            "ChallengeParameters": {
                "USER_ID_FOR_SRP": user.sub,
                "requiredAttributes": "[]",
                "userAttributes": attributes.to_string(),
            },
            "Session": self.pool.challenge(user),
        })
    }

    fn renew(&self, parameters: &Parameters) -> Outcome {
        let pool = self.pool;
        let token = required(parameters, "REFRESH_TOKEN")?;
        let secret_hash = parameters.get("SECRET_HASH").map(String::as_str);
        let invalid = || CognitoError::not_authorized("Invalid Refresh Token");
        let grant = pool.grant(token).filter(|grant| grant.client_id == pool.options.client_id).ok_or_else(invalid)?;
        let user = pool.find_by_sub(grant.sub).ok_or_else(invalid)?;
        // Of the user name, which is not what the user logs in with (boto/boto3#2736).
        if !pool.is_secret_hash(&user.sub.to_string(), secret_hash) {
            let client = &pool.options.client_id;
            return Err(CognitoError::not_authorized(format!("SecretHash does not match for the client: {client}")));
        }
        self.reads(&user)?;
        if grant.exp <= pool.clock.now().unix_timestamp() {
            return Err(CognitoError::not_authorized("Refresh Token has expired"));
        }
        if pool.is_revoked(&user, grant.origin_jti) {
            return Err(CognitoError::not_authorized("Refresh Token has been revoked"));
        }
        pool.renew_session(&user, &grant)
    }

    pub(super) fn respond_to_auth_challenge(&self, input: &RespondToAuthChallenge) -> Outcome {
        let pool = self.pool;
        pool.check_client(&input.client_id)?;
        if input.challenge_name != NEW_PASSWORD {
            return Err(CognitoError::invalid_parameter(format!(
                "{} is not a challenge of this user pool.",
                input.challenge_name
            )));
        }
        let responses = &input.challenge_responses;
        let username = required(responses, "USERNAME")?;
        let password = required(responses, "NEW_PASSWORD")?;
        pool.check_secret_hash(username, responses.get("SECRET_HASH").map(String::as_str))?;
        pool.options.password_policy.check(password)?;
        let session = input.session.as_deref().unwrap_or_default();
        let invalid = || CognitoError::not_authorized("Invalid session for the user.");
        let user = pool.take_challenge(session).ok_or_else(invalid)?;
        if pool.find(username).is_none_or(|named| named.sub != user.sub) {
            return Err(invalid());
        }
        self.writes(&user)?;
        {
            let mut state = user.state();
            state.password = pool.hasher.hash(user.sub, password);
            state.status = Status::Confirmed;
        }
        pool.changed(&user);
        pool.begin_session(&user)
    }

    pub(super) fn revoke_token(&self, input: &RevokeToken) -> Outcome {
        let pool = self.pool;
        let secret = pool.options.client_secret.as_ref().map(Secret::expose);
        if input.client_id != pool.options.client_id || input.client_secret.as_deref() != secret {
            return Err(CognitoError::new("UnauthorizedException", "Invalid client"));
        }
        if pool.caller(&input.token).is_ok() {
            return Err(CognitoError::new("UnsupportedTokenTypeException", "Only refresh tokens can be revoked"));
        }
        let grant = pool.grant(&input.token).filter(|grant| grant.client_id == pool.options.client_id);
        let grant = grant.ok_or_else(|| CognitoError::invalid_parameter("Invalid token"))?;
        if let Some(user) = pool.find_by_sub(grant.sub) {
            self.writes(&user)?;
        }
        pool.revoke(grant.origin_jti);
        Ok(json!({}))
    }
}

pub(super) fn wrong_password() -> CognitoError {
    CognitoError::not_authorized("Incorrect username or password.")
}

fn required<'a>(parameters: &'a Parameters, name: &str) -> Result<&'a str, CognitoError> {
    let missing = || CognitoError::invalid_parameter(format!("Missing required parameter {name}"));
    parameters.get(name).map(String::as_str).filter(|value| !value.is_empty()).ok_or_else(missing)
}
