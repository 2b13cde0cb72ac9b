//! The calls, each with its parameters and what its answer must have.

use aws_sdk_cognitoidentityprovider as sdk;
use sdk::types::{AttributeType, AuthFlowType, AuthenticationResultType, ChallengeNameType};
use uuid::Uuid;

use crate::challenge::Challenge;
use crate::client::Cognito;
use crate::config::LoginConfig;
use crate::error::{CognitoError, Trouble};
use crate::operation::Operation;
use crate::secret_hash::secret_hash;
use crate::session_key::session_key;
use crate::tokens::Tokens;

/// Calls in the name of our app client.
#[derive(Clone)]
pub struct App {
    cognito: Cognito,
    login: LoginConfig,
}

/// Somebody to register.
#[derive(Clone, Copy)]
pub struct NewUser<'a> {
    /// Canonical; also the user's name in the pool.
    pub email: &'a str,
    /// In clear.
    pub password: &'a str,
    /// The attribute `name`.
    pub display_name: Option<&'a str>,
}

/// What a registration gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedUp {
    /// The user's `sub`.
    pub id: Uuid,
    /// Whether the account can be used at once.
    pub confirmed: bool,
}

/// What the pool knows about a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserAttributes {
    /// `email`.
    pub email: Option<String>,
    /// `name`.
    pub name: Option<String>,
}

impl App {
    /// The app client that `login` describes.
    #[must_use]
    pub fn new(cognito: Cognito, login: LoginConfig) -> Self {
        Self { cognito, login }
    }

    /// `SignUp`.
    ///
    /// # Errors
    /// As [`CognitoError`] says; so it is with every call here.
    pub async fn sign_up(&self, user: NewUser<'_>) -> Result<SignedUp, CognitoError> {
        let request =
            self.sdk().sign_up().client_id(&self.login.client_id).username(user.email).password(user.password);
        let request = request.set_secret_hash(self.secret_hash(user.email));
        let request = [("email", Some(user.email)), ("name", user.display_name)].into_iter().fold(
            request,
            |request, (name, value)| match value {
                Some(value) => request.user_attributes(attribute(name, value)),
                None => request,
            },
        );
        let operation = Operation::SignUp;
        let output = self.cognito.call(operation, user.email, || request.clone().send()).await?;
        let id = Uuid::try_parse(output.user_sub()).map_err(|_| unreadable(operation))?;
        Ok(SignedUp { id, confirmed: output.user_confirmed() })
    }

    /// `ConfirmSignUp`.
    pub async fn confirm_sign_up(&self, email: &str, code: &str) -> Result<(), CognitoError> {
        let request = self.sdk().confirm_sign_up().client_id(&self.login.client_id).username(email);
        let request = request.confirmation_code(code).set_secret_hash(self.secret_hash(email));
        self.cognito.call(Operation::ConfirmSignUp, email, || request.clone().send()).await.map(drop)
    }

    /// `ResendConfirmationCode`.
    pub async fn resend_confirmation_code(&self, email: &str) -> Result<(), CognitoError> {
        let request = self.sdk().resend_confirmation_code().client_id(&self.login.client_id).username(email);
        let request = request.set_secret_hash(self.secret_hash(email));
        self.cognito.call(Operation::ResendConfirmationCode, email, || request.clone().send()).await.map(drop)
    }

    /// `AdminConfirmSignUp`, with credentials of AWS.
    pub async fn admin_confirm_sign_up(&self, email: &str) -> Result<(), CognitoError> {
        let request = self.sdk().admin_confirm_sign_up().user_pool_id(&self.login.user_pool_id).username(email);
        self.cognito.call(Operation::AdminConfirmSignUp, email, || request.clone().send()).await.map(drop)
    }

    /// `InitiateAuth` with `USER_PASSWORD_AUTH`.
    pub async fn log_in(&self, email: &str, password: &str) -> Result<Tokens, CognitoError> {
        let request = self.sdk().initiate_auth().client_id(&self.login.client_id);
        let request = request.auth_flow(AuthFlowType::UserPasswordAuth);
        let request = request.auth_parameters("USERNAME", email).auth_parameters("PASSWORD", password);
        let request = match self.secret_hash(email) {
            Some(hash) => request.auth_parameters("SECRET_HASH", hash),
            None => request,
        };
        let output = self.cognito.call(Operation::LogIn, email, || request.clone().send()).await?;
        tokens(Operation::LogIn, output.authentication_result, output.challenge_name)
    }

    /// The next tokens of a session. `username` is the pool's own name of the user, not an alias: the secret's hash covers it.
    pub async fn refresh(&self, refresh_token: &str, username: &str) -> Result<Tokens, CognitoError> {
        let operation = Operation::Refresh;
        let session = session_key(refresh_token);
        if self.login.rotation {
            let request = self.sdk().get_tokens_from_refresh_token().client_id(&self.login.client_id);
            let secret = self.login.client_secret.as_ref().map(|secret| secret.expose().to_owned());
            let request = request.refresh_token(refresh_token).set_client_secret(secret);
            let output = self.cognito.call(operation, &session, || request.clone().send()).await?;
            return tokens(operation, output.authentication_result, None);
        }
        let request = self.sdk().initiate_auth().client_id(&self.login.client_id);
        let request = request.auth_flow(AuthFlowType::RefreshTokenAuth).auth_parameters("REFRESH_TOKEN", refresh_token);
        let request = match self.secret_hash(username) {
            Some(hash) => request.auth_parameters("SECRET_HASH", hash),
            None => request,
        };
        let output = self.cognito.call(operation, &session, || request.clone().send()).await?;
        tokens(operation, output.authentication_result, output.challenge_name)
    }

    /// `RevokeToken`: ends the session of a refresh token.
    pub async fn revoke(&self, refresh_token: &str) -> Result<(), CognitoError> {
        let secret = self.login.client_secret.as_ref().map(|secret| secret.expose().to_owned());
        let request = self.sdk().revoke_token().client_id(&self.login.client_id).token(refresh_token);
        let request = request.set_client_secret(secret);
        self.cognito
            .call(Operation::RevokeToken, &session_key(refresh_token), || request.clone().send())
            .await
            .map(drop)
    }

    /// `ChangePassword`, in the name of an access token. Sessions go on.
    pub async fn change_password(
        &self,
        (user, access_token): (&str, &str),
        current: &str,
        new: &str,
    ) -> Result<(), CognitoError> {
        let request = self.sdk().change_password().access_token(access_token);
        let request = request.previous_password(current).proposed_password(new);
        self.cognito.call(Operation::ChangePassword, user, || request.clone().send()).await.map(drop)
    }

    /// `GlobalSignOut`: ends all sessions of a user, in the name of an access token.
    pub async fn sign_out_everywhere(&self, user: &str, access_token: &str) -> Result<(), CognitoError> {
        let request = self.sdk().global_sign_out().access_token(access_token);
        self.cognito.call(Operation::GlobalSignOut, user, || request.clone().send()).await.map(drop)
    }

    fn sdk(&self) -> &sdk::Client {
        &self.cognito.0.sdk
    }

    fn secret_hash(&self, username: &str) -> Option<String> {
        let secret = self.login.client_secret.as_ref()?;
        Some(secret_hash(&self.login.client_id, secret.expose(), username))
    }
}

impl Cognito {
    /// `GetUser`, in the name of an access token of `user`.
    pub async fn get_user(&self, user: &str, access_token: &str) -> Result<UserAttributes, CognitoError> {
        let request = self.0.sdk.get_user().access_token(access_token);
        let output = self.call(Operation::GetUser, user, || request.clone().send()).await?;
        let mut attributes = UserAttributes::default();
        for AttributeType { name, value, .. } in output.user_attributes {
            match name.as_str() {
                "email" => attributes.email = value,
                "name" => attributes.name = value,
                _ => {}
            }
        }
        Ok(attributes)
    }
}

/// A name and a value; only the name is required, and it is there.
fn attribute(name: &str, value: &str) -> AttributeType {
    AttributeType::builder().name(name).value(value).build().expect("an attribute with a name")
}

fn tokens(
    operation: Operation,
    result: Option<AuthenticationResultType>,
    challenge: Option<ChallengeNameType>,
) -> Result<Tokens, CognitoError> {
    // A challenge first: tokens beside one would not be meant.
    if let Some(name) = challenge {
        return Err(CognitoError::Challenged { operation, challenge: Challenge::named(name.as_str()) });
    }
    result.and_then(Tokens::of).ok_or(unreadable(operation))
}

fn unreadable(operation: Operation) -> CognitoError {
    CognitoError::Unavailable { operation, trouble: Trouble::Unreadable }
}
