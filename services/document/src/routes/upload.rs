//! `POST /v1/documents`

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderName, StatusCode};
use service_kit::Result;
use service_kit::auth::Authenticated;
use service_kit::problem::{Problem, ProblemBody};
use utoipa::ToSchema;

use crate::DocumentState;
use crate::representation::{DocumentBody, FileContent};
use crate::upload::{IncomingFile, Intake};

/// A form with one file.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the form; a reader of its own takes it apart")]
pub(crate) struct UploadForm {
    /// The file, with a `filename`; its `Content-Type` is kept.
    #[schema(value_type = String, format = Binary)]
    file: FileContent,
}

/// Upload a document
///
/// Either `multipart/form-data` with exactly one part, `file`, or the bytes themselves with their `Content-Type` and
/// `?name=`. A length need not be announced. The answer comes when the document is stored for good.
#[utoipa::path(
    post,
    path = "/v1/documents",
    tag = "documents",
    security(("bearer" = [])),
    params(("name" = Option<String>, Query, max_length = 255, description = "The file's name, where the body is the file itself.")),
    request_body(content((UploadForm = "multipart/form-data"), (FileContent = "application/octet-stream"))),
    responses(
        (status = 201, description = "Stored.", body = DocumentBody, headers(("Location" = String, description = "Where its metadata is."))),
        (status = 400, description = "The form is broken, or the body ended early.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one. Nothing of the body is read.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 408, description = "The client fell silent, or the upload took too long.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The file is too large.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The content type is malformed or not understood, or the body has a content encoding.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The name is missing or not valid, or the form is not exactly one file.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back. Nothing was stored.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn upload(
    State(state): State<DocumentState>,
    Authenticated(claims): Authenticated,
    request: Request,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<DocumentBody>)> {
    let (parts, body) = request.into_parts();
    let stored = tokio::time::timeout(state.uploads.timeout, async {
        let file = IncomingFile::open(parts, body, state.uploads.max_bytes).await?;
        Intake::new(&state, claims.subject, file).store().await
    });
    let document = stored.await.map_err(|_elapsed| took_too_long())??;
    let location = format!("/v1/documents/{}", document.key.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(document.into())))
}

fn took_too_long() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "upload_timeout", "The upload took longer than any may.")
}
