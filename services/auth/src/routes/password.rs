//! `POST /v1/auth/password`

use axum::extract::State;
use http::StatusCode;
use service_kit::Result;
use service_kit::auth::{Authenticated, PresentedToken};
use service_kit::context::ClientAddress;
use service_kit::extract::Json;
use service_kit::fields::{Fields, FromFields};
use service_kit::problem::ProblemBody;
use utoipa::ToSchema;

use crate::AuthState;
use crate::identity::PasswordChange;
use crate::password::Password;

/// The old one and the new one.
#[derive(Debug, ToSchema)]
#[schema(as = PasswordChange)]
pub(crate) struct PasswordRequest {
    /// The password as it is.
    #[schema(value_type = String, format = Password, example = "correct horse battery")]
    current_password: Option<Password>,
    /// Another one, under the rules of registration.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 128, example = "staple of another kind")]
    new_password: Password,
}

impl FromFields for PasswordRequest {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        let current_password = fields.required("current_password", |text| Ok(Password::attempt(text)));
        let new_password = fields.required("new_password", Password::new);
        Some(Self { current_password: current_password?, new_password: new_password? })
    }
}

/// Change the password
///
/// Ends all the user's sessions, the caller's own included. Wrong attempts are counted and slowed down as at login.
#[utoipa::path(
    post,
    path = "/v1/auth/password",
    tag = "auth",
    security(("bearer" = [])),
    request_body = PasswordRequest,
    responses(
        (status = 204, description = "The password is changed; log in again."),
        (status = 400, description = "Broken JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one; or `account_unavailable`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "`current_password_wrong`; with Cognito also `identity_forbidden`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "`too_many_attempts`, with Cognito `identity_throttled`: the next attempt is admitted after `Retry-After`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 502, description = "With Cognito `sessions_not_ended`: the password is changed, old sessions may go on.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn password(
    State(state): State<AuthState>,
    Authenticated(caller): Authenticated,
    access_token: PresentedToken,
    ClientAddress(client): ClientAddress,
    Json(request): Json<PasswordRequest>,
) -> Result<StatusCode> {
    let PasswordRequest { current_password: current, new_password: new } = request;
    state.identity.change_password(PasswordChange { caller, access_token, current, new, client }).await?;
    Ok(StatusCode::NO_CONTENT)
}
