//! What can go wrong with accounts and sessions, and what a client is told about it.

use std::time::Duration;

use cognito::CognitoError;
use http::StatusCode;
use service_kit::database::DatabaseError;
use service_kit::problem::{FieldError, Problem};

use crate::hashing::{self, HashError};

/// After which another code may be asked for: whoever delivers it needs more than a blip.
const CODE_RETRY_AFTER: Duration = Duration::from_secs(30);

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
    /// 409 `confirmation_not_needed`: accounts are not confirmed by a code here.
    #[error("accounts are not confirmed by a code")]
    NoConfirmation,
    /// 422 naming a field that the provider does not take.
    #[error("the provider does not take a field: {}", .0.code)]
    NotAccepted(FieldError),
    /// 403: the provider refuses.
    #[error("the provider refuses: {code}")]
    Refused {
        /// The problem's code.
        code: &'static str,
        /// The problem's sentence.
        detail: &'static str,
    },
    /// 503 `code_not_delivered`: the account is there, and its code could not be sent.
    #[error("the confirmation code could not be sent")]
    CodeNotDelivered,
    /// 502 `sessions_not_ended`: the password is another one, and old sessions may go on. Asking again would not help: the
    /// current password is the new one now.
    #[error("the password is changed, the sessions are not ended")]
    SessionsNotEnded(#[source] CognitoError),
    /// 403, 429 or 503, as the provider's error says.
    #[error(transparent)]
    Cognito(#[from] CognitoError),
    /// 500: a defect.
    #[error("a defect")]
    Defect(#[source] anyhow::Error),
}

impl IdentityError {
    /// Whether it says nothing about what the client sent: nobody has looked at it.
    #[must_use]
    pub fn is_unjudged(&self) -> bool {
        matches!(
            self,
            Self::Busy
                | Self::Database(_)
                | Self::CodeNotDelivered
                | Self::SessionsNotEnded(_)
                | Self::Cognito(CognitoError::Busy { .. } | CognitoError::Unavailable { .. })
                | Self::Defect(_)
        )
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
            IdentityError::NoConfirmation => {
                Self::conflict("confirmation_not_needed", "Accounts need no confirmation by a code here.")
            }
            IdentityError::NotAccepted(field) => Self::unprocessable(vec![field]),
            IdentityError::Refused { code, detail } => Self::forbidden(code, detail),
            IdentityError::CodeNotDelivered => Self::unavailable(
                "code_not_delivered",
                "The code could not be sent; ask for another one later.",
                CODE_RETRY_AFTER,
            ),
            IdentityError::SessionsNotEnded(source) => Self::new(
                StatusCode::BAD_GATEWAY,
                "sessions_not_ended",
                "The password is changed, but sessions from before may go on; log out of them.",
            )
            .with_source(source),
            IdentityError::Cognito(error) => error.into(),
            IdentityError::Defect(source) => Self::internal(source),
        }
    }
}
