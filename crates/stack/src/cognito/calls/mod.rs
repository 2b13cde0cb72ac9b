//! What each call does: input, output and errors as the API reference of Amazon Cognito user pools has them.

mod accounts;
mod admin;
mod callers;
mod sessions;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::Deserialize;

use super::behaviour::Conduct;
use super::operation::Operation;
use super::pool::Pool;
use super::pool::user::User;
use super::wire::{CognitoError, Outcome, input};

/// What a call works with.
pub(super) struct Call<'a> {
    pub(super) pool: &'a Pool,
    pub(super) conduct: &'a Conduct,
    /// Nanoseconds since the double's start.
    pub(super) now: u64,
}

/// `AuthParameters` and `ChallengeResponses`.
type Parameters = HashMap<String, String>;

/// `UserAttributes`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attribute {
    name: String,
    #[serde(default)]
    value: String,
}

impl Call<'_> {
    pub(super) fn answer(&self, operation: Operation, body: &[u8]) -> Outcome {
        match operation {
            Operation::SignUp => self.sign_up(&input(body)?),
            Operation::ConfirmSignUp => self.confirm_sign_up(&input(body)?),
            Operation::ResendConfirmationCode => self.resend_confirmation_code(&input(body)?),
            Operation::AdminConfirmSignUp => self.admin_confirm_sign_up(&input(body)?),
            Operation::AdminCreateUser => self.admin_create_user(&input(body)?),
            Operation::AdminSetUserPassword => self.admin_set_user_password(&input(body)?),
            Operation::InitiateAuth => self.initiate_auth(&input(body)?),
            Operation::RespondToAuthChallenge => self.respond_to_auth_challenge(&input(body)?),
            Operation::RevokeToken => self.revoke_token(&input(body)?),
            Operation::GlobalSignOut => self.global_sign_out(&input(body)?),
            Operation::ChangePassword => self.change_password(&input(body)?),
            Operation::GetUser => self.get_user(&input(body)?),
        }
    }

    /// Counts a read of this user against their own quota.
    fn reads(&self, user: &User) -> Result<(), CognitoError> {
        self.within(&user.reads)
    }

    /// Counts a write of this user against their own quota.
    fn writes(&self, user: &User) -> Result<(), CognitoError> {
        self.within(&user.writes)
    }

    fn within(&self, bucket: &AtomicU64) -> Result<(), CognitoError> {
        let admitted = self.conduct.per_user().is_none_or(|rate| rate.admit(bucket, self.now));
        if admitted { Ok(()) } else { Err(CognitoError::throttled()) }
    }

    /// Who an access token stands for; the call counts as a read.
    fn reader(&self, access_token: &str) -> Result<Arc<User>, CognitoError> {
        let user = self.pool.caller(access_token)?;
        self.reads(&user)?;
        Ok(user)
    }

    /// Who an access token stands for; the call counts as a write.
    fn writer(&self, access_token: &str) -> Result<Arc<User>, CognitoError> {
        let user = self.pool.caller(access_token)?;
        self.writes(&user)?;
        Ok(user)
    }
}
