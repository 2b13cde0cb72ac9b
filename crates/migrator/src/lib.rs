//! Applies `migrations/` to PostgreSQL: as a library for the local stack and tests, as a program for the one-off task
//! that runs before a rollout. Services never migrate.
//!
//! A run makes the services' roles and schemas, then applies what is missing in each schema, in order, each recorded in
//! `<schema>._sqlx_migrations`. Any number may start at once: one works, the others wait and find nothing left to do.
//! A file that starts with `-- no-transaction` runs outside a transaction and must hold exactly one statement.

mod error;
mod lock;
mod ownership;
mod program;
mod progress;
mod roles;
mod schemas;

use std::{
    collections::HashMap,
    str::FromStr,
    time::{Duration, Instant},
};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, migrate::Migrate, postgres::PgConnectOptions,
};

use error::Doing;
pub use error::MigrateError;
pub use ownership::{Owner, release_roles};
pub use program::main;
pub use progress::{Applied, Progress, Report};
pub use roles::RolePasswords;
use schemas::Schema;

/// How long [`run`] waits for a server that is starting, and for another migrator.
const DEFAULT_CONNECT_WAIT: Duration = Duration::from_secs(30);
const DEFAULT_LOCK_WAIT: Duration = Duration::from_mins(10);

/// Migrates the database of `admin_url` with everything this build knows.
///
/// `admin_url` may carry `sslmode` and `sslrootcert`, as libpq's does.
///
/// # Errors
///
/// [`MigrateError`]; what was applied before it stays applied.
pub async fn run(admin_url: &str, passwords: &RolePasswords) -> Result<Report, MigrateError> {
    Migrator::new(passwords.clone()).run(admin_url, &mut |_| {}).await
}

/// The newest migration of a schema (`auth`, `actor`, `document`) in this build; 0 when it has none.
#[must_use]
pub fn newest_version(schema: &str) -> i64 {
    let schemas = schemas::embedded();
    let schema = schemas.iter().find(|known| known.name == schema).expect("auth, actor or document");
    schema.newest_version()
}

/// A name for exactly the migrations of this build, for whoever keeps a migrated database to clone.
#[must_use]
pub fn fingerprint() -> String {
    // FNV-1a over SHA-384 checksums: a name, not a proof.
    let schemas = schemas::embedded();
    let checksums = schemas.iter().flat_map(Schema::migrations).flat_map(|migration| migration.checksum.iter());
    let hash = checksums
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// The statements that close a database to those who have no business in it, for a database that was cloned from a
/// migrated one: these privileges belong to the database itself and are not cloned. `database` is quoted where needed.
#[must_use]
pub fn privileges_of_clone(database: &str) -> [String; 2] {
    roles::privileges_of_database(database, &schemas::embedded())
}

/// A run with other waits, other migrations or somebody watching.
#[derive(Debug)]
pub struct Migrator {
    schemas: Vec<Schema>,
    passwords: RolePasswords,
    connect_wait: Duration,
    lock_wait: Duration,
    owner: Option<Owner>,
    take_over: bool,
}

impl Migrator {
    /// The embedded migrations, and the default waits (30 s for the server, 10 min for another migrator).
    #[must_use]
    pub fn new(passwords: RolePasswords) -> Self {
        Self {
            schemas: schemas::embedded().into(),
            passwords,
            connect_wait: DEFAULT_CONNECT_WAIT,
            lock_wait: DEFAULT_LOCK_WAIT,
            owner: None,
            take_over: false,
        }
    }

    /// How long to go on trying while the server refuses connections or is starting.
    #[must_use]
    pub fn connect_wait(mut self, wait: Duration) -> Self {
        self.connect_wait = wait;
        self
    }

    /// How long to wait while another migrator works.
    #[must_use]
    pub fn lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Refuses to change the passwords of roles that are not `owner`'s, and writes it down on those that are; with
    /// `take_over` whoever else has them loses them. Without an owner nobody is asked.
    #[must_use]
    pub fn owned_by(mut self, owner: Owner, take_over: bool) -> Self {
        (self.owner, self.take_over) = (Some(owner), take_over);
        self
    }

    /// Replaces the migrations of one schema (`auth`, `actor`, `document`): for tests of the migrator itself.
    #[must_use]
    pub fn with_migrations(mut self, schema: &str, migrations: sqlx::migrate::Migrator) -> Self {
        let schema = self.schemas.iter_mut().find(|known| known.name == schema);
        schema.expect("auth, actor or document").migrations = migrations;
        self
    }

    /// Migrates the database of `admin_url`, telling `progress` of each step as it is done.
    ///
    /// # Errors
    ///
    /// [`MigrateError`]; what was applied before it stays applied.
    pub async fn run(
        &self,
        admin_url: &str,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Report, MigrateError> {
        let mut connection = connect(admin_url, self.connect_wait).await?;
        // The lock belongs to the session that works: were the connection to break, both end together.
        lock::acquire(&mut connection, self.lock_wait, progress).await?;
        let outcome = self.run_locked(&mut connection, progress).await;
        if outcome.is_ok() {
            lock::release(&mut connection).await?;
            connection.close().await.doing("closing the connection")?;
        }
        outcome
    }

    async fn run_locked(
        &self,
        connection: &mut PgConnection,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Report, MigrateError> {
        match &self.owner {
            Some(owner) => ownership::claim(connection, &self.schemas, owner, self.take_over).await?,
            None => ownership::disown(connection).await?,
        }
        roles::establish(connection, &self.schemas, &self.passwords).await?;
        progress(Progress::RolesReady);
        let mut report = Report::default();
        for schema in &self.schemas {
            let applied = migrate(connection, schema, progress).await?;
            report.applied.extend(applied);
        }
        Ok(report)
    }
}

async fn migrate(
    connection: &mut PgConnection,
    schema: &Schema,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Vec<Applied>, MigrateError> {
    let Schema { name, role, table, .. } = schema;
    // Migrations may name their tables without the schema.
    execute(connection, format!("SET search_path = {name}")).await.doing("choosing the schema")?;
    connection.ensure_migrations_table(table).await.doing("making the table of applied migrations")?;
    // The default privileges would let a service rewrite its own history.
    for statement in [format!("REVOKE ALL ON {table} FROM {role}"), format!("GRANT SELECT ON {table} TO {role}")] {
        execute(connection, statement).await.doing("protecting the table of applied migrations")?;
    }
    let recorded = connection.list_applied_migrations(table).await.doing("reading the applied migrations")?;
    let recorded: HashMap<i64, _> = recorded.into_iter().map(|row| (row.version, row.checksum)).collect();
    check(schema, &recorded)?;

    let mut applied = Vec::new();
    for migration in schema.migrations().filter(|migration| !recorded.contains_key(&migration.version)) {
        let elapsed = connection.apply(table, migration).await.map_err(|error| MigrateError::Failed {
            schema: name,
            version: migration.version,
            description: migration.description.to_string(),
            partly: migration.no_tx,
            source: error::plain(error),
        })?;
        let step = Applied {
            schema: name,
            version: migration.version,
            description: migration.description.to_string(),
            elapsed,
        };
        progress(Progress::Applied(&step));
        applied.push(step);
    }
    if applied.is_empty() {
        progress(Progress::UpToDate { schema: name, version: schema.newest_version() });
    }
    Ok(applied)
}

/// Refuses a database whose history is not ours, before anything is changed in it.
fn check(schema: &Schema, recorded: &HashMap<i64, std::borrow::Cow<'static, [u8]>>) -> Result<(), MigrateError> {
    let known: HashMap<i64, _> = schema.migrations().map(|migration| (migration.version, migration)).collect();
    let newest = schema.newest_version();
    if let Some(unknown) = recorded.keys().filter(|version| !known.contains_key(version)).max() {
        return Err(if *unknown > newest {
            MigrateError::DatabaseIsNewer { schema: schema.name, applied: *unknown, newest }
        } else {
            MigrateError::Unknown { schema: schema.name, version: *unknown }
        });
    }
    let changed = recorded
        .iter()
        .filter_map(|(version, checksum)| known.get(version).filter(|migration| migration.checksum != *checksum))
        .min_by_key(|migration| migration.version);
    match changed {
        Some(migration) => Err(MigrateError::Changed {
            schema: schema.name,
            version: migration.version,
            description: migration.description.to_string(),
        }),
        None => Ok(()),
    }
}

/// Whether a URL's scheme is PostgreSQL's. sqlx takes any, and connects to whatever listens there.
#[must_use]
pub fn is_postgres_url(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("postgres" | "postgresql"))
}

/// Connects, trying again while the server is not there yet.
async fn connect(admin_url: &str, wait: Duration) -> Result<PgConnection, MigrateError> {
    if !is_postgres_url(admin_url) {
        let scheme = "its scheme is neither postgres nor postgresql";
        return Err(MigrateError::Url(sqlx::Error::Configuration(scheme.into())));
    }
    let options = PgConnectOptions::from_str(admin_url).map_err(MigrateError::Url)?.application_name("datum-migrator");
    let start = Instant::now();
    let mut connection = loop {
        let remaining = wait.saturating_sub(start.elapsed());
        let error = match tokio::time::timeout(remaining.max(Duration::from_secs(1)), options.connect()).await {
            Ok(Ok(connection)) => break connection,
            Ok(Err(error)) => error,
            Err(_) => sqlx::Error::PoolTimedOut,
        };
        if !may_pass(&error) {
            return Err(MigrateError::Refused(error));
        }
        let waited = start.elapsed();
        if waited >= wait {
            return Err(MigrateError::Connect { waited, source: error });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    // Limits meant for services would break a long migration off in its middle.
    execute(&mut connection, "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0".to_owned())
        .await
        .doing("preparing the session")?;
    Ok(connection)
}

/// Whether a failed connection says that the server is not ready yet, rather than that it will not have us.
fn may_pass(error: &sqlx::Error) -> bool {
    match error {
        // What a certificate or its verification is wrong about stays wrong.
        sqlx::Error::Io(error) => error.kind() != std::io::ErrorKind::InvalidData,
        sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Database(error) => {
            // cannot_connect_now (starting up, shutting down) and too_many_connections
            matches!(error.code().as_deref(), Some("57P03" | "53300"))
        }
        _ => false,
    }
}

async fn execute(connection: &mut PgConnection, statement: String) -> Result<(), sqlx::Error> {
    connection.execute(AssertSqlSafe(statement)).await.map(drop)
}
