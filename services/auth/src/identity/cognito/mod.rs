//! Accounts in an Amazon Cognito user pool. Nothing is kept here: no table, no session, no password.
//!
//! An account's name in the pool is its canonical email. Guesses are counted by Cognito. Which answer of Cognito's becomes which
//! of ours is in `answers`, and as a table in `docs/cognito.md`.

mod answers;
mod envelope;

use ::cognito::{App, Confirmation, NewUser, Operation, Refusal, Tokens};
use async_trait::async_trait;
use service_kit::clock::SharedClock;
use zeroize::Zeroizing;

use self::envelope::Envelope;
use super::{
    AccountConfirmation, IdentityError, IdentityProvider, IssuedTokens, Login, PasswordChange, RegisteredUser,
    Registration, count,
};
use crate::email::Email;

/// The Cognito provider.
pub struct CognitoProvider {
    app: App,
    confirmation: Confirmation,
    clock: SharedClock,
}

impl CognitoProvider {
    /// Puts the provider together.
    #[must_use]
    pub fn new(app: App, confirmation: Confirmation, clock: SharedClock) -> Self {
        Self { app, confirmation, clock }
    }

    async fn sign_up(&self, registration: Registration) -> Result<RegisteredUser, IdentityError> {
        let Registration { email, password, display_name } = registration;
        let user =
            NewUser { email: email.as_str(), password: password.expose(), display_name: display_name.as_deref() };
        let signed_up = self.app.sign_up(user).await.map_err(answers::of_registration)?;
        let mut confirmed = signed_up.confirmed;
        if !confirmed && self.confirmation == Confirmation::Admin {
            self.confirm_as_admin(&email).await.map_err(answers::of_registration)?;
            confirmed = true;
        }
        Ok(RegisteredUser {
            id: signed_up.id,
            email,
            display_name,
            // Cognito does not say when; it was now.
            created_at: self.clock.now(),
            confirmation_required: !confirmed,
        })
    }

    async fn log_in(&self, login: Login) -> Result<IssuedTokens, IdentityError> {
        // No account has a password that is over the cap, and none is empty: Cognito need not be asked.
        let password = login.password.filter(|password| !password.expose().is_empty());
        let password = password.ok_or(IdentityError::InvalidCredentials)?;
        let email = &login.email;
        let mut outcome = self.app.log_in(email.as_str(), password.expose()).await;
        if self.confirmation == Confirmation::Admin
            && outcome.as_ref().is_err_and(|error| error.refusal() == Some(Refusal::UserNotConfirmed))
        {
            // What a registration was cut off from doing. The password is looked at after it.
            self.confirm_as_admin(email).await.map_err(answers::of_late_confirmation)?;
            outcome = self.app.log_in(email.as_str(), password.expose()).await;
        }
        let Tokens { access_token, expires_in, refresh_token, username } = outcome.map_err(answers::of_login)?;
        let refresh_token = match refresh_token {
            Some(token) => Some(Envelope::seal(&username, &token).ok_or_else(|| answers::unusable(Operation::LogIn))?),
            None => None,
        };
        Ok(IssuedTokens { access_token, expires_in, refresh_token })
    }

    async fn confirm_as_admin(&self, email: &Email) -> Result<(), ::cognito::CognitoError> {
        match self.app.admin_confirm_sign_up(email.as_str()).await {
            // By a trigger of the pool, or by another request.
            Err(error) if error.refusal() == Some(Refusal::AlreadyConfirmed) => Ok(()),
            outcome => outcome,
        }
    }

    async fn next_tokens(&self, presented: Zeroizing<String>) -> Result<IssuedTokens, IdentityError> {
        let session = Envelope::open(&presented).ok_or(IdentityError::InvalidRefreshToken)?;
        let outcome = self.app.refresh(&session.refresh_token, &session.username).await;
        let Tokens { access_token, expires_in, refresh_token, .. } = outcome.map_err(answers::of_session)?;
        // A pool that does not rotate gives none: the one at hand stays good.
        let refresh_token = match refresh_token {
            Some(token) => {
                Envelope::seal(&session.username, &token).ok_or_else(|| answers::unusable(Operation::Refresh))?
            }
            None => presented,
        };
        Ok(IssuedTokens { access_token, expires_in, refresh_token: Some(refresh_token) })
    }

    async fn replace_password(&self, change: PasswordChange) -> Result<(), IdentityError> {
        let PasswordChange { caller, access_token, current, new, .. } = change;
        let current = current.filter(|password| !password.expose().is_empty());
        let current = current.ok_or(IdentityError::CurrentPasswordWrong)?;
        if current == new {
            return Err(IdentityError::PasswordUnchanged);
        }
        let user = caller.subject.to_string();
        let by = (user.as_str(), access_token.expose());
        let changed = self.app.change_password(by, current.expose(), new.expose()).await;
        changed.map_err(answers::of_password_change)?;
        // Cognito lets sessions go on after a change of password.
        self.app.sign_out_everywhere(&user, access_token.expose()).await.map_err(IdentityError::SessionsNotEnded)
    }
}

#[async_trait]
impl IdentityProvider for CognitoProvider {
    async fn register(&self, registration: Registration) -> Result<RegisteredUser, IdentityError> {
        self.sign_up(registration).await
    }

    async fn login(&self, login: Login) -> Result<IssuedTokens, IdentityError> {
        let outcome = self.log_in(login).await;
        count("auth_logins_total", outcome.as_ref().err());
        outcome
    }

    async fn refresh(&self, refresh_token: Zeroizing<String>) -> Result<IssuedTokens, IdentityError> {
        let outcome = self.next_tokens(refresh_token).await;
        count("auth_refreshes_total", outcome.as_ref().err());
        outcome
    }

    async fn logout(&self, refresh_token: Zeroizing<String>) -> Result<(), IdentityError> {
        let session = Envelope::open(&refresh_token).ok_or(IdentityError::InvalidRefreshToken)?;
        self.app.revoke(&session.refresh_token).await.map_err(answers::of_session)
    }

    async fn confirm(&self, confirmation: AccountConfirmation) -> Result<(), IdentityError> {
        if self.confirmation != Confirmation::Code {
            return Err(IdentityError::NoConfirmation);
        }
        let AccountConfirmation { email, code } = confirmation;
        self.app.confirm_sign_up(email.as_str(), &code).await.map_err(answers::of_confirmation)
    }

    async fn resend_code(&self, email: Email) -> Result<(), IdentityError> {
        if self.confirmation != Confirmation::Code {
            return Err(IdentityError::NoConfirmation);
        }
        self.app.resend_confirmation_code(email.as_str()).await.or_else(answers::of_resending)
    }

    async fn change_password(&self, change: PasswordChange) -> Result<(), IdentityError> {
        let outcome = self.replace_password(change).await;
        count("auth_password_changes_total", outcome.as_ref().err());
        outcome
    }
}
