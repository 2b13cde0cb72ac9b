//! `GET /.well-known/jwks.json`

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use service_kit::Result;
use service_kit::auth::jwk::Jwks;
use service_kit::problem::{Problem, ProblemBody};

use crate::AuthState;

/// How long a copy may be used. A new key must be published for this long before it signs.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// The issuer's public keys
///
/// Access tokens are signed by the first; tokens of any of them are valid.
#[utoipa::path(
    get,
    path = "/.well-known/jwks.json",
    tag = "auth",
    responses(
        (status = 200, description = "A JWK set (RFC 7517).", body = Jwks),
        (status = 404, description = "With Cognito: the pool publishes its keys itself.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn jwks(State(state): State<AuthState>) -> Result<impl IntoResponse> {
    let jwks = state.jwks.as_deref().ok_or_else(Problem::not_found)?;
    Ok(([(CACHE_CONTROL, CACHE)], Json(jwks.clone())))
}
