//! Logging in: one statement before the hash, one after it.

use super::{LocalProvider, VERIFY_ROUNDS};
use crate::hashing::Verification;
use crate::identity::{IdentityError, IssuedTokens, Login};
use crate::password::Password;
use crate::queries::users::{self, UserRow};
use crate::throttle::ThrottleKey;

impl LocalProvider {
    pub(super) async fn log_in(&self, login: Login) -> Result<IssuedTokens, IdentityError> {
        let Login { email, password, client } = login;
        // No account has a password that is over the cap: there is nothing to hash, and no guess to count.
        let password = password.ok_or(IdentityError::InvalidCredentials)?;
        let key = self.throttle_key(email.as_str(), client);
        let user = match key {
            Some(key) => self.admit(key, Some(&email)).await?,
            None => users::find_by_email(&mut self.pool.acquire().await?, &email).await?,
        };
        let outcome = self.verify_and_start(&password, user, key).await;
        if outcome.as_ref().is_err_and(IdentityError::is_unjudged) {
            self.give_back(key).await;
        }
        outcome
    }

    async fn verify_and_start(
        &self,
        password: &Password,
        mut user: Option<UserRow>,
        key: Option<ThrottleKey>,
    ) -> Result<IssuedTokens, IdentityError> {
        for _ in 0..VERIFY_ROUNDS {
            let verification = self.verify(password, user.as_ref()).await?;
            let (Verification::Match { upgrade }, Some(found)) = (verification, user) else {
                return Err(IdentityError::InvalidCredentials);
            };
            if found.disabled {
                return Err(IdentityError::InvalidCredentials);
            }
            if let Some(tokens) = self.start_session(&found, upgrade.as_ref(), key).await? {
                return Ok(tokens);
            }
            // The account is no longer what was verified. A changed password will not match now; a hash that another
            // login has replaced will.
            user = users::find_by_id(&mut self.pool.acquire().await?, found.id).await?;
        }
        Err(IdentityError::Busy)
    }
}
