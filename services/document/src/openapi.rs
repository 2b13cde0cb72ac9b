//! The OpenAPI 3.1 description, made from the handlers' annotations.

use service_kit::openapi::with_bearer;
use utoipa::OpenApi;

use crate::routes;

#[derive(OpenApi)]
#[openapi(
    info(title = "Datum: document", description = "Upload to the object store, list, download, delete."),
    paths(
        routes::upload::upload,
        routes::list::list,
        routes::metadata::metadata,
        routes::content::content,
        routes::delete::delete,
    ),
    tags((name = "documents", description = "Files, each of one person."))
)]
struct Description;

/// The service's OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    with_bearer(Description::openapi())
}
