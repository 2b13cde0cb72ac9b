//! The OpenAPI 3.1 description, made from the handlers' annotations.

use service_kit::openapi::with_bearer;
use utoipa::OpenApi;

use crate::routes;

#[derive(OpenApi)]
#[openapi(
    info(title = "Datum: actor", description = "Get-user: who the caller is, and their profile."),
    paths(routes::get_me::get_me, routes::get_actor::get_actor, routes::update_me::update_me),
    tags((name = "actors", description = "People, as the services know them."))
)]
struct Description;

/// The service's OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    with_bearer(Description::openapi())
}
