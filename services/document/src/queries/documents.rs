//! `document.documents`: see the migration for what the states mean.

use std::collections::HashSet;

use service_kit::database::{Connection, DatabaseError, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::storage::DocumentKey;

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Whose it is, and which.
    pub key: DocumentKey,
    /// A file name without a path.
    pub name: String,
    /// As declared by the uploader.
    pub content_type: String,
    /// Length of the content.
    pub size_bytes: u64,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
    /// When its upload began.
    pub created_at: OffsetDateTime,
}

/// A document whose bytes are about to be sent to the object store.
#[derive(Debug, Clone, Copy)]
pub struct NewDocument<'a> {
    /// Whose it is, and which.
    pub key: DocumentKey,
    /// A file name without a path, 1 to 255 bytes.
    pub name: &'a str,
    /// A media type, 1 to 255 bytes.
    pub content_type: &'a str,
    /// Now, in whole milliseconds.
    pub created_at: OffsetDateTime,
}

/// Announces an upload: a `pending` row.
pub async fn insert_pending(connection: &mut Connection, new: &NewDocument<'_>) -> Result<(), DatabaseError> {
    connection
        .execute(
            "INSERT INTO document.documents (owner_id, id, state, name, content_type, created_at, state_changed_at)
             VALUES ($1, $2, 'pending', $3, $4, $5, $5)",
            &[&new.key.owner_id, &new.key.id, &new.name, &new.content_type, &new.created_at],
        )
        .await?;
    Ok(())
}

/// Makes an upload visible: this is the moment from which the document must not be lost. `None` where the row is not pending
/// any more, because somebody gave the upload up.
pub async fn mark_stored(
    connection: &mut Connection,
    key: DocumentKey,
    size_bytes: u64,
    sha256: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Option<Document>, DatabaseError> {
    let size_bytes = i64::try_from(size_bytes).unwrap_or(i64::MAX);
    let row = connection
        .query_opt(
            "UPDATE document.documents
             SET state = 'stored', size_bytes = $3, sha256 = $4, state_changed_at = $5
             WHERE owner_id = $1 AND id = $2 AND state = 'pending'
             RETURNING owner_id, id, name, content_type, size_bytes, sha256, created_at",
            &[&key.owner_id, &key.id, &size_bytes, &&sha256[..], &now],
        )
        .await?;
    Ok(row.as_ref().map(document))
}

/// Gives an upload up: whether there was a pending row. A stored one stays, whatever its uploader believes.
pub async fn discard_pending(connection: &mut Connection, key: DocumentKey) -> Result<bool, DatabaseError> {
    let deleted = connection
        .execute(
            "DELETE FROM document.documents WHERE owner_id = $1 AND id = $2 AND state = 'pending'",
            &[&key.owner_id, &key.id],
        )
        .await?;
    Ok(deleted > 0)
}

/// A stored document of its owner.
pub async fn find(connection: &mut Connection, key: DocumentKey) -> Result<Option<Document>, DatabaseError> {
    let row = connection
        .query_opt(
            "SELECT owner_id, id, name, content_type, size_bytes, sha256, created_at
             FROM document.documents
             WHERE owner_id = $1 AND id = $2 AND state = 'stored'",
            &[&key.owner_id, &key.id],
        )
        .await?;
    Ok(row.as_ref().map(document))
}

/// At most `limit` stored documents of an owner, newest first, older than `before` where that is given.
pub async fn list(
    connection: &mut Connection,
    owner_id: Uuid,
    before: Option<Uuid>,
    limit: u16,
) -> Result<Vec<Document>, DatabaseError> {
    // Always a comparison: `$2 IS NULL OR ...` would keep a prepared statement from ending its index scan there.
    let before = before.unwrap_or(Uuid::max());
    let rows = connection
        .query(
            "SELECT owner_id, id, name, content_type, size_bytes, sha256, created_at
             FROM document.documents
             WHERE owner_id = $1 AND id < $2 AND state = 'stored'
             ORDER BY id DESC
             LIMIT $3",
            &[&owner_id, &before, &i64::from(limit)],
        )
        .await?;
    Ok(rows.iter().map(document).collect())
}

/// Takes a stored document out of sight: whether there was one.
pub async fn begin_deletion(
    connection: &mut Connection,
    key: DocumentKey,
    now: OffsetDateTime,
) -> Result<bool, DatabaseError> {
    let changed = connection
        .execute(
            "UPDATE document.documents SET state = 'deleting', state_changed_at = $3
             WHERE owner_id = $1 AND id = $2 AND state = 'stored'",
            &[&key.owner_id, &key.id, &now],
        )
        .await?;
    Ok(changed > 0)
}

/// Forgets a document whose object is gone: whether there was such a row.
pub async fn finish_deletion(connection: &mut Connection, key: DocumentKey) -> Result<bool, DatabaseError> {
    let deleted = connection
        .execute(
            "DELETE FROM document.documents WHERE owner_id = $1 AND id = $2 AND state = 'deleting'",
            &[&key.owner_id, &key.id],
        )
        .await?;
    Ok(deleted > 0)
}

/// Which leftovers a sweeper takes on.
#[derive(Debug, Clone, Copy)]
pub struct Leftovers {
    /// Uploads that began before this have been given up by everybody.
    pub pending_before: OffsetDateTime,
    /// Deletions that nobody has worked on since.
    pub deleting_before: OffsetDateTime,
}

/// Turns old pending rows and untouched deleting rows into `deleting` ones of this moment, at most `limit`, and returns them.
/// Rows that another sweeper is claiming are passed over; after this nobody else takes them on until they are old again.
pub async fn claim_leftovers(
    connection: &mut Connection,
    leftovers: Leftovers,
    now: OffsetDateTime,
    limit: u16,
) -> Result<Vec<DocumentKey>, DatabaseError> {
    let rows = connection
        .query(
            "UPDATE document.documents AS d
             SET state = 'deleting', state_changed_at = $3
             FROM (
                 SELECT owner_id, id
                 FROM document.documents
                 WHERE state <> 'stored'
                   AND (state = 'pending' AND state_changed_at < $1 OR state = 'deleting' AND state_changed_at < $2)
                 ORDER BY state_changed_at
                 LIMIT $4
                 FOR UPDATE SKIP LOCKED
             ) AS claimed
             WHERE d.owner_id = claimed.owner_id AND d.id = claimed.id
             RETURNING d.owner_id, d.id",
            &[&leftovers.pending_before, &leftovers.deleting_before, &now, &i64::from(limit)],
        )
        .await?;
    Ok(rows.iter().map(key).collect())
}

/// Those of `keys` that have a row, in whatever state.
pub async fn with_rows(
    connection: &mut Connection,
    keys: &[DocumentKey],
) -> Result<HashSet<DocumentKey>, DatabaseError> {
    let (owners, ids): (Vec<_>, Vec<_>) = keys.iter().map(|key| (key.owner_id, key.id)).unzip();
    let rows = connection
        .query(
            "SELECT d.owner_id, d.id
             FROM unnest($1::uuid[], $2::uuid[]) AS asked (owner_id, id)
             JOIN document.documents AS d ON d.owner_id = asked.owner_id AND d.id = asked.id",
            &[&owners, &ids],
        )
        .await?;
    Ok(rows.iter().map(key).collect())
}

fn key(row: &Row) -> DocumentKey {
    DocumentKey { owner_id: row.get("owner_id"), id: row.get("id") }
}

/// Columns of a stored row: a constraint keeps length and hash from being null.
fn document(row: &Row) -> Document {
    let size_bytes: i64 = row.get("size_bytes");
    let sha256: &[u8] = row.get("sha256");
    Document {
        key: key(row),
        name: row.get("name"),
        content_type: row.get("content_type"),
        size_bytes: u64::try_from(size_bytes).unwrap_or_default(),
        sha256: sha256.try_into().unwrap_or_default(),
        created_at: row.get("created_at"),
    }
}
