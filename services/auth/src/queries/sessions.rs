//! `auth.refresh_families` and `auth.refresh_tokens`, and what ends them.
//!
//! Locks are taken in one order everywhere: user, token, family. A refresh holds its token and family and no user; whatever
//! ends families writes the user first, or touches families alone. So no two of these can wait for each other.

use std::time::Duration;

use service_kit::database::{Connection, DatabaseError};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::hashing::PasswordHash;
use crate::refresh_token::TokenHash;
use crate::throttle::ThrottleKey;

/// A session to be.
#[derive(Debug)]
pub struct NewSession<'a> {
    /// Whose.
    pub user_id: Uuid,
    /// The hash that the password was verified against.
    pub verified: &'a PasswordHash,
    /// The hash to replace it with, where it has become outdated.
    pub upgrade: Option<&'a PasswordHash>,
    /// UUIDv7.
    pub family_id: Uuid,
    /// Its first token.
    pub token_hash: TokenHash,
    /// The time of the login.
    pub now: OffsetDateTime,
    /// The end of the session.
    pub expires_at: OffsetDateTime,
    /// Failures to forget, the login having succeeded.
    pub failures: Option<ThrottleKey>,
}

/// Begins a session if the user still is what was verified: not disabled, and with the same password hash. `false` if not, and
/// then nothing is changed.
///
/// The row lock makes this and a password change wait for each other: either the change sees the new family and ends it, or
/// this sees the new hash. Without an upgrade the lock is shared, so that logins of one user do not queue.
pub async fn start(connection: &mut Connection, session: &NewSession<'_>) -> Result<bool, DatabaseError> {
    const SQL: &str = "
        WITH verified AS (
            SELECT id FROM auth.users WHERE id = $1 AND password_hash = $2 AND disabled_at IS NULL FOR SHARE
        ), forgotten AS (
            DELETE FROM auth.login_failures WHERE key = $3 AND EXISTS (SELECT FROM verified)
        ), family AS (
            INSERT INTO auth.refresh_families (id, user_id, created_at, expires_at) SELECT $4, id, $5, $6 FROM verified
        )
        INSERT INTO auth.refresh_tokens (token_hash, family_id, created_at, expires_at)
        SELECT $7, $4, $5, $6 FROM verified";
    // Two that hold a shared lock and want to write would wait for each other: here the write comes first.
    const SQL_WITH_UPGRADE: &str = "
        WITH verified AS (
            UPDATE auth.users SET password_hash = $8
             WHERE id = $1 AND password_hash = $2 AND disabled_at IS NULL RETURNING id
        ), forgotten AS (
            DELETE FROM auth.login_failures WHERE key = $3 AND EXISTS (SELECT FROM verified)
        ), family AS (
            INSERT INTO auth.refresh_families (id, user_id, created_at, expires_at) SELECT $4, id, $5, $6 FROM verified
        )
        INSERT INTO auth.refresh_tokens (token_hash, family_id, created_at, expires_at)
        SELECT $7, $4, $5, $6 FROM verified";
    let NewSession { user_id, verified, upgrade, family_id, token_hash, now, expires_at, failures } = session;
    let (verified, key, token_hash) = (verified.as_str(), failures.map(|key| key.as_bytes().to_vec()), &token_hash[..]);
    let inserted = match upgrade.map(PasswordHash::as_str) {
        None => connection.execute(SQL, &[user_id, &verified, &key, family_id, now, expires_at, &token_hash]).await?,
        Some(upgrade) => {
            connection
                .execute(
                    SQL_WITH_UPGRADE,
                    &[user_id, &verified, &key, family_id, now, expires_at, &token_hash, &upgrade],
                )
                .await?
        }
    };
    Ok(inserted == 1)
}

/// What became of a refresh token that somebody presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// First use: exchanged for a child.
    Rotated,
    /// Another use within the grace period: exchanged for another child.
    Grace,
    /// Used again later: the family is ended.
    Reused,
    /// Its family was ended before.
    Revoked,
    /// Its family's time is over.
    Expired,
    /// Its user is disabled, or gone.
    UserUnavailable,
}

impl Verdict {
    fn parse(text: &str) -> Self {
        match text {
            "rotated" => Self::Rotated,
            "grace" => Self::Grace,
            "reused" => Self::Reused,
            "revoked" => Self::Revoked,
            "expired" => Self::Expired,
            _ => Self::UserUnavailable,
        }
    }

    /// Whether the child is usable.
    #[must_use]
    pub fn is_good(self) -> bool {
        matches!(self, Self::Rotated | Self::Grace)
    }
}

/// A verdict, and who the session belongs to.
#[derive(Debug)]
pub struct Rotation {
    /// The verdict.
    pub verdict: Verdict,
    /// The family.
    pub family_id: Uuid,
    /// Its user.
    pub user_id: Uuid,
    /// The user's address; empty when the user is gone.
    pub email: String,
    /// As given at registration.
    pub display_name: Option<String>,
    /// Scopes beyond everybody's.
    pub scopes: Vec<String>,
}

/// Exchanges a refresh token for `child`, or says why not. `None`: no such token.
///
/// One statement. It locks the token and its family and judges them as they are *then*: PostgreSQL reads rows anew that another
/// transaction changed while the lock was waited for. A logout or a password change that commits first is therefore seen,
/// and one that commits later finds the child's family and ends it; of parallel uses of one token exactly one is the first.
pub async fn rotate(
    connection: &mut Connection,
    token: &TokenHash,
    child: &TokenHash,
    now: OffsetDateTime,
    grace: Duration,
) -> Result<Option<Rotation>, DatabaseError> {
    const SQL: &str = "
        WITH found AS (
            SELECT t.token_hash, t.first_used_at, f.id AS family_id, f.user_id, f.expires_at, f.revoked_at
              FROM auth.refresh_tokens t JOIN auth.refresh_families f ON f.id = t.family_id
             WHERE t.token_hash = $1
               FOR UPDATE OF t, f
        ), judged AS (
            SELECT found.token_hash, found.family_id, found.user_id, found.expires_at,
                   u.email, u.display_name, u.scopes,
                   CASE
                       WHEN found.revoked_at IS NOT NULL THEN 'revoked'
                       WHEN found.expires_at <= $3 THEN 'expired'
                       WHEN u.id IS NULL OR u.disabled_at IS NOT NULL THEN 'user_unavailable'
                       WHEN found.first_used_at IS NULL THEN 'rotated'
                       WHEN found.first_used_at > $4 THEN 'grace'
                       ELSE 'reused'
                   END AS verdict
              FROM found LEFT JOIN auth.users u ON u.id = found.user_id
        ), used AS (
            UPDATE auth.refresh_tokens t SET first_used_at = $3
              FROM judged WHERE t.token_hash = judged.token_hash AND judged.verdict = 'rotated'
        ), child AS (
            INSERT INTO auth.refresh_tokens (token_hash, family_id, parent_hash, created_at, expires_at)
            SELECT $2, family_id, token_hash, $3, expires_at FROM judged WHERE verdict IN ('rotated', 'grace')
        ), ended AS (
            UPDATE auth.refresh_families f SET revoked_at = $3, revoke_reason = 'reuse'
              FROM judged WHERE f.id = judged.family_id AND judged.verdict = 'reused'
        )
        SELECT verdict, family_id, user_id, coalesce(email, '') AS email, display_name,
               coalesce(scopes, '{}') AS scopes
          FROM judged";
    let grace_began_after = now - grace;
    let row = connection.query_opt(SQL, &[&&token[..], &&child[..], &now, &grace_began_after]).await?;
    Ok(row.map(|row| Rotation {
        verdict: Verdict::parse(row.get("verdict")),
        family_id: row.get("family_id"),
        user_id: row.get("user_id"),
        email: row.get("email"),
        display_name: row.get("display_name"),
        scopes: row.get("scopes"),
    }))
}

/// Ends the family of a token, whatever the token's and the family's state. `false`: no such token.
pub async fn end_family(
    connection: &mut Connection,
    token: &TokenHash,
    now: OffsetDateTime,
) -> Result<bool, DatabaseError> {
    const SQL: &str = "
        WITH token AS (
            SELECT family_id FROM auth.refresh_tokens WHERE token_hash = $1
        ), ended AS (
            UPDATE auth.refresh_families f SET revoked_at = $2, revoke_reason = 'logout'
              FROM token WHERE f.id = token.family_id AND f.revoked_at IS NULL
        )
        SELECT FROM token";
    Ok(connection.query_opt(SQL, &[&&token[..], &now]).await?.is_some())
}

/// Sets a new password hash if the old one is still `verified`, and ends all the user's sessions. `false` if it is not (or the user
/// is disabled or gone), and then nothing is changed.
///
/// Two statements in one transaction, not one: the second must see families that logins committed while the first waited for
/// the user's row.
pub async fn change_password(
    connection: &mut Connection,
    user_id: Uuid,
    verified: &PasswordHash,
    new: &PasswordHash,
    failures: Option<&ThrottleKey>,
    now: OffsetDateTime,
) -> Result<bool, DatabaseError> {
    const SET: &str = "
        UPDATE auth.users SET password_hash = $3 WHERE id = $1 AND password_hash = $2 AND disabled_at IS NULL";
    const END_SESSIONS: &str = "
        WITH forgotten AS (
            DELETE FROM auth.login_failures WHERE key = $3
        )
        UPDATE auth.refresh_families SET revoked_at = $2, revoke_reason = 'password_changed'
         WHERE user_id = $1 AND revoked_at IS NULL";
    let mut transaction = connection.transaction().await?;
    if transaction.execute(SET, &[&user_id, &verified.as_str(), &new.as_str()]).await? == 0 {
        return Ok(false);
    }
    let key = failures.map(|key| key.as_bytes().to_vec());
    transaction.execute(END_SESSIONS, &[&user_id, &now, &key]).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Removes up to `limit` tokens and up to `limit` families that expired before `before`; returns how many rows in all. Rows that
/// somebody is using are left for the next time.
pub async fn delete_expired(
    connection: &mut Connection,
    before: OffsetDateTime,
    limit: i64,
) -> Result<u64, DatabaseError> {
    // Two statements that lock one table each: a refresh locks a token, then its family.
    const TOKENS: &str = "
        DELETE FROM auth.refresh_tokens WHERE token_hash IN (
            SELECT token_hash FROM auth.refresh_tokens WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
        )";
    const FAMILIES: &str = "
        DELETE FROM auth.refresh_families WHERE id IN (
            SELECT id FROM auth.refresh_families WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
        )";
    let tokens = connection.execute(TOKENS, &[&before, &limit]).await?;
    Ok(tokens + connection.execute(FAMILIES, &[&before, &limit]).await?)
}
