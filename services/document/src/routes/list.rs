//! `GET /v1/documents`

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use service_kit::Result;
use service_kit::auth::Authenticated;
use service_kit::extract::Query;
use service_kit::fields::{Fields, FromFields, Invalid};
use service_kit::problem::{Problem, ProblemBody};
use utoipa::ToSchema;

use crate::DocumentState;
use crate::cursor::Cursor;
use crate::queries::documents;
use crate::representation::DocumentBody;

const DEFAULT_LIMIT: u16 = 20;
const MAX_LIMIT: u16 = 100;

/// Which page.
pub(crate) struct PageRequest {
    limit: u16,
    cursor: Option<String>,
}

impl FromFields for PageRequest {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        let limit = fields.optional("limit", |text| parse_limit(&text));
        let cursor = fields.optional("cursor", Ok);
        Some(Self { limit: limit?.unwrap_or(DEFAULT_LIMIT), cursor: cursor? })
    }
}

fn parse_limit(text: &str) -> Result<u16, Invalid> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = text.parse().ok().filter(|limit| digits && (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| Invalid::new("out_of_range", format!("A whole number from 1 to {MAX_LIMIT}.")))
}

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DocumentPage)]
pub(crate) struct PageBody {
    /// Newest first.
    items: Vec<DocumentBody>,
    /// Gives the next page; null on the last one.
    next_cursor: Option<String>,
}

/// The caller's documents
///
/// Newest first, page by page. A document that is uploaded while somebody pages through appears on no later page, and moves
/// none: a page begins after the last document of the one before.
#[utoipa::path(
    get,
    path = "/v1/documents",
    tag = "documents",
    security(("bearer" = [])),
    params(
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 100, description = "Documents in a page, 1 to 100; 20 by default."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses(
        (status = 200, description = "The page.", body = PageBody),
        (status = 400, description = "The cursor is none of this list's, or the query is malformed.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No access token, or not a valid one.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The limit is not valid.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or a dependency is down; `Retry-After` says when to come back.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(state): State<DocumentState>,
    Authenticated(claims): Authenticated,
    Query(page): Query<PageRequest>,
) -> Result<Json<PageBody>> {
    let owner_id = claims.subject;
    let before = match page.cursor {
        None => None,
        Some(token) => Some(Cursor::decode(&token, owner_id).ok_or_else(not_our_cursor)?.after),
    };
    let mut documents = {
        let mut connection = state.pool.acquire().await?;
        // One more than is shown tells whether there is another page.
        documents::list(&mut connection, owner_id, before, page.limit + 1).await?
    };
    let has_more = documents.len() > usize::from(page.limit);
    documents.truncate(page.limit.into());
    let last = documents.last().filter(|_| has_more);
    let next_cursor = last.map(|document| Cursor { after: document.key.id }.encode(owner_id));
    Ok(Json(PageBody { items: documents.into_iter().map(DocumentBody::from).collect(), next_cursor }))
}

fn not_our_cursor() -> Problem {
    Problem::bad_request("invalid_cursor", "The cursor is none that this list has given.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_plain_number_in_range() {
        assert_eq!(parse_limit("1"), Ok(1));
        assert_eq!(parse_limit("100"), Ok(100));
        assert_eq!(parse_limit("007"), Ok(7));
        for text in ["", "0", "101", "-1", "+1", "1e3", "1.0", " 1", "9223372036854775808", "٣", "\0"] {
            assert_eq!(parse_limit(text).map_err(|invalid| invalid.code), Err("out_of_range"), "{text:?}");
        }
    }
}
