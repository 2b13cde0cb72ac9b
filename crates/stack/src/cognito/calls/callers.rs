//! Calls that an access token authorises: `GetUser`, `ChangePassword`, `GlobalSignOut`.

use serde::Deserialize;
use serde_json::json;

use super::Call;
use super::sessions::wrong_password;
use crate::cognito::wire::{CognitoError, Outcome};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct OfCaller {
    access_token: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ChangePassword {
    access_token: String,
    previous_password: Option<String>,
    proposed_password: String,
}

impl Call<'_> {
    pub(super) fn get_user(&self, input: &OfCaller) -> Outcome {
        let user = self.reader(&input.access_token)?;
        Ok(json!({"UserAttributes": user.attributes(), "Username": user.sub}))
    }

    pub(super) fn global_sign_out(&self, input: &OfCaller) -> Outcome {
        let user = self.writer(&input.access_token)?;
        self.pool.sign_out(&user);
        Ok(json!({}))
    }

    pub(super) fn change_password(&self, input: &ChangePassword) -> Outcome {
        let pool = self.pool;
        let user = self.writer(&input.access_token)?;
        pool.options.password_policy.check(&input.proposed_password)?;
        let kept = user.state().password;
        let previous = input.previous_password.as_deref().unwrap_or_default();
        let is_right = pool.hasher.is_right(Some((user.sub, kept)), previous);
        {
            let (mut state, now) = (user.state(), pool.clock.now());
            if !state.changes.admits(now) {
                return Err(CognitoError::new(
                    "LimitExceededException",
                    "Attempt limit exceeded, please try after some time.",
                ));
            }
            if !is_right {
                state.changes.failed(now);
                return Err(wrong_password());
            }
            state.changes.succeeded();
            state.password = pool.hasher.hash(user.sub, &input.proposed_password);
        }
        pool.changed(&user);
        Ok(json!({}))
    }
}
