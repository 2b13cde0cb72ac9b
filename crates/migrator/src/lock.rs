//! One migrator at a time in a database.
//!
//! The lock is polled. A session that waits inside `pg_advisory_lock` holds a snapshot, and `CREATE INDEX CONCURRENTLY`
//! in the session that has the lock waits for every snapshot: the two would deadlock (seen in
//! element-hq/matrix-authentication-service#5298).

use std::time::{Duration, Instant};

use sqlx::{PgConnection, Row};

use crate::{
    Progress,
    error::{Doing, MigrateError},
};

/// Any number no other program uses for an advisory lock in this database: the bytes of `datum`.
const KEY: i64 = 0x0064_6174_756d;

const POLL: Duration = Duration::from_millis(100);

/// Takes the lock for the session, or says who has it after `patience`.
pub(crate) async fn acquire(
    connection: &mut PgConnection,
    patience: Duration,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<(), MigrateError> {
    let start = Instant::now();
    let mut reported = false;
    loop {
        let taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
            .bind(KEY)
            .fetch_one(&mut *connection)
            .await
            .doing("taking the migration lock")?;
        if taken {
            return Ok(());
        }
        let waited = start.elapsed();
        if waited >= patience {
            return Err(MigrateError::Locked { waited, holder: holder(connection).await });
        }
        if !reported {
            progress(Progress::Waiting { at_most: patience });
            reported = true;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Gives the lock back; the end of the session would as well.
pub(crate) async fn release(connection: &mut PgConnection) -> Result<(), MigrateError> {
    sqlx::query("SELECT pg_advisory_unlock($1)")
        .bind(KEY)
        .execute(connection)
        .await
        .doing("giving the migration lock back")?;
    Ok(())
}

async fn holder(connection: &mut PgConnection) -> String {
    let row = sqlx::query(
        "SELECT activity.pid, activity.backend_start::text \
         FROM pg_locks AS lock JOIN pg_stat_activity AS activity USING (pid) \
         WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1 \
           AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
           AND (lock.classid::bigint << 32) | lock.objid::bigint = $1",
    )
    .bind(KEY)
    .fetch_optional(connection)
    .await;
    let Ok(Some(row)) = row else { return "unknown session".to_owned() };
    match (row.try_get::<i32, _>(0), row.try_get::<String, _>(1)) {
        (Ok(pid), Ok(since)) => format!("session with pid {pid}, connected since {since}"),
        _ => "unknown session".to_owned(),
    }
}
