//! `POST /v1/auth/resend`

use axum::extract::State;
use http::StatusCode;
use service_kit::Result;
use service_kit::extract::Json;
use service_kit::fields::{Fields, FromFields};
use service_kit::problem::ProblemBody;
use utoipa::ToSchema;

use crate::AuthState;
use crate::email::Email;

/// Which account.
#[derive(Debug, ToSchema)]
#[schema(as = CodeRequest)]
pub(crate) struct ResendRequest {
    /// In any form that has the canonical form of the account.
    #[schema(value_type = String, format = Email, example = "ada@example.com")]
    email: Email,
}

impl FromFields for ResendRequest {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        Some(Self { email: fields.required("email", Email::parse)? })
    }
}

/// Send the code once more
///
/// Unknown addresses and confirmed accounts are answered as if a code were on its way.
#[utoipa::path(
    post,
    path = "/v1/auth/resend",
    tag = "auth",
    request_body = ResendRequest,
    responses(
        (status = 204, description = "If there is such an account and it is not confirmed, a code is on its way."),
        (status = 400, description = "Broken JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "`identity_forbidden`: the provider takes no requests from here.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "`confirmation_not_needed`: accounts are not confirmed by a code.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "`identity_throttled`, `too_many_attempts`: come back after `Retry-After`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back. `code_not_delivered`: the code could not be sent.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn resend(State(state): State<AuthState>, Json(request): Json<ResendRequest>) -> Result<StatusCode> {
    state.identity.resend_code(request.email).await?;
    Ok(StatusCode::NO_CONTENT)
}
