//! Writes the dataset into the database, in batches of one transaction each.
//!
//! What is there already is found by the ids, which follow from the numbers: a second call writes nothing, and a call after one that
//! was interrupted writes what is missing. A batch of which nothing is there goes in by COPY alone; of which something is there,
//! through a temporary table and `ON CONFLICT DO NOTHING`.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio_util::sync::CancellationToken;

use super::Dataset;
use super::copy::Rows;
use super::hashes::{self, HashCost, HashingError, same_salt};
use super::identity::email;
use super::ids::{registered_at, user_id};

/// Users of one transaction: large enough that its cost does not matter, small enough to be repeated after an interruption.
const BATCH: u64 = 20_000;

/// Users that are looked at to see whether the pool of hashes is the one that is there.
const SAMPLE: u64 = 10;

/// Names a unique index in PostgreSQL's errors.
const UNIQUE_VIOLATION: &str = "23505";

/// Most users: their numbers have nine digits.
pub const MAX_USERS: u64 = 1_000_000_000;

/// What is to be there.
#[derive(Debug, Clone)]
pub struct PopulateOptions {
    /// An administrator's URL, with `sslmode` and `sslrootcert` as libpq has them.
    pub database_url: String,
    /// The users.
    pub dataset: Dataset,
    /// What their hashes cost.
    pub cost: HashCost,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Passwords are hashed.
    Hashes {
        /// How many are done.
        done: u32,
        /// Of how many.
        of: u32,
    },
    /// Users are written.
    Users {
        /// How many are there.
        done: u64,
        /// Of how many.
        of: u64,
        /// How many of them this call has written.
        written: u64,
    },
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Populated {
    /// Users who are there now, of the wanted ones.
    pub there: u64,
    /// Users whom this call has written.
    pub written: u64,
    /// Whether it was stopped before all were there.
    pub interrupted: bool,
}

/// Why the users are not there.
#[derive(Debug, thiserror::Error)]
pub enum PopulateError {
    /// The database cannot be reached, or refused a statement. Batches before it stay.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// Numbers that make no sense.
    #[error("{0}")]
    Options(String),
    /// The users that are there have other passwords.
    #[error(
        "users of seed {seed} are there with other passwords than {hashes} distinct hashes give: take the number they were made \
         with, or another seed"
    )]
    OtherPool {
        /// The seed.
        seed: u64,
        /// The number of hashes asked for.
        hashes: u32,
    },
    /// Somebody else has an address of the dataset.
    #[error("of users {from} to {until}, {missing} could not be written: their addresses belong to other accounts")]
    Taken {
        /// The batch's first user.
        from: u64,
        /// Its last.
        until: u64,
        /// How many.
        missing: u64,
    },
    /// The hash parameters are refused.
    #[error("hashing passwords: {0}")]
    Hashing(#[from] HashingError),
}

/// Makes sure that the users are there, in both tables. Stopped, it ends after the batch at hand.
pub async fn populate(
    options: &PopulateOptions,
    mut progress: impl FnMut(Progress),
    stop: &CancellationToken,
) -> Result<Populated, PopulateError> {
    let Dataset { users, seed, distinct_hashes } = options.dataset;
    if users == 0 || users > MAX_USERS || distinct_hashes == 0 {
        return Err(PopulateError::Options(format!(
            "from 1 to {MAX_USERS} users, and at least one hash, are possible"
        )));
    }
    let mut connection = options.database_url.parse::<PgConnectOptions>()?.connect().await?;
    let pool = hashes::compute(seed, distinct_hashes, options.cost, |done| {
        progress(Progress::Hashes { done, of: distinct_hashes });
    })
    .await?;
    check_pool(&mut connection, seed, &pool).await?;

    let mut populated = Populated { there: 0, written: 0, interrupted: false };
    while populated.there < users {
        if stop.is_cancelled() {
            populated.interrupted = true;
            break;
        }
        let batch = Batch { seed, from: populated.there, until: (populated.there + BATCH).min(users) };
        populated.written += batch.ensure(&mut connection, &pool).await?;
        populated.there = batch.until;
        progress(Progress::Users { done: populated.there, of: users, written: populated.written });
    }
    if populated.written > 0 {
        // The planner must know how large the tables are before the load does.
        sqlx::raw_sql("ANALYZE auth.users; ANALYZE actor.actors").execute(&mut connection).await?;
    }
    connection.close().await?;
    Ok(populated)
}

/// Refuses when users of the seed are there whose hashes are none of this pool's.
async fn check_pool(connection: &mut PgConnection, seed: u64, pool: &[String]) -> Result<(), PopulateError> {
    let mut found = false;
    for (n, expected) in (0..SAMPLE).zip(pool.iter().cycle()) {
        let stored: Option<String> =
            sqlx::query_scalar("SELECT password_hash FROM auth.users WHERE id = $1::text::uuid")
                .bind(user_id(seed, n).to_string())
                .fetch_optional(&mut *connection)
                .await?;
        match stored {
            // One is enough: others may have been replaced at a login.
            Some(stored) if same_salt(&stored, expected) => return Ok(()),
            Some(_) => found = true,
            None => {}
        }
    }
    if found {
        let hashes = u32::try_from(pool.len()).unwrap_or(u32::MAX);
        return Err(PopulateError::OtherPool { seed, hashes });
    }
    Ok(())
}

/// Users of one transaction.
struct Batch {
    seed: u64,
    from: u64,
    until: u64,
}

impl Batch {
    fn len(&self) -> u64 {
        self.until - self.from
    }

    /// Writes whoever is missing; how many accounts that were.
    async fn ensure(&self, connection: &mut PgConnection, pool: &[String]) -> Result<u64, PopulateError> {
        let ids: Vec<String> = (self.from..self.until).map(|n| user_id(self.seed, n).to_string()).collect();
        let (users, actors) = count(connection, &ids).await?;
        if users == self.len() && actors == self.len() {
            return Ok(0);
        }
        if users == 0 && actors == 0 {
            match self.copy(connection, pool, false).await {
                // Somebody else has one of the addresses, or another call is writing at this moment.
                Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(UNIQUE_VIOLATION) => {}
                outcome => return Ok(outcome.map(|()| self.len())?),
            }
        }
        self.copy(connection, pool, true).await?;
        let (there, there_as_actors) = count(connection, &ids).await?;
        let missing = self.len() - there.min(there_as_actors).min(self.len());
        if missing > 0 {
            return Err(PopulateError::Taken { from: self.from, until: self.until - 1, missing });
        }
        Ok(self.len().saturating_sub(users))
    }

    /// Copies all of the batch; beside what is there, where `beside`.
    async fn copy(&self, connection: &mut PgConnection, pool: &[String], beside: bool) -> Result<(), sqlx::Error> {
        const USERS: &str = "auth.users (id, email, password_hash, created_at)";
        const ACTORS: &str = "actor.actors (id, email, email_issued_at, created_at, updated_at)";
        let mut transaction = connection.begin().await?;
        for (table, rows) in [(USERS, self.users(pool)), (ACTORS, self.actors())] {
            if !beside {
                copy_in(&mut transaction, &format!("COPY {table} FROM STDIN (FORMAT binary)"), rows).await?;
                continue;
            }
            let (name, columns) = table.split_once(' ').unwrap_or((table, ""));
            let staging = format!("staging_{}", name.replace('.', "_"));
            let columns_only = columns.trim_start_matches('(').trim_end_matches(')');
            let make =
                format!("CREATE TEMPORARY TABLE {staging} ON COMMIT DROP AS SELECT {columns_only} FROM {name} LIMIT 0");
            sqlx::raw_sql(sqlx::AssertSqlSafe(make)).execute(&mut *transaction).await?;
            copy_in(&mut transaction, &format!("COPY {staging} FROM STDIN (FORMAT binary)"), rows).await?;
            let insert = format!("INSERT INTO {table} SELECT {columns_only} FROM {staging} ON CONFLICT DO NOTHING");
            sqlx::raw_sql(sqlx::AssertSqlSafe(insert)).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    fn users(&self, pool: &[String]) -> Vec<u8> {
        let mut rows = Rows::of(4);
        for (n, hash) in (self.from..self.until).zip(pool.iter().cycle().skip(self.offset(pool.len()))) {
            rows.row().uuid(user_id(self.seed, n)).text(&email(self.seed, n)).text(hash).timestamp(registered_at(n));
        }
        rows.finish()
    }

    fn actors(&self) -> Vec<u8> {
        let mut rows = Rows::of(5);
        for n in self.from..self.until {
            let at = registered_at(n);
            rows.row().uuid(user_id(self.seed, n)).text(&email(self.seed, n)).timestamp(at).timestamp(at).timestamp(at);
        }
        rows.finish()
    }

    /// The place of the first user's hash in the pool.
    fn offset(&self, pool: usize) -> usize {
        usize::try_from(self.from % pool.max(1) as u64).unwrap_or(0)
    }
}

async fn copy_in(connection: &mut PgConnection, statement: &str, rows: Vec<u8>) -> Result<(), sqlx::Error> {
    let mut copy = connection.copy_in_raw(statement).await?;
    match copy.send(rows).await {
        Ok(_) => copy.finish().await.map(drop),
        Err(error) => {
            let _ = copy.abort("the rows could not be sent").await;
            Err(error)
        }
    }
}

/// How many of the ids are there, as accounts and as actors.
async fn count(connection: &mut PgConnection, ids: &[String]) -> Result<(u64, u64), sqlx::Error> {
    let (users, actors): (i64, i64) = sqlx::query_as(
        "WITH wanted AS MATERIALIZED (SELECT unnest($1::text[]::uuid[]) AS id)
         SELECT (SELECT count(*) FROM wanted JOIN auth.users USING (id)),
                (SELECT count(*) FROM wanted JOIN actor.actors USING (id))",
    )
    .bind(ids)
    .fetch_one(connection)
    .await?;
    Ok((u64::try_from(users).unwrap_or(0), u64::try_from(actors).unwrap_or(0)))
}
