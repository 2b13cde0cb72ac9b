//! `auth.login_failures`.

use service_kit::database::{Connection, DatabaseError};
use time::OffsetDateTime;

use super::users::UserRow;
use crate::email::Email;
use crate::throttle::{MAX_DELAY, THRESHOLD, ThrottleKey, WINDOW};

/// What became of an attempt.
#[derive(Debug)]
pub enum Attempt {
    /// It may go on, and has been counted.
    Admitted(Option<UserRow>),
    /// It may not, until then.
    Refused {
        /// An attempt at this time or later is admitted.
        until: OffsetDateTime,
    },
}

/// Counts an attempt as a failure, before anything is known about it, and looks the account up in the same round trip (pass no
/// email where that is not needed).
///
/// One upsert, so that parallel attempts queue for the row and each sees what the one before it left: of any number at once no
/// more are admitted than one after the other would be. Below [`THRESHOLD`] every attempt is admitted. From there on one is
/// refused, which sets `blocked_until`; when that has passed, the next is admitted, which clears it.
pub async fn admit(
    connection: &mut Connection,
    key: &ThrottleKey,
    email: Option<&Email>,
    now: OffsetDateTime,
) -> Result<Attempt, DatabaseError> {
    const SQL: &str = "
        WITH attempt AS (
            INSERT INTO auth.login_failures AS f (key, failures, window_started_at)
            VALUES ($1, 1, $2)
            ON CONFLICT (key) DO UPDATE SET
                failures = CASE
                    WHEN f.window_started_at <= $3 THEN 1
                    WHEN f.failures < $4 OR f.blocked_until <= $2 THEN f.failures + 1
                    ELSE f.failures
                END,
                window_started_at = CASE WHEN f.window_started_at <= $3 THEN $2 ELSE f.window_started_at END,
                blocked_until = CASE
                    WHEN f.window_started_at <= $3 OR f.failures < $4 OR f.blocked_until <= $2 THEN NULL
                    ELSE coalesce(
                        f.blocked_until,
                        $2 + make_interval(secs => least($5::float8, power(2, least(f.failures - $4, 30))))
                    )
                END
            RETURNING blocked_until
        )
        SELECT attempt.blocked_until, u.id, u.email, u.password_hash, u.display_name, u.scopes, u.disabled_at
          FROM attempt LEFT JOIN auth.users u ON u.email = $6";
    let window_began_after = now - WINDOW;
    let row = connection
        .query_one(
            SQL,
            &[
                &key.as_bytes(),
                &now,
                &window_began_after,
                &THRESHOLD,
                &MAX_DELAY.as_secs_f64(),
                &email.map(Email::as_str),
            ],
        )
        .await?;
    if let Some(until) = row.get("blocked_until") {
        return Ok(Attempt::Refused { until });
    }
    let known = row.get::<_, Option<uuid::Uuid>>("id").is_some();
    Ok(Attempt::Admitted(known.then(|| UserRow::from_row(&row))))
}

/// Gives an admitted attempt back that was not judged because something here was busy: the next one is admitted as this was.
pub async fn give_back(
    connection: &mut Connection,
    key: &ThrottleKey,
    now: OffsetDateTime,
) -> Result<(), DatabaseError> {
    const SQL: &str = "
        UPDATE auth.login_failures
           SET failures = failures - 1, blocked_until = CASE WHEN failures - 1 >= $2 THEN $3::timestamptz END
         WHERE key = $1 AND failures > 0";
    connection.execute(SQL, &[&key.as_bytes(), &THRESHOLD, &now]).await?;
    Ok(())
}

/// Removes up to `limit` rows whose window has passed, other than those somebody is using; returns how many.
pub async fn delete_passed(connection: &mut Connection, now: OffsetDateTime, limit: i64) -> Result<u64, DatabaseError> {
    const SQL: &str = "
        DELETE FROM auth.login_failures WHERE key IN (
            SELECT key FROM auth.login_failures WHERE window_started_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
        )";
    connection.execute(SQL, &[&(now - WINDOW), &limit]).await
}
