//! `POST /v1/auth/refresh`

use axum::extract::State;
use service_kit::Result;
use service_kit::extract::Json;
use service_kit::fields::{Fields, FromFields};
use service_kit::problem::ProblemBody;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::tokens::TokensBody;
use crate::AuthState;
use crate::identity::IssuedTokens;

/// Which session.
#[derive(ToSchema)]
#[schema(as = SessionToken)]
pub(crate) struct SessionRequest {
    /// As given by login or refresh.
    #[schema(value_type = String, example = "dr_GcLQ2bPmmPOmU1Mgrz4p8YkKvKtMT9Vp8kO6GgWOhv8")]
    pub(super) refresh_token: Zeroizing<String>,
}

impl FromFields for SessionRequest {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        Some(Self { refresh_token: fields.required("refresh_token", |text| Ok(Zeroizing::new(text)))? })
    }
}

/// Refresh a session
///
/// Exchanges a refresh token for the next pair. Each is for one use; within 10 s of it the same token gives another usable pair
/// (the answer was lost, or two tabs ask at once). Later use is taken for theft and ends the session.
#[utoipa::path(
    post,
    path = "/v1/auth/refresh",
    tag = "auth",
    request_body = SessionRequest,
    responses(
        (status = 200, description = "The session's next tokens.", body = TokensBody),
        (status = 400, description = "Broken JSON.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "`invalid_refresh_token`: unknown, used, expired, or of a session that has ended.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 403, description = "With Cognito. `identity_forbidden`: the provider takes no requests from here.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is larger than 16 KiB.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not `application/json`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A field is missing, unknown or not valid; each is named.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "With Cognito. `identity_throttled`, `too_many_attempts`: come back after `Retry-After`.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn refresh(
    State(state): State<AuthState>,
    Json(request): Json<SessionRequest>,
) -> Result<IssuedTokens> {
    Ok(state.identity.refresh(request.refresh_token).await?)
}
