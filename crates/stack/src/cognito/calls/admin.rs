//! Calls with AWS credentials: `AdminConfirmSignUp`, `AdminCreateUser`, `AdminSetUserPassword`.

use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::accounts::{cannot_be_confirmed, check_username};
use super::{Attribute, Call};
use crate::cognito::pool::unknown_user;
use crate::cognito::pool::user::{Status, User};
use crate::cognito::wire::{CognitoError, Outcome};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AdminConfirmSignUp {
    user_pool_id: String,
    username: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AdminCreateUser {
    user_pool_id: String,
    username: String,
    temporary_password: Option<String>,
    #[serde(default)]
    user_attributes: Vec<Attribute>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AdminSetUserPassword {
    user_pool_id: String,
    username: String,
    password: String,
    #[serde(default)]
    permanent: bool,
}

impl Call<'_> {
    pub(super) fn admin_confirm_sign_up(&self, input: &AdminConfirmSignUp) -> Outcome {
        self.check_pool(&input.user_pool_id)?;
        let user = self.pool.find(&input.username).ok_or_else(unknown_user)?;
        self.writes(&user)?;
        {
            let mut state = user.state();
            if state.status != Status::Unconfirmed {
                return Err(cannot_be_confirmed(state.status));
            }
            // The account, not its address ("AdminConfirmSignUp").
            state.status = Status::Confirmed;
            state.code = None;
        }
        self.pool.changed(&user);
        Ok(json!({}))
    }

    pub(super) fn admin_create_user(&self, input: &AdminCreateUser) -> Outcome {
        let pool = self.pool;
        self.check_pool(&input.user_pool_id)?;
        check_username(&input.username)?;
        let temporary = input.temporary_password.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        pool.options.password_policy.check(&temporary)?;
        let sub = Uuid::new_v4();
        let password = pool.hasher.hash(sub, &temporary);
        let attribute = |name| input.user_attributes.iter().find(|it| it.name == name).map(|it| it.value.clone());
        let status = Status::ForceChangePassword;
        let user = User::new(sub, input.username.clone(), attribute("name"), pool.clock.now(), password, status);
        user.state().email_verified = attribute("email_verified").as_deref() == Some("true");
        let user = pool.add(user)?;
        let created = user.created_at.unix_timestamp();
        Ok(json!({"User": {
            "Attributes": user.attributes(),
            "Enabled": true,
            "UserCreateDate": created,
            "UserLastModifiedDate": created,
            "UserStatus": status.name(),
            "Username": sub,
        }}))
    }

    pub(super) fn admin_set_user_password(&self, input: &AdminSetUserPassword) -> Outcome {
        let pool = self.pool;
        self.check_pool(&input.user_pool_id)?;
        pool.options.password_policy.check(&input.password)?;
        let user = pool.find(&input.username).ok_or_else(unknown_user)?;
        self.writes(&user)?;
        {
            let mut state = user.state();
            state.password = pool.hasher.hash(user.sub, &input.password);
            state.status = if input.permanent { Status::Confirmed } else { Status::ForceChangePassword };
        }
        pool.changed(&user);
        Ok(json!({}))
    }

    fn check_pool(&self, pool_id: &str) -> Result<(), CognitoError> {
        if pool_id == self.pool.options.pool_id {
            return Ok(());
        }
        Err(CognitoError::new("ResourceNotFoundException", format!("User pool {pool_id} does not exist.")))
    }
}
