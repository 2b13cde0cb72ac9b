//! Changing a password.

use super::{LocalProvider, VERIFY_ROUNDS};
use crate::hashing::Verification;
use crate::identity::{IdentityError, PasswordChange};
use crate::password::Password;
use crate::queries::sessions;
use crate::queries::users::{self, UserRow};
use crate::throttle::ThrottleKey;

impl LocalProvider {
    pub(super) async fn replace_password(&self, change: PasswordChange) -> Result<(), IdentityError> {
        let PasswordChange { caller, current, new, client, .. } = change;
        let current = current.ok_or(IdentityError::CurrentPasswordWrong)?;
        if current == new {
            return Err(IdentityError::PasswordUnchanged);
        }
        let user = self.account(caller.subject).await?;
        // Counted as a login is: whoever holds a stolen access token may guess no faster than at the front door.
        let key = self.throttle_key(&user.email, client);
        if let Some(key) = key {
            self.admit(key, None).await?;
        }
        let outcome = self.verify_and_replace(user, &current, new, key).await;
        if outcome.as_ref().is_err_and(IdentityError::is_unjudged) {
            self.give_back(key).await;
        }
        outcome
    }

    async fn verify_and_replace(
        &self,
        mut user: UserRow,
        current: &Password,
        new: Password,
        key: Option<ThrottleKey>,
    ) -> Result<(), IdentityError> {
        let mut hashed = None;
        for _ in 0..VERIFY_ROUNDS {
            if !matches!(self.verify(current, Some(&user)).await?, Verification::Match { .. }) {
                return Err(IdentityError::CurrentPasswordWrong);
            }
            let new_hash = match hashed.take() {
                Some(hash) => hash,
                None => self.hasher.hash(new.clone()).await?,
            };
            let mut connection = self.pool.acquire().await?;
            let (old_hash, now) = (&user.password_hash, self.clock.now());
            if sessions::change_password(&mut connection, user.id, old_hash, &new_hash, key.as_ref(), now).await? {
                return Ok(());
            }
            // As after a login: the hash has been replaced meanwhile, by whom the next round tells.
            drop(connection);
            user = self.account(user.id).await?;
            hashed = Some(new_hash);
        }
        Err(IdentityError::Busy)
    }

    /// The caller's account, as long as it may be used.
    async fn account(&self, id: uuid::Uuid) -> Result<UserRow, IdentityError> {
        let user = users::find_by_id(&mut self.pool.acquire().await?, id).await?;
        user.filter(|user| !user.disabled).ok_or(IdentityError::AccountUnavailable)
    }
}
