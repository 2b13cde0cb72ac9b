//! `GET` and `HEAD /v1/documents/{id}/content`

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use service_kit::Result;
use service_kit::auth::Authenticated;
use service_kit::entity_tag::{IfMatch, IfNoneMatch};
use service_kit::extract::Path;
use service_kit::problem::{Problem, ProblemBody};
use uuid::Uuid;

use crate::DocumentState;
use crate::content_disposition::attachment;
use crate::content_type;
use crate::preconditions::{Validators, Verdict};
use crate::queries::documents::{self, Document};
use crate::range::{self, ByteRange, Selected};
use crate::representation::FileContent;
use crate::storage::{DocumentKey, Download, StorageError};

/// A document's bytes
///
/// Always as an attachment, never to be shown inside a page. One byte range can be asked for; several, or a malformed one, give
/// the whole file. Interrupted downloads go on with `Range` and `If-Range`.
#[utoipa::path(
    get,
    path = "/v1/documents/{id}/content",
    tag = "documents",
    security(("bearer" = [])),
    params(
        ("id" = Uuid, Path, description = "The document's id."),
        ("Range" = Option<String>, Header, description = "`bytes=first-last`, `bytes=first-` or `bytes=-count`. Not for HEAD."),
        ("If-Range" = Option<String>, Header, description = "The `ETag` or `Last-Modified` of the part at hand: otherwise the whole file comes."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of a copy at hand: 304 while it is right."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` that is wanted: 412 for another one."),
    ),
    responses(
        (status = 200, description = "All of it.", content_type = "application/octet-stream", body = FileContent,
            headers(
                ("ETag" = String, description = "Strong: the SHA-256 of the content."),
                ("Last-Modified" = String, description = "When it was uploaded."),
                ("Accept-Ranges" = String, description = "`bytes`"),
                ("Content-Disposition" = String, description = "`attachment`, with the document's name."),
            )),
        (status = 206, description = "The range.", content_type = "application/octet-stream", body = FileContent,
            headers(("Content-Range" = String, description = "`bytes first-last/size`"))),
        (status = 304, description = "The copy at hand is right."),
        (status = 400, description = "The id is not a UUID, or `If-Match` is malformed.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "The caller has no such document.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 412, description = "The content is not the wanted one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 416, description = "The file has no byte in that range; `Content-Range` says how long it is.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn content(
    State(state): State<DocumentState>,
    Authenticated(claims): Authenticated,
    Path(id): Path<Uuid>,
    if_match: IfMatch,
    if_none_match: IfNoneMatch,
    method: Method,
    headers: HeaderMap,
) -> Result<Response> {
    let document = find(&state, DocumentKey { owner_id: claims.subject, id }).await?;
    let validators = Validators::new(hex::encode(document.sha256), document.created_at);
    let selected = match validators.evaluate(&if_match, &if_none_match, &headers) {
        Verdict::NotModified => return Ok((StatusCode::NOT_MODIFIED, cache_headers(&validators)).into_response()),
        Verdict::Failed => return Err(not_the_wanted_one()),
        // Range handling is defined for GET alone (RFC 9110 §14.2).
        Verdict::Proceed if method == Method::GET && validators.range_applies(&headers) => select(&headers, &document)?,
        Verdict::Proceed => None,
    };
    let length = selected.map_or(document.size_bytes, ByteRange::length);
    let body = match selected.or_else(|| whole(document.size_bytes)) {
        Some(range) if method == Method::GET => open(&state, &document, range).await?.into_body(),
        // HEAD, and what is empty, is answered from the row.
        _ => Body::empty(),
    };
    let mut response = (cache_headers(&validators), file_headers(&document, length), body).into_response();
    if let Some(ByteRange { first, last }) = selected {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let content_range = text(&format!("bytes {first}-{last}/{}", document.size_bytes));
        response.headers_mut().insert(CONTENT_RANGE, content_range);
    }
    Ok(response)
}

async fn find(state: &DocumentState, key: DocumentKey) -> Result<Document> {
    let mut connection = state.pool.acquire().await?;
    documents::find(&mut connection, key).await?.ok_or_else(Problem::not_found)
}

/// The part that `Range` asks for, if it asks for one.
fn select(headers: &HeaderMap, document: &Document) -> Result<Option<ByteRange>> {
    let mut values = headers.get_all(RANGE).iter();
    // Two lines would be two ranges.
    let (Some(value), None) = (values.next(), values.next()) else { return Ok(None) };
    match range::select(value.to_str().unwrap_or_default(), document.size_bytes) {
        Selected::Whole => Ok(None),
        Selected::Part(range) => Ok(Some(range)),
        Selected::Unsatisfiable => Err(Problem::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "range_not_satisfiable",
            format!("The file has {} bytes, none of them in this range.", document.size_bytes),
        )
        .with_header(CONTENT_RANGE, text(&format!("bytes */{}", document.size_bytes)))),
    }
}

fn whole(size_bytes: u64) -> Option<ByteRange> {
    size_bytes.checked_sub(1).map(|last| ByteRange { first: 0, last })
}

async fn open(state: &DocumentState, document: &Document, range: ByteRange) -> Result<Download> {
    match Download::open(&state.storage, document.key, range).await {
        Ok(download) => Ok(download),
        Err(error @ StorageError::Missing { .. }) => {
            // It may have been deleted since the row was read. If it was not, something else has taken it.
            find(state, document.key).await?;
            tracing::error!(document = %document.key.id, "the object of a stored document is missing");
            Err(error.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// What a 200 and a 304 have alike (RFC 9110 §15.4.5). `no-cache`: a copy may be kept but must be asked about, so that a deleted
/// document does not live on in caches.
fn cache_headers(validators: &Validators) -> [(HeaderName, HeaderValue); 3] {
    [
        (ETAG, text(&validators.etag())),
        (LAST_MODIFIED, text(&validators.last_modified())),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ]
}

/// What keeps a file from being run in the origin that serves it, whatever it is and whoever made it.
fn file_headers(document: &Document, length: u64) -> [(HeaderName, HeaderValue); 6] {
    [
        (CONTENT_TYPE, content_type::served_as(&document.content_type)),
        (CONTENT_LENGTH, HeaderValue::from(length)),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (CONTENT_DISPOSITION, text(&attachment(&document.name))),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ]
}

/// Everything that is put in here is made of visible ASCII.
fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static(""))
}

fn not_the_wanted_one() -> Problem {
    Problem::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", "The content is not the one that is wanted.")
}
