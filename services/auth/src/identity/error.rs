//! What can go wrong with accounts and sessions, and what a client is told about it.

use std::time::Duration;

use service_kit::database::DatabaseError;
use service_kit::problem::{FieldError, Problem};

use crate::hashing::{self, HashError};

/// Why a provider did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// 409 `email_taken`.
    #[error("the email belongs to an account")]
    EmailTaken,
    /// 401 `invalid_credentials`, the same for unknown accounts, wrong passwords and locked accounts.
    #[error("email and password do not fit")]
    InvalidCredentials,
    /// 403 `current_password_wrong`.
    #[error("the current password is wrong")]
    CurrentPasswordWrong,
    /// 422 naming the new password.
    #[error("the new password is the current one")]
    PasswordUnchanged,
    /// 401 `invalid_refresh_token`, the same whatever is wrong with it.
    #[error("the refresh token is not accepted")]
    InvalidRefreshToken,
    /// 401 `account_unavailable`: a valid access token of an account that is locked or gone.
    #[error("the account is locked or gone")]
    AccountUnavailable,
    /// 429 `too_many_attempts`.
    #[error("too many attempts")]
    TooManyAttempts {
        /// After this time an attempt is admitted.
        retry_after: Duration,
    },
    /// 503 `hashing_busy`.
    #[error("something here is busy")]
    Busy,
    /// 503, as the database's error says.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// 500: a defect.
    #[error("a defect")]
    Defect(#[source] anyhow::Error),
}

impl IdentityError {
    /// Whether it says nothing about what the client sent: nobody has looked at it.
    #[must_use]
    pub fn is_unjudged(&self) -> bool {
        matches!(self, Self::Busy | Self::Database(_) | Self::Defect(_))
    }
}

impl From<HashError> for IdentityError {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::Busy,
            HashError::Failed(source) => Self::Defect(source),
        }
    }
}

impl From<IdentityError> for Problem {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::EmailTaken => Self::conflict("email_taken", "There is an account with this email."),
            IdentityError::InvalidCredentials => {
                Self::unauthorized("invalid_credentials", "Email and password do not fit together.")
            }
            IdentityError::CurrentPasswordWrong => {
                Self::forbidden("current_password_wrong", "The current password is wrong.")
            }
            IdentityError::PasswordUnchanged => Self::unprocessable(vec![FieldError::new(
                "/new_password",
                "password_unchanged",
                "The new password is the current one.",
            )]),
            IdentityError::InvalidRefreshToken => {
                Self::unauthorized("invalid_refresh_token", "The refresh token is not accepted; log in again.")
            }
            IdentityError::AccountUnavailable => {
                Self::unauthorized("account_unavailable", "The account is locked or no longer exists.")
            }
            IdentityError::TooManyAttempts { retry_after } => Self::too_many_requests(
                "too_many_attempts",
                "Too many attempts for this account from here; wait before the next.",
                retry_after,
            ),
            IdentityError::Busy => hashing::busy(),
            IdentityError::Database(error) => error.into(),
            IdentityError::Defect(source) => Self::internal(source),
        }
    }
}
