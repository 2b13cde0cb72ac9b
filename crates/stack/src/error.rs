//! Why a stack cannot start or go on, said so that the reader knows what to do.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use migrator::MigrateError;
use service_kit::config::EXIT_USAGE;

use crate::cognito::CognitoDoubleError;
use crate::cpu_quota::QuotaError;
use crate::object_store::ObjectStoreError;
use crate::postgres::PostgresError;
use crate::service::TaskId;
use crate::shell;

/// The exit status of `datum` for whatever is not a wrong configuration.
const EXIT_FAILURE: u8 = 1;

/// Why a stack cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// An option or a variable does not fit.
    #[error("{0}")]
    Configuration(String),
    /// Another process holds the state folder.
    #[error("a stack already runs in {} ({})", path.display(), pid.map_or_else(|| "process unknown".to_owned(), |pid| format!("process {pid}")))]
    AlreadyRunning {
        /// The state folder.
        path: PathBuf,
        /// Who holds it, where it told.
        pid: Option<u32>,
    },
    /// Somebody listens on the balancer's port.
    #[error("port {port} is taken{}", holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default())]
    PortTaken {
        /// The port.
        port: u16,
        /// The process that holds it, where the system tells.
        holder: Option<String>,
    },
    /// The balancer's port cannot be had for another reason, such as a missing permission.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The state folder, or a file in it, cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    State {
        /// What was tried, as in "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk of the state folder has no room for a database.
    #[error("only {free_mib} MiB are free on the disk of {}; a stack needs {needed_mib} MiB", path.display())]
    DiskFull {
        /// The state folder.
        path: PathBuf,
        /// Free for this user, in MiB.
        free_mib: u64,
        /// Needed, in MiB.
        needed_mib: u64,
    },
    /// `--task-cpu` cannot be kept here.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// PostgreSQL cannot be found, fetched, started or spoken to.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// The given database cannot be used.
    #[error("the database of DATABASE_URL {0}")]
    Database(String),
    /// The pools of all tasks do not fit into the given database.
    #[error(
        "{tasks} tasks with DB_POOL_MAX={pool_max} may open {needed} connections; the database of DATABASE_URL allows {available}"
    )]
    TooFewConnections {
        /// Tasks of all services.
        tasks: usize,
        /// Connections per pool.
        pool_max: u32,
        /// What could be opened at once.
        needed: u32,
        /// `max_connections` without the reserved ones.
        available: u32,
    },
    /// A migration failed.
    #[error("migrations failed: {0}")]
    Migrations(#[from] MigrateError),
    /// The object store does not start.
    #[error("the object store does not start: {0}")]
    ObjectStore(#[from] ObjectStoreError),
    /// The Cognito double did not start.
    #[error(transparent)]
    Cognito(#[from] CognitoDoubleError),
    /// The balancer does not start.
    #[error("the balancer does not start: {0}")]
    Balancer(#[from] balancer::ConfigError),
    /// A task's process cannot be started at all.
    #[error("cannot start task {task} with {}: {source}", executable.display())]
    Spawn {
        /// The task.
        task: TaskId,
        /// What was executed.
        executable: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A task refused its configuration: starting it again cannot help.
    #[error("task {task} refuses its configuration:\n{output}")]
    TaskConfiguration {
        /// The task.
        task: TaskId,
        /// The last lines it wrote.
        output: String,
    },
    /// What the tasks would refuse was found before anything was started.
    #[error("the tasks would refuse their configuration:\n{0}")]
    TasksConfiguration(String),
    /// A task ends again and again before it is ready.
    #[error("task {task} ended {deaths} times before it was ready, at last with {status}:\n{output}")]
    TaskDies {
        /// The task.
        task: TaskId,
        /// How often.
        deaths: u32,
        /// How its last process ended.
        status: ExitStatus,
        /// The last lines it wrote.
        output: String,
    },
    /// A task does not become ready.
    #[error("task {task} is not ready after {seconds} s: {reason}\n{output}")]
    NotReady {
        /// The task.
        task: TaskId,
        /// How long it was given.
        seconds: u64,
        /// What its `/ready` said last.
        reason: String,
        /// The last lines it wrote.
        output: String,
    },
    /// The process that should take a task's place does not become ready.
    #[error(
        "a new process of task {task} is not ready after {seconds} s: {reason}{}\n{output}",
        if *old_stays { "; the old one stays" } else { "; the old one has ended, and it is tried further" }
    )]
    NotReplaced {
        /// The task.
        task: TaskId,
        /// How long it was given.
        seconds: u64,
        /// What its `/ready` said last.
        reason: String,
        /// The last lines it wrote.
        output: String,
        /// Whether the process that it should replace runs on.
        old_stays: bool,
    },
    /// There is no such task.
    #[error("there is no task {0}")]
    NoSuchTask(TaskId),
    /// It was told to stop while it started.
    #[error("stopped before it was ready")]
    Interrupted,
}

impl StackError {
    /// What the reader can do about it, where that is known.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::AlreadyRunning { path, .. } => Some(format!(
                "stop it with `datum down --state-dir {}`, or use another folder: `--state-dir` or `--ephemeral`",
                shell::quoted(path)
            )),
            Self::PortTaken { port, .. } => {
                Some(format!("choose another with `--port {}`; `--port 0` takes any free one", port.saturating_add(1)))
            }
            Self::Listen { port, .. } if *port < 1024 => Some("ports below 1024 need root; choose a higher one".into()),
            Self::State { path, source, .. } => state_advice(source.kind(), path),
            Self::DiskFull { .. } => Some("free some space, or put the state elsewhere with `--state-dir`".into()),
            Self::Quota(error) => Some(error.advice().to_owned()),
            Self::TooFewConnections { .. } => {
                Some("start fewer tasks, lower DB_POOL_MAX, or raise max_connections of the server".into())
            }
            Self::Migrations(MigrateError::RoleInUse { .. } | MigrateError::RoleOfUnknown { .. }) => Some(
                "stop that system, or use another PostgreSQL server; `--take-over-roles` takes the roles away from it, \
                 also where it was killed and could not give them back"
                    .into(),
            ),
            Self::TasksConfiguration(_) => {
                Some("`datum task auth --help` (or `actor`, `document`) lists every variable".into())
            }
            _ => None,
        }
    }

    /// The exit status of a command that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Configuration(_) | Self::TaskConfiguration { .. } | Self::TasksConfiguration(_) => EXIT_USAGE,
            _ => EXIT_FAILURE,
        }
    }
}

fn state_advice(kind: io::ErrorKind, path: &std::path::Path) -> Option<String> {
    match kind {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(format!(
            "give this user the right to write {}, or choose a folder with `--state-dir`, or use `--ephemeral`",
            path.display()
        )),
        io::ErrorKind::StorageFull => Some("free some space, or put the state elsewhere with `--state-dir`".into()),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            Some("a file stands where the state folder should be; choose another with `--state-dir`".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Service;

    #[test]
    fn only_wrong_configurations_exit_with_ex_usage() {
        let task = TaskId::new(Service::Auth, 1);
        assert_eq!(StackError::Configuration("x".into()).exit_code(), 64);
        assert_eq!(StackError::TaskConfiguration { task, output: String::new() }.exit_code(), 64);
        assert_eq!(StackError::PortTaken { port: 80, holder: None }.exit_code(), 1);
    }

    #[test]
    fn an_error_names_the_holder_and_what_to_do() {
        let error = StackError::PortTaken { port: 8080, holder: Some("nginx (process 12)".into()) };
        assert_eq!(error.to_string(), "port 8080 is taken by nginx (process 12)");
        assert!(error.advice().is_some_and(|advice| advice.contains("--port 8081")));

        let error = StackError::AlreadyRunning { path: "/x/.datum".into(), pid: Some(7) };
        assert_eq!(error.to_string(), "a stack already runs in /x/.datum (process 7)");

        let error = StackError::AlreadyRunning { path: "/my files/.datum".into(), pid: None };
        assert!(error.advice().is_some_and(|advice| advice.contains("--state-dir '/my files/.datum'`")), "{error}");
    }

    #[test]
    fn a_full_disk_and_a_missing_permission_are_told_apart() {
        let state =
            |kind: io::ErrorKind| StackError::State { action: "create", path: "/x".into(), source: kind.into() };
        assert!(state(io::ErrorKind::StorageFull).advice().is_some_and(|advice| advice.contains("space")));
        assert!(state(io::ErrorKind::PermissionDenied).advice().is_some_and(|advice| advice.contains("right")));
    }
}
