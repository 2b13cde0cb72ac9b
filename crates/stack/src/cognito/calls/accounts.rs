//! `SignUp`, `ConfirmSignUp`, `ResendConfirmationCode`.

use rand::RngExt;
use serde::Deserialize;
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use super::{Attribute, Call};
use crate::cognito::pool::unknown_user;
use crate::cognito::pool::user::{CODE_HOURS, Code, Status, User};
use crate::cognito::wire::{CognitoError, Outcome};

/// `UsernameType` of the API.
const LONGEST_USERNAME: usize = 128;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SignUp {
    client_id: String,
    secret_hash: Option<String>,
    username: String,
    password: String,
    #[serde(default)]
    user_attributes: Vec<Attribute>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ConfirmSignUp {
    client_id: String,
    secret_hash: Option<String>,
    username: String,
    confirmation_code: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ResendConfirmationCode {
    client_id: String,
    secret_hash: Option<String>,
    username: String,
}

impl Call<'_> {
    pub(super) fn sign_up(&self, input: &SignUp) -> Outcome {
        let pool = self.pool;
        pool.check_client(&input.client_id)?;
        pool.check_secret_hash(&input.username, input.secret_hash.as_deref())?;
        check_username(&input.username)?;
        pool.options.password_policy.check(&input.password)?;
        let attribute = |name| input.user_attributes.iter().find(|it| it.name == name).map(|it| it.value.clone());
        let sub = Uuid::new_v4();
        let password = pool.hasher.hash(sub, &input.password);
        let user =
            User::new(sub, input.username.clone(), attribute("name"), pool.clock.now(), password, Status::Unconfirmed);
        if pool.options.auto_confirm {
            // Confirmed is the account, not the address: that is a setting of the trigger's own.
            user.state().status = Status::Confirmed;
        }
        let user = pool.add(user)?;
        let mut output = json!({"UserConfirmed": pool.options.auto_confirm, "UserSub": sub});
        if !pool.options.auto_confirm {
            output["CodeDeliveryDetails"] = self.send_code(&user);
        }
        Ok(output)
    }

    pub(super) fn confirm_sign_up(&self, input: &ConfirmSignUp) -> Outcome {
        let pool = self.pool;
        pool.check_client(&input.client_id)?;
        pool.check_secret_hash(&input.username, input.secret_hash.as_deref())?;
        let Some(user) = pool.find(&input.username) else {
            return Err(if pool.options.hides_users { wrong_code() } else { unknown_user() });
        };
        self.writes(&user)?;
        let mut state = user.state();
        if state.status != Status::Unconfirmed {
            return Err(cannot_be_confirmed(state.status));
        }
        let Some(code) = &state.code else { return Err(expired_code()) };
        if code.expires_at <= pool.clock.now() {
            return Err(expired_code());
        }
        if code.digits != input.confirmation_code {
            return Err(wrong_code());
        }
        state.status = Status::Confirmed;
        state.email_verified = true;
        state.code = None;
        drop(state);
        pool.changed(&user);
        Ok(json!({}))
    }

    pub(super) fn resend_confirmation_code(&self, input: &ResendConfirmationCode) -> Outcome {
        let pool = self.pool;
        pool.check_client(&input.client_id)?;
        pool.check_secret_hash(&input.username, input.secret_hash.as_deref())?;
        let Some(user) = pool.find(&input.username) else {
            // The answer that would have been given, for an address that is nobody's.
            let simulated = json!({"CodeDeliveryDetails": delivery(&input.username)});
            return if pool.options.hides_users { Ok(simulated) } else { Err(unknown_user()) };
        };
        self.writes(&user)?;
        if user.state().status != Status::Unconfirmed {
            return Err(CognitoError::invalid_parameter("User is already confirmed."));
        }
        Ok(json!({"CodeDeliveryDetails": self.send_code(&user)}))
    }

    /// Keeps a new code where the control route shows it.
    fn send_code(&self, user: &User) -> Value {
        let digits = format!("{:06}", rand::rng().random_range(0..1_000_000_u32));
        let expires_at = self.pool.clock.now() + Duration::hours(CODE_HOURS);
        user.state().code = Some(Code { digits, expires_at });
        delivery(&user.email)
    }
}

/// Refuses what the API's validation refuses, and what is no email.
pub(super) fn check_username(username: &str) -> Result<(), CognitoError> {
    if username.is_empty() {
        return Err(CognitoError::constraint("username", "have length greater than or equal to 1"));
    }
    if username.chars().count() > LONGEST_USERNAME {
        return Err(CognitoError::constraint("username", "have length less than or equal to 128"));
    }
    let has_place = username.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && domain.contains('.'));
    if has_place && !username.contains(char::is_whitespace) {
        Ok(())
    } else {
        Err(CognitoError::invalid_parameter("Username should be an email."))
    }
}

pub(super) fn cannot_be_confirmed(status: Status) -> CognitoError {
    CognitoError::not_authorized(format!("User cannot be confirmed. Current status is {}", status.name()))
}

fn wrong_code() -> CognitoError {
    CognitoError::new("CodeMismatchException", "Invalid verification code provided, please try again.")
}

fn expired_code() -> CognitoError {
    CognitoError::new("ExpiredCodeException", "Invalid code provided, please request a code again.")
}

/// The address with its middle hidden: `a***@e***`.
fn delivery(email: &str) -> Value {
    let initial = |text: &str| text.chars().next().map(String::from).unwrap_or_default();
    let (local, domain) = email.split_once('@').unwrap_or((email, ""));
    let destination = format!("{}***@{}***", initial(local), initial(domain));
    json!({"AttributeName": "email", "DeliveryMedium": "EMAIL", "Destination": destination})
}
