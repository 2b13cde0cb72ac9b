//! What a stack tells while it starts, runs and stops. A terminal draws it; a benchmark ignores it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One of the steps of a start or a stop, in the order they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The state folder, its lock and its secrets.
    State,
    /// PostgreSQL: found or fetched, initialised, started; or the given one checked.
    Postgres,
    /// Roles, schemas, migrations.
    Migrations,
    /// The S3 server.
    ObjectStore,
    /// The Cognito double.
    Identity,
    /// The balancer.
    Balancer,
    /// All tasks.
    Tasks,
}

impl Step {
    /// The words shown for it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Postgres => "PostgreSQL",
            Self::Migrations => "migrations",
            Self::ObjectStore => "object store",
            Self::Identity => "identity",
            Self::Balancer => "balancer",
            Self::Tasks => "tasks",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// Something worth telling.
#[derive(Debug, Clone)]
pub enum Event {
    /// A step of the start began.
    Started(Step),
    /// What a step is doing now, such as "downloading PostgreSQL 17".
    Doing(Step, String),
    /// A step of the start is done; what it found, and how long it took.
    Done(Step, String, Duration),
    /// A part is being stopped; what it waits for.
    Stopping(Step, String),
    /// A part has stopped.
    Stopped(Step),
    /// The folder where each task's log file is or will be.
    Logs(PathBuf),
    /// Something an operator should see, such as a task that died.
    Notice(String),
    /// The status of a process changed: draw the table again.
    Changed,
}

/// Receives the events of a stack. Called from several tasks: it must not block for long.
pub trait Observer: Send + Sync + 'static {
    /// Takes one event.
    fn observe(&self, event: Event);
}

/// An observer that hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn observe(&self, _event: Event) {}
}
