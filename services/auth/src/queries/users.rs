//! `auth.users`.

use service_kit::database::{Connection, DatabaseError, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::email::Email;
use crate::hashing::PasswordHash;

/// The constraint that makes an address belong to one account.
pub const EMAIL_KEY: &str = "users_email_key";

/// An account.
#[derive(Debug, Clone)]
pub struct UserRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Canonical.
    pub email: String,
    /// PHC string.
    pub password_hash: PasswordHash,
    /// As given at registration.
    pub display_name: Option<String>,
    /// Scopes beyond everybody's.
    pub scopes: Vec<String>,
    /// Whether an operator has locked the account.
    pub disabled: bool,
}

impl UserRow {
    /// Reads the columns `id`, `email`, `password_hash`, `display_name`, `scopes`, `disabled_at`.
    pub(super) fn from_row(row: &Row) -> Self {
        Self {
            id: row.get("id"),
            email: row.get("email"),
            password_hash: PasswordHash::from_stored(row.get("password_hash")),
            display_name: row.get("display_name"),
            scopes: row.get("scopes"),
            disabled: row.get::<_, Option<OffsetDateTime>>("disabled_at").is_some(),
        }
    }
}

/// An account to be.
#[derive(Debug)]
pub struct NewUser<'a> {
    /// UUIDv7.
    pub id: Uuid,
    /// Canonical.
    pub email: &'a Email,
    /// PHC string.
    pub password_hash: &'a PasswordHash,
    /// Normalised.
    pub display_name: Option<&'a str>,
    /// The time of registration.
    pub created_at: OffsetDateTime,
}

/// Adds an account; gives `created_at` as it was stored (microseconds). A taken address violates [`EMAIL_KEY`].
pub async fn insert(connection: &mut Connection, user: &NewUser<'_>) -> Result<OffsetDateTime, DatabaseError> {
    const SQL: &str = "
        INSERT INTO auth.users (id, email, password_hash, display_name, created_at)
        VALUES ($1, $2, $3, $4, $5)
        RETURNING created_at";
    let row = connection
        .query_one(
            SQL,
            &[&user.id, &user.email.as_str(), &user.password_hash.as_str(), &user.display_name, &user.created_at],
        )
        .await?;
    Ok(row.get("created_at"))
}

/// Whether an address is taken.
pub async fn exists(connection: &mut Connection, email: &Email) -> Result<bool, DatabaseError> {
    const SQL: &str = "SELECT FROM auth.users WHERE email = $1";
    Ok(connection.query_opt(SQL, &[&email.as_str()]).await?.is_some())
}

/// The account of an address.
pub async fn find_by_email(connection: &mut Connection, email: &Email) -> Result<Option<UserRow>, DatabaseError> {
    const SQL: &str = "
        SELECT id, email, password_hash, display_name, scopes, disabled_at FROM auth.users WHERE email = $1";
    Ok(connection.query_opt(SQL, &[&email.as_str()]).await?.as_ref().map(UserRow::from_row))
}

/// The account of an id.
pub async fn find_by_id(connection: &mut Connection, id: Uuid) -> Result<Option<UserRow>, DatabaseError> {
    const SQL: &str = "
        SELECT id, email, password_hash, display_name, scopes, disabled_at FROM auth.users WHERE id = $1";
    Ok(connection.query_opt(SQL, &[&id]).await?.as_ref().map(UserRow::from_row))
}
