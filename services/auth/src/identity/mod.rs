//! Who people are: one small trait, an implementation a provider.
//!
//! The routes know HTTP and the rules of the request; a provider knows accounts and sessions. Tokens cross this boundary as
//! text: what a refresh token looks like inside is the provider's business.

pub mod cognito;
mod error;
pub mod local;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use service_kit::auth::{Claims, PresentedToken};
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

pub use error::IdentityError;

use crate::email::Email;
use crate::password::Password;

/// Keeps accounts and sessions. Every error has its answer in [`IdentityError`].
#[async_trait]
pub trait IdentityProvider: Send + Sync + 'static {
    /// Makes an account.
    async fn register(&self, registration: Registration) -> Result<RegisteredUser, IdentityError>;

    /// Begins a session. Unknown account, wrong password and locked account are one and the same error.
    async fn login(&self, login: Login) -> Result<IssuedTokens, IdentityError>;

    /// Exchanges a refresh token for the next pair.
    async fn refresh(&self, refresh_token: Zeroizing<String>) -> Result<IssuedTokens, IdentityError>;

    /// Ends the session that a refresh token belongs to; once more is fine.
    async fn logout(&self, refresh_token: Zeroizing<String>) -> Result<(), IdentityError>;

    /// Confirms an account with the code that its address was sent.
    async fn confirm(&self, confirmation: AccountConfirmation) -> Result<(), IdentityError>;

    /// Sends the code once more; whether there is somebody to send it to is not told.
    async fn resend_code(&self, email: Email) -> Result<(), IdentityError>;

    /// Replaces the caller's password and ends all their sessions.
    async fn change_password(&self, change: PasswordChange) -> Result<(), IdentityError>;
}

/// Somebody wants an account.
#[derive(Debug)]
pub struct Registration {
    /// Canonical.
    pub email: Email,
    /// In keeping with the rules.
    pub password: Password,
    /// Normalised.
    pub display_name: Option<String>,
}

/// Somebody wants in.
#[derive(Debug)]
pub struct Login {
    /// Canonical.
    pub email: Email,
    /// `None`: longer than any password can be.
    pub password: Option<Password>,
    /// Where they come from.
    pub client: IpAddr,
}

/// Somebody shows that an address is theirs.
#[derive(Debug)]
pub struct AccountConfirmation {
    /// Canonical.
    pub email: Email,
    /// As sent.
    pub code: String,
}

/// Somebody wants another password.
#[derive(Debug)]
pub struct PasswordChange {
    /// Who, as their access token says.
    pub caller: Arc<Claims>,
    /// The token itself: some providers change passwords in its name.
    pub access_token: PresentedToken,
    /// `None`: longer than any password can be.
    pub current: Option<Password>,
    /// In keeping with the rules, and another one.
    pub new: Password,
    /// Where they come from.
    pub client: IpAddr,
}

/// A new account.
#[derive(Debug)]
pub struct RegisteredUser {
    /// The `sub` of its tokens.
    pub id: Uuid,
    /// Canonical.
    pub email: Email,
    /// Normalised.
    pub display_name: Option<String>,
    /// As stored.
    pub created_at: OffsetDateTime,
    /// Whether the account must be confirmed before it can be used.
    pub confirmation_required: bool,
}

/// What a session consists of.
pub struct IssuedTokens {
    /// For the services.
    pub access_token: String,
    /// How long the access token is valid.
    pub expires_in: Duration,
    /// For the next pair; some providers give none.
    pub refresh_token: Option<Zeroizing<String>>,
}

/// Counts an outcome, in words that all providers share.
fn count(metric: &'static str, error: Option<&IdentityError>) {
    let result = match error {
        None => "ok",
        Some(
            IdentityError::TooManyAttempts { .. } | IdentityError::Cognito(::cognito::CognitoError::Throttled { .. }),
        ) => "throttled",
        Some(error) if error.is_unjudged() => "unavailable",
        Some(_) => "refused",
    };
    metrics::counter!(metric, "result" => result).increment(1);
}
