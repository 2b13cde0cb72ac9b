//! What all descriptions of the API have alike.

use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

/// Adds the security scheme `bearer`, which the routes that take [`crate::auth::Authenticated`] name.
#[must_use]
pub fn with_bearer(mut description: OpenApi) -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    description
}
