//! `GET /v1/documents/{id}`

use axum::Json;
use axum::extract::State;
use service_kit::Result;
use service_kit::auth::Authenticated;
use service_kit::extract::Path;
use service_kit::problem::{Problem, ProblemBody};
use uuid::Uuid;

use crate::DocumentState;
use crate::queries::documents;
use crate::representation::DocumentBody;
use crate::storage::DocumentKey;

/// What is known about a document
///
/// Somebody else's document is not there.
#[utoipa::path(
    get,
    path = "/v1/documents/{id}",
    tag = "documents",
    security(("bearer" = [])),
    params(("id" = Uuid, Path, description = "The document's id.")),
    responses(
        (status = 200, description = "The metadata.", body = DocumentBody),
        (status = 400, description = "The id is not a UUID.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "The caller has no such document.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn metadata(
    State(state): State<DocumentState>,
    Authenticated(claims): Authenticated,
    Path(id): Path<Uuid>,
) -> Result<Json<DocumentBody>> {
    let mut connection = state.pool.acquire().await?;
    let found = documents::find(&mut connection, DocumentKey { owner_id: claims.subject, id }).await?;
    found.map(|document| Json(document.into())).ok_or_else(Problem::not_found)
}
