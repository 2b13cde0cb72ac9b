//! `POST /v1/auth/logout`

use axum::extract::State;
use http::StatusCode;
use service_kit::Result;
use service_kit::extract::Json;
use service_kit::problem::ProblemBody;

use super::refresh::SessionRequest;
use crate::AuthState;

/// Log out
///
/// Ends the session that a refresh token belongs to, whatever the state of the token, and with it every other token of the session.
/// Once more is fine. Access tokens that are out stay valid until they expire.
#[utoipa::path(
    post,
    path = "/v1/auth/logout",
    tag = "auth",
    request_body = SessionRequest,
    responses(
        (status = 204, description = "The session has ended."),
        (status = 400, description = "Broken JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "`invalid_refresh_token`: not a token of any session.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "With Cognito. `identity_forbidden`: the provider takes no requests from here.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "With Cognito. `identity_throttled`, `too_many_attempts`: come back after `Retry-After`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn logout(State(state): State<AuthState>, Json(request): Json<SessionRequest>) -> Result<StatusCode> {
    state.identity.logout(request.refresh_token).await?;
    Ok(StatusCode::NO_CONTENT)
}
