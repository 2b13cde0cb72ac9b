//! The answer of login and refresh.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::IssuedTokens;

/// A session's tokens (RFC 6749 §5.1).
#[derive(Serialize, ToSchema)]
#[schema(as = Tokens)]
pub(crate) struct TokensBody {
    /// For `Authorization: Bearer`; a JWT. It cannot be taken back and outlives a logout until it expires.
    access_token: String,
    /// Always `Bearer`.
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// Seconds until the access token expires.
    #[schema(example = 900)]
    expires_in: u64,
    /// For the next pair; opaque. The local provider's are for one use each. Absent where the provider gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "dr_GcLQ2bPmmPOmU1Mgrz4p8YkKvKtMT9Vp8kO6GgWOhv8")]
    refresh_token: Option<String>,
}

impl IntoResponse for IssuedTokens {
    fn into_response(self) -> Response {
        let body = TokensBody {
            access_token: self.access_token,
            token_type: "Bearer",
            expires_in: self.expires_in.as_secs(),
            refresh_token: self.refresh_token.map(|token| token.as_str().to_owned()),
        };
        // Tokens must not stay in anybody's cache (RFC 6749 §5.1).
        ([(CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(body)).into_response()
    }
}
