//! Accounts of our own: passwords hashed here, sessions and throttling in PostgreSQL.
//!
//! No connection is held while a password is hashed. What was read before is therefore checked again by the statement that
//! writes after: it names the hash that was verified.

mod gate;
mod login;
mod password;
mod register;
mod session;

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use service_kit::clock::SharedClock;
use service_kit::database::Pool;
use zeroize::Zeroizing;

use super::{
    AccountConfirmation, IdentityError, IdentityProvider, IssuedTokens, Login, PasswordChange, RegisteredUser,
    Registration, count,
};
use crate::email::Email;
use crate::hashing::{HashError, Hasher, Verification};
use crate::password::Password;
use crate::queries::throttle::{self, Attempt};
use crate::queries::users::UserRow;
use crate::throttle::ThrottleKey;
use crate::tokens::TokenIssuer;
use gate::Gate;

/// How often a password is verified anew because its hash changed meanwhile (another login replaced an outdated one).
const VERIFY_ROUNDS: usize = 3;

/// How long sessions live.
#[derive(Debug, Clone, Copy)]
pub struct SessionConfig {
    /// From login to the end, however often it is refreshed.
    pub ttl: Duration,
    /// After its first use a refresh token may be used again for this long.
    pub grace: Duration,
}

/// The local provider.
pub struct LocalProvider {
    pool: Pool,
    hasher: Hasher,
    issuer: TokenIssuer,
    sessions: SessionConfig,
    throttled: bool,
    clock: SharedClock,
    gate: Gate,
}

impl LocalProvider {
    /// Puts the provider together. Without `throttled`, guessing is not slowed down.
    #[must_use]
    pub fn new(
        pool: Pool,
        hasher: Hasher,
        issuer: TokenIssuer,
        sessions: SessionConfig,
        throttled: bool,
        clock: SharedClock,
    ) -> Self {
        Self { pool, hasher, issuer, sessions, throttled, clock, gate: Gate::default() }
    }

    /// Counts an attempt before anything is known about it, and looks the account of `email` up.
    async fn admit(&self, key: ThrottleKey, email: Option<&Email>) -> Result<Option<UserRow>, IdentityError> {
        let now = self.clock.now();
        match throttle::admit(&mut self.pool.acquire().await?, &key, email, now).await? {
            Attempt::Admitted(user) => Ok(user),
            Attempt::Refused { until } => {
                metrics::counter!("auth_throttled_total").increment(1);
                Err(IdentityError::TooManyAttempts { retry_after: (until - now).try_into().unwrap_or_default() })
            }
        }
    }

    /// Gives an attempt back that nobody looked at. Best effort: what kept it from being judged may be the database.
    async fn give_back(&self, key: Option<ThrottleKey>) {
        let Some(key) = key else { return };
        let outcome = match self.pool.acquire().await {
            Ok(mut connection) => throttle::give_back(&mut connection, &key, self.clock.now()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "an attempt stays counted that was not judged");
        }
    }

    /// Whether the password is the user's; for no user the same work in vain.
    async fn verify(&self, password: &Password, user: Option<&UserRow>) -> Result<Verification, HashError> {
        let verification = self.hasher.verify(password.clone(), user.map(|user| user.password_hash.clone())).await?;
        if let (Verification::Unusable(reason), Some(user)) = (&verification, user) {
            tracing::error!(user_id = %user.id, %reason, "a user cannot log in");
        }
        Ok(verification)
    }

    fn throttle_key(&self, email: &str, client: IpAddr) -> Option<ThrottleKey> {
        self.throttled.then(|| ThrottleKey::new(email, client))
    }
}

#[async_trait]
impl IdentityProvider for LocalProvider {
    async fn register(&self, registration: Registration) -> Result<RegisteredUser, IdentityError> {
        self.register_user(registration).await
    }

    async fn login(&self, login: Login) -> Result<IssuedTokens, IdentityError> {
        let outcome = self.log_in(login).await;
        count("auth_logins_total", outcome.as_ref().err());
        outcome
    }

    async fn refresh(&self, refresh_token: Zeroizing<String>) -> Result<IssuedTokens, IdentityError> {
        let outcome = self.refresh_session(&refresh_token).await;
        count("auth_refreshes_total", outcome.as_ref().err());
        outcome
    }

    async fn logout(&self, refresh_token: Zeroizing<String>) -> Result<(), IdentityError> {
        self.end_session(&refresh_token).await
    }

    async fn confirm(&self, _: AccountConfirmation) -> Result<(), IdentityError> {
        Err(IdentityError::NoConfirmation)
    }

    async fn resend_code(&self, _: Email) -> Result<(), IdentityError> {
        Err(IdentityError::NoConfirmation)
    }

    async fn change_password(&self, change: PasswordChange) -> Result<(), IdentityError> {
        let outcome = self.replace_password(change).await;
        count("auth_password_changes_total", outcome.as_ref().err());
        outcome
    }
}
