//! What can keep PostgreSQL from starting, each said so that a person knows what to do next.

use std::path::PathBuf;

/// Why PostgreSQL could not be found, set up, started or reached.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Nothing installed, and nothing could be downloaded.
    #[error(
        "no PostgreSQL found (looked at {looked_at}), and downloading it from {source_url} failed: {reason}; \
         install PostgreSQL {minimum} or newer, or set DATABASE_URL to a server that you run"
    )]
    NotFound {
        /// Where installed binaries were looked for.
        looked_at: String,
        /// Where it would have come from.
        source_url: &'static str,
        /// What the download said.
        reason: String,
        /// The oldest major version that works.
        minimum: u32,
    },
    /// `DATUM_POSTGRES_BIN` points to a folder that holds no usable PostgreSQL.
    #[error("{} (DATUM_POSTGRES_BIN) is no usable PostgreSQL: {reason}", folder.display())]
    Unusable {
        /// The folder given.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The data was written by another major version.
    #[error(
        "the data in {} was written by PostgreSQL {data}, but the binaries in {} are PostgreSQL {binaries}; \
         use the binaries of version {data} (DATUM_POSTGRES_BIN=/folder/of/its/bin), or remove the folder to start afresh",
        folder.display(), binaries_folder.display()
    )]
    VersionMismatch {
        /// The data folder.
        folder: PathBuf,
        /// Major version of the data.
        data: String,
        /// Major version of the binaries.
        binaries: u32,
        /// Where the binaries are.
        binaries_folder: PathBuf,
    },
    /// Something listens on the wanted port already.
    #[error("port {port} on 127.0.0.1 is taken; stop what listens there, or choose another port")]
    PortTaken {
        /// The port asked for.
        port: u16,
    },
    /// Another process of ours holds the folder.
    #[error("the data folder {} is in use by another running process", folder.display())]
    FolderInUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// A server of an earlier run still works on the data.
    #[error("a PostgreSQL server (pid {pid}) is still running on {}; stop it first: kill -INT {pid}", folder.display())]
    StillRunning {
        /// The postmaster's process id.
        pid: i32,
        /// The data folder.
        folder: PathBuf,
    },
    /// Run by root, and no account exists that PostgreSQL could run as.
    #[error(
        "PostgreSQL refuses to run as root, and neither the account `postgres` nor `nobody` exists; \
         run this as another user, or set DATABASE_URL to a server that you run"
    )]
    NoAccount,
    /// The unprivileged account cannot reach a folder, and no other place would do.
    #[error("the account `{account}`, as which PostgreSQL runs, cannot reach {}", path.display())]
    Unreachable {
        /// The account's name.
        account: String,
        /// The path it cannot enter.
        path: PathBuf,
    },
    /// `initdb` failed.
    #[error("initdb failed: {output}")]
    Initdb {
        /// What it printed.
        output: String,
    },
    /// The server ended while it was being started.
    #[error("PostgreSQL ended while starting ({status}); the end of {}:\n{log}", log_file.display())]
    EndedWhileStarting {
        /// How it ended.
        status: String,
        /// Its log file.
        log_file: PathBuf,
        /// The last lines of the log.
        log: String,
    },
    /// The server runs but does not answer.
    #[error("PostgreSQL did not accept connections within {seconds} s: {reason}; its log is {}", log_file.display())]
    NotReady {
        /// How long it was tried.
        seconds: u64,
        /// What the last attempt said.
        reason: String,
        /// Its log file.
        log_file: PathBuf,
    },
    /// A statement of the set-up failed.
    #[error("setting up PostgreSQL: {0}")]
    Sql(#[from] tokio_postgres::Error),
    /// A file, folder or process operation failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, with the path.
        doing: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
}

/// Says what was being done when the operating system refused.
pub(super) trait Doing<T> {
    /// Turns the error into [`PostgresError::Io`] with `doing` before it.
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, PostgresError>;
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, PostgresError> {
        self.map_err(|source| PostgresError::Io { doing: doing(), source })
    }
}
