//! `DELETE /v1/documents/{id}`

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use service_kit::Result;
use service_kit::auth::Authenticated;
use service_kit::extract::Path;
use service_kit::problem::{Problem, ProblemBody};
use uuid::Uuid;

use crate::DocumentState;
use crate::queries::documents;
use crate::storage::DocumentKey;

/// How long an answer waits for the object to be gone. The document is deleted for everybody once its row says so; a store that
/// is slow or down is no reason to let the client wait, or to tell it that something failed.
const PATIENCE: Duration = Duration::from_secs(3);

/// Delete a document
///
/// From the answer on nobody can see it. Its bytes are removed at once, or as soon as the object store lets them be.
#[utoipa::path(
    delete,
    path = "/v1/documents/{id}",
    tag = "documents",
    security(("bearer" = [])),
    params(("id" = Uuid, Path, description = "The document's id.")),
    responses(
        (status = 204, description = "Deleted."),
        (status = 400, description = "The id is not a UUID.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "The caller has no such document (any more).", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or the database is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete(
    State(state): State<DocumentState>,
    Authenticated(claims): Authenticated,
    Path(id): Path<Uuid>,
) -> Result<StatusCode> {
    let key = DocumentKey { owner_id: claims.subject, id };
    let hidden = {
        let mut connection = state.pool.acquire().await?;
        documents::begin_deletion(&mut connection, key, state.clock.now()).await?
    };
    if !hidden {
        return Err(Problem::not_found());
    }
    match tokio::time::timeout(PATIENCE, state.removal.spawn_remove(key)).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(error))) => tracing::warn!(document = %id, %error, "a deletion is left to the sweeper"),
        Ok(Err(error)) => tracing::error!(document = %id, %error, "a deletion is left to the sweeper"),
        Err(_elapsed) => tracing::debug!(document = %id, "a deletion goes on after its answer"),
    }
    Ok(StatusCode::NO_CONTENT)
}
