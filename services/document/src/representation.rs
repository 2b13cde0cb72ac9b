//! A document as clients see it.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::queries::documents::Document;

/// Metadata of one document.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Document)]
pub(crate) struct DocumentBody {
    /// `UUIDv7`.
    id: Uuid,
    /// A file name without a path.
    #[schema(max_length = 255, example = "report.pdf")]
    name: String,
    /// As declared at upload. Downloads of types that a browser could run say `application/octet-stream` instead.
    #[schema(max_length = 255, example = "application/pdf")]
    content_type: String,
    /// Length of the content.
    #[schema(minimum = 0)]
    size_bytes: u64,
    /// SHA-256 of the content, in hexadecimal.
    #[schema(min_length = 64, max_length = 64)]
    sha256: String,
    /// When the upload began.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

/// A document's bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "describes bodies that are streams")]
pub(crate) struct FileContent(Vec<u8>);

impl From<Document> for DocumentBody {
    fn from(document: Document) -> Self {
        Self {
            id: document.key.id,
            name: document.name,
            content_type: document.content_type,
            size_bytes: document.size_bytes,
            sha256: hex::encode(document.sha256),
            created_at: document.created_at,
        }
    }
}
