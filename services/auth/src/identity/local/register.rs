//! Making an account.

use std::time::Duration;

use service_kit::clock::uuid_v7;
use service_kit::stages::{self, Stage};

use super::LocalProvider;
use crate::identity::{IdentityError, RegisteredUser, Registration};
use crate::queries::users::{self, NewUser};

/// What a registration may take beside its wait for a hashing thread; whoever waits for it at the gate waits for both.
const GATE_PATIENCE: Duration = Duration::from_secs(3);

impl LocalProvider {
    pub(super) async fn register_user(&self, registration: Registration) -> Result<RegisteredUser, IdentityError> {
        let Registration { email, password, display_name } = registration;
        let patience = self.hasher.deadline() + GATE_PATIENCE;
        let turn = tokio::time::timeout(patience, self.gate.enter(&email));
        let _turn = stages::timed(Stage::Admission, turn).await.map_err(|_| IdentityError::Busy)?;
        // A look first: an address that is taken need not cost a hash. Who decides is the constraint.
        if users::exists(&mut self.pool.acquire().await?, &email).await? {
            return Err(IdentityError::EmailTaken);
        }
        let password_hash = self.hasher.hash(password).await?;
        let new = NewUser {
            id: uuid_v7(&*self.clock),
            email: &email,
            password_hash: &password_hash,
            display_name: display_name.as_deref(),
            created_at: self.clock.now(),
        };
        let id = new.id;
        match users::insert(&mut self.pool.acquire().await?, &new).await {
            Ok(created_at) => Ok(RegisteredUser { id, email, display_name, created_at, confirmation_required: false }),
            Err(error) if error.violates(users::EMAIL_KEY) => Err(IdentityError::EmailTaken),
            Err(error) => Err(error.into()),
        }
    }
}
