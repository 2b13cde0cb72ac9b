//! The OpenAPI 3.1 description, made from the handlers' annotations.

use service_kit::openapi::with_bearer;
use utoipa::OpenApi;

use crate::routes;

#[derive(OpenApi)]
#[openapi(
    info(title = "Datum: auth", description = "Accounts, sessions, and the keys that access tokens are verified with."),
    paths(
        routes::register::register,
        routes::confirm::confirm,
        routes::resend::resend,
        routes::login::login,
        routes::refresh::refresh,
        routes::logout::logout,
        routes::password::password,
        routes::jwks::jwks
    ),
    tags((name = "auth", description = "Register, log in, stay logged in, log out."))
)]
struct Description;

/// The service's OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    with_bearer(Description::openapi())
}
