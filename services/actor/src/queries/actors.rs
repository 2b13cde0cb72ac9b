//! `actor.actors`.

use service_kit::database::{Connection, DatabaseError, Row};
use time::OffsetDateTime;
use uuid::Uuid;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The token's `sub`.
    pub id: Uuid,
    /// As the newest token states it; none while no token has stated one.
    pub email: Option<String>,
    /// When the token was issued that `email` was taken from.
    pub email_issued_at: Option<OffsetDateTime>,
    /// 1 to 100 code points.
    pub display_name: Option<String>,
    /// First sight.
    pub created_at: OffsetDateTime,
    /// Last change that a client can see.
    pub updated_at: OffsetDateTime,
    /// 1 at first sight, one more with each change.
    pub revision: i64,
}

/// An email and when the token was issued that states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedEmail {
    /// At most 254 bytes, no control characters.
    pub email: String,
    /// The token's `iat`.
    pub issued_at: OffsetDateTime,
}

impl Actor {
    fn from_row(row: &Row) -> Self {
        Self {
            id: row.get("id"),
            email: row.get("email"),
            email_issued_at: row.get("email_issued_at"),
            display_name: row.get("display_name"),
            created_at: row.get("created_at"),
            updated_at: row.get("updated_at"),
            revision: row.get("revision"),
        }
    }
}

/// The actor with this id.
pub async fn find(connection: &mut Connection, id: Uuid) -> Result<Option<Actor>, DatabaseError> {
    let row = connection
        .query_opt(
            "SELECT id, email, email_issued_at, display_name, created_at, updated_at, revision
             FROM actor.actors
             WHERE id = $1",
            &[&id],
        )
        .await?;
    Ok(row.as_ref().map(Actor::from_row))
}

/// Makes the row; none when it exists already, and then nothing is written.
pub async fn insert_if_absent(
    connection: &mut Connection,
    id: Uuid,
    email: Option<&StatedEmail>,
    display_name: Option<&str>,
    now: OffsetDateTime,
) -> Result<Option<Actor>, DatabaseError> {
    let (email, issued_at) = email.map(|stated| (stated.email.as_str(), stated.issued_at)).unzip();
    let row = connection
        .query_opt(
            "INSERT INTO actor.actors (id, email, email_issued_at, display_name, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $5)
             ON CONFLICT (id) DO NOTHING
             RETURNING id, email, email_issued_at, display_name, created_at, updated_at, revision",
            &[&id, &email, &issued_at, &display_name, &now],
        )
        .await?;
    Ok(row.as_ref().map(Actor::from_row))
}

/// Takes over the email of a newer token; none when the row has it already, or has one from a token at least as new.
pub async fn adopt_email(
    connection: &mut Connection,
    id: Uuid,
    stated: &StatedEmail,
    now: OffsetDateTime,
) -> Result<Option<Actor>, DatabaseError> {
    let row = connection
        .query_opt(
            "UPDATE actor.actors
             SET email = $2, email_issued_at = $3, updated_at = GREATEST(updated_at, $4), revision = revision + 1
             WHERE id = $1 AND email IS DISTINCT FROM $2 AND (email_issued_at IS NULL OR email_issued_at < $3)
             RETURNING id, email, email_issued_at, display_name, created_at, updated_at, revision",
            &[&id, &stated.email, &stated.issued_at, &now],
        )
        .await?;
    Ok(row.as_ref().map(Actor::from_row))
}

/// Sets or clears the display name, if the row has one of the `expected` revisions (none: whichever it has). None when
/// it has another, or there is no row.
pub async fn set_display_name(
    connection: &mut Connection,
    id: Uuid,
    display_name: Option<&str>,
    expected: Option<&[i64]>,
    now: OffsetDateTime,
) -> Result<Option<Actor>, DatabaseError> {
    let row = connection
        .query_opt(
            "UPDATE actor.actors
             SET display_name = $2, updated_at = GREATEST(updated_at, $3), revision = revision + 1
             WHERE id = $1 AND ($4::bigint[] IS NULL OR revision = ANY ($4))
             RETURNING id, email, email_issued_at, display_name, created_at, updated_at, revision",
            &[&id, &display_name, &now, &expected],
        )
        .await?;
    Ok(row.as_ref().map(Actor::from_row))
}
