//! What a stack is started with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use service_kit::config::{Environment, Inspection, Secret};

use crate::cpu_quota::TaskCpu;
use crate::identity::IdentityOptions;
use crate::service::{Service, TaskId};
use crate::signing_key::MakeKey;

/// The most tasks of one service: far above what one machine carries, far below what its ports and processes allow.
pub const MAX_TASKS: u16 = 64;

/// Where the state of a stack lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this folder; data survives a restart.
    Persistent(PathBuf),
    /// In a new temporary folder that is removed at the end.
    Ephemeral,
}

/// How many tasks each service gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCounts(BTreeMap<Service, u16>);

impl TaskCounts {
    /// The same number for every service.
    #[must_use]
    pub fn each(count: u16) -> Self {
        Self(Service::ALL.into_iter().map(|service| (service, count)).collect())
    }

    /// The same counts with another number for one service.
    #[must_use]
    pub fn with(mut self, service: Service, count: u16) -> Self {
        self.0.insert(service, count);
        self
    }

    /// The number of tasks of a service.
    #[must_use]
    pub fn of(&self, service: Service) -> u16 {
        self.0.get(&service).copied().unwrap_or(0)
    }

    /// The number of all tasks.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.values().copied().map(usize::from).sum()
    }

    /// Every task, service by service.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().flat_map(|(service, count)| (1..=*count).map(|number| TaskId::new(*service, number)))
    }
}

impl Default for TaskCounts {
    fn default() -> Self {
        Self::each(1)
    }
}

/// The program whose `task NAME` runs one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executable {
    /// This very program, also after its file was replaced by a newer build.
    Current,
    /// Another one, as a benchmark or a test starts it.
    At(PathBuf),
}

/// What a service's tasks find in an environment.
pub type Inspect = fn(Service, &Environment) -> Inspection;

/// Everything that decides what a stack looks like.
#[derive(Debug, Clone)]
pub struct StackOptions {
    /// The balancer's port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// Tasks per service.
    pub tasks: TaskCounts,
    /// The CPU quota of each task; none leaves them the whole machine.
    pub task_cpu: Option<TaskCpu>,
    /// Where the state lives.
    pub location: Location,
    /// Who keeps accounts.
    pub identity: IdentityOptions,
    /// An administrator's URL of a database to use instead of an own PostgreSQL.
    pub database_url: Option<Secret>,
    /// Take the services' roles of the given database's server, even where another system uses them.
    pub take_over_roles: bool,
    /// The program that runs a task.
    pub executable: Executable,
    /// The environment to take a user's settings from; see [`crate::environment::is_passed_on`].
    pub environment: BTreeMap<String, String>,
    /// Variables for every task, over everything but the wiring that no task runs without.
    pub set: BTreeMap<String, String>,
    /// Reads the configuration of a service's tasks as they will, so that what they would refuse is refused before anything
    /// is started; none leaves it to them.
    pub inspect: Option<Inspect>,
    /// Makes the key that tokens are signed with, when the state folder has none yet.
    pub make_signing_key: MakeKey,
    /// Answers `/docs` and `/openapi.json` at the balancer.
    pub pages: Option<axum::Router>,
}

impl StackOptions {
    /// A stack with one task a service on a free port, in a temporary folder, with nothing taken from the environment.
    #[must_use]
    pub fn ephemeral(executable: impl AsRef<Path>, make_signing_key: MakeKey) -> Self {
        Self {
            port: 0,
            tasks: TaskCounts::default(),
            task_cpu: None,
            location: Location::Ephemeral,
            identity: IdentityOptions::Local,
            database_url: None,
            take_over_roles: false,
            executable: Executable::At(executable.as_ref().to_owned()),
            environment: BTreeMap::new(),
            set: BTreeMap::new(),
            inspect: None,
            make_signing_key,
            pages: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_for_all_and_for_one() {
        let counts = TaskCounts::each(2).with(Service::Auth, 3);
        assert_eq!(counts.total(), 7);
        let names: Vec<String> = counts.tasks().map(|task| task.to_string()).collect();
        assert_eq!(names, ["auth-1", "auth-2", "auth-3", "actor-1", "actor-2", "document-1", "document-2"]);
    }
}
