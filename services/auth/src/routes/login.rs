//! `POST /v1/auth/login`

use axum::extract::State;
use service_kit::Result;
use service_kit::context::ClientAddress;
use service_kit::extract::Json;
use service_kit::fields::{Fields, FromFields};
use service_kit::problem::ProblemBody;
use utoipa::ToSchema;

use super::tokens::TokensBody;
use crate::AuthState;
use crate::email::Email;
use crate::identity::{IssuedTokens, Login};
use crate::password::Password;

/// Who wants in.
#[derive(Debug, ToSchema)]
#[schema(as = Credentials)]
pub(crate) struct LoginRequest {
    /// In any form that has the canonical form of the account.
    #[schema(value_type = String, format = Email, example = "ada@example.com")]
    email: Email,
    /// Exactly as registered. No rules are checked.
    #[schema(value_type = String, format = Password, example = "correct horse battery")]
    password: Option<Password>,
}

impl FromFields for LoginRequest {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        let email = fields.required("email", Email::parse);
        let password = fields.required("password", |text| Ok(Password::attempt(text)));
        Some(Self { email: email?, password: password? })
    }
}

/// Log in
///
/// Begins a session. Unknown accounts, wrong passwords and locked accounts are answered alike, and cost alike. After five
/// wrong attempts from one address within 15 minutes each further one is followed by a pause.
#[utoipa::path(
    post,
    path = "/v1/auth/login",
    tag = "auth",
    request_body = LoginRequest,
    responses(
        (status = 200, description = "The session's tokens.", body = TokensBody),
        (status = 400, description = "Broken JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "`invalid_credentials`: email and password do not fit together.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "With Cognito. `password_reset_required`, `challenge_…` (more is asked for than a password), `identity_forbidden`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "`too_many_attempts`, with Cognito `identity_throttled`: the next attempt is admitted after `Retry-After`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn login(
    State(state): State<AuthState>,
    ClientAddress(client): ClientAddress,
    Json(request): Json<LoginRequest>,
) -> Result<IssuedTokens> {
    let LoginRequest { email, password } = request;
    Ok(state.identity.login(Login { email, password, client }).await?)
}
