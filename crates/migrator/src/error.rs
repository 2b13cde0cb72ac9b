//! Why a database was not migrated.

use std::time::Duration;

/// Why the migrator stopped. What was applied before stays applied; running it again continues there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The URL is not one of PostgreSQL.
    #[error("the database URL is not usable: {0}")]
    Url(#[source] sqlx::Error),
    /// No connection within the time given.
    #[error("no connection to PostgreSQL within {} s: {source}", waited.as_secs())]
    Connect {
        /// How long it was tried.
        waited: Duration,
        /// What the last attempt said.
        source: sqlx::Error,
    },
    /// The server, or the network before it, will not have us: trying again could not help.
    #[error("PostgreSQL cannot be connected to: {0}")]
    Refused(#[source] sqlx::Error),
    /// A running system uses the role.
    #[error(
        "the role {role}, which belongs to the whole server, is used by the system in {user}: \
         another password would lock its tasks out"
    )]
    RoleInUse {
        /// The role's name.
        role: String,
        /// Where a person finds the system.
        user: String,
    },
    /// The role is there, and no system has written down that it is its own.
    #[error(
        "the role {role}, which belongs to the whole server, exists already, and nothing says that it is free: \
         another password would lock out whoever uses it"
    )]
    RoleOfUnknown {
        /// The role's name.
        role: String,
    },
    /// Another migrator worked longer than we were told to wait.
    #[error("another migrator has held the lock for {} s ({holder}); it is still working, or hangs", waited.as_secs())]
    Locked {
        /// How long we waited.
        waited: Duration,
        /// Who holds it, as far as PostgreSQL tells.
        holder: String,
    },
    /// A role exists that the administrator may not change, or may not be made.
    #[error("role {role} could not be made or changed: {source}")]
    Role {
        /// The role's name.
        role: &'static str,
        /// What PostgreSQL said.
        source: sqlx::Error,
    },
    /// The database is ahead of this program.
    #[error(
        "schema {schema} is at version {applied}, and the newest this migrator knows is {newest}: \
         a newer release has migrated the database; run the migrator of that release"
    )]
    DatabaseIsNewer {
        /// The schema.
        schema: &'static str,
        /// The newest version that the database has.
        applied: i64,
        /// The newest version that this program has; 0 for none.
        newest: i64,
    },
    /// The database has a version, older than our newest, that is not ours.
    #[error("schema {schema} has migration {version}, which this migrator does not know: it was removed or renamed")]
    Unknown {
        /// The schema.
        schema: &'static str,
        /// The version.
        version: i64,
    },
    /// A migration was edited after it had been applied.
    #[error(
        "migration {version} ({description}) of schema {schema} was changed after it had been applied: \
         restore its file, and put the change into a new migration"
    )]
    Changed {
        /// The schema.
        schema: &'static str,
        /// The version.
        version: i64,
        /// Its name.
        description: String,
    },
    /// A migration's SQL failed.
    #[error("migration {version} ({description}) of schema {schema} failed{}: {source}", if *partly { ", and may have been applied in part" } else { "" })]
    Failed {
        /// The schema.
        schema: &'static str,
        /// The version.
        version: i64,
        /// Its name.
        description: String,
        /// It ran outside a transaction.
        partly: bool,
        /// What PostgreSQL said.
        source: sqlx::Error,
    },
    /// Something else that PostgreSQL refused, or the connection broke.
    #[error("{doing}: {source}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What went wrong.
        source: sqlx::Error,
    },
}

/// Says what was being done when a statement failed.
pub(crate) trait Doing<T> {
    /// Turns the error into [`MigrateError::Database`].
    fn doing(self, doing: &'static str) -> Result<T, MigrateError>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, MigrateError> {
        self.map_err(|source| MigrateError::Database { doing, source })
    }
}

impl<T> Doing<T> for Result<T, sqlx::migrate::MigrateError> {
    fn doing(self, doing: &'static str) -> Result<T, MigrateError> {
        self.map_err(|error| MigrateError::Database { doing, source: plain(error) })
    }
}

/// sqlx wraps what the database said; its other variants cannot occur in the calls made here.
pub(crate) fn plain(error: sqlx::migrate::MigrateError) -> sqlx::Error {
    use sqlx::migrate::MigrateError as Sqlx;
    match error {
        Sqlx::Execute(source) | Sqlx::ExecuteMigration(source, _) => source,
        other => sqlx::Error::Migrate(Box::new(other)),
    }
}
