//! `POST /v1/auth/confirm`

use axum::extract::State;
use http::StatusCode;
use service_kit::Result;
use service_kit::extract::Json;
use service_kit::fields::{Fields, FromFields, Invalid};
use service_kit::problem::ProblemBody;
use utoipa::ToSchema;

use crate::AuthState;
use crate::email::Email;
use crate::identity::AccountConfirmation;

/// The most bytes of a code (`ConfirmSignUp`, Amazon Cognito API Reference: 2,048 characters).
const CODE_MAX_BYTES: usize = 2_048;

/// Which account, and the proof.
#[derive(Debug, ToSchema)]
#[schema(as = AccountConfirmation)]
pub(crate) struct ConfirmRequest {
    /// In any form that has the canonical form of the account.
    #[schema(value_type = String, format = Email, example = "ada@example.com")]
    email: Email,
    /// As it was sent to the address; spaces at the ends do not count.
    #[schema(min_length = 1, example = "123456")]
    code: String,
}

impl FromFields for ConfirmRequest {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        let email = fields.required("email", Email::parse);
        let code = fields.required("code", |text| parse_code(&text));
        Some(Self { email: email?, code: code? })
    }
}

/// What Cognito takes for a code: no white space (`[\S]+`).
fn parse_code(text: &str) -> Result<String, Invalid> {
    let code = text.trim();
    if code.is_empty() || code.len() > CODE_MAX_BYTES || code.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Invalid::new("invalid_code", "This cannot be a code."));
    }
    Ok(code.to_owned())
}

/// Confirm an account
///
/// With the code that was sent to its address. Where accounts are not confirmed by a code (the local provider, pools that confirm by
/// themselves) there is nothing to confirm. A wrong code, an old one, one for nobody and one for a confirmed account are answered
/// alike.
#[utoipa::path(
    post,
    path = "/v1/auth/confirm",
    tag = "auth",
    request_body = ConfirmRequest,
    responses(
        (status = 204, description = "The account can be used."),
        (status = 400, description = "Broken JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "`identity_forbidden`: the provider takes no requests from here.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`confirmation_not_needed`: accounts are not confirmed by a code. `email_taken`: another account has confirmed the address.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named. `code_not_accepted`: the code is wrong or too old.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "`identity_throttled`, `too_many_attempts`: come back after `Retry-After`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn confirm(State(state): State<AuthState>, Json(request): Json<ConfirmRequest>) -> Result<StatusCode> {
    let ConfirmRequest { email, code } = request;
    state.identity.confirm(AccountConfirmation { email, code }).await?;
    Ok(StatusCode::NO_CONTENT)
}
