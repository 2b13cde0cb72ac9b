//! What is known about each process of a running stack; the rows of the live table and of `datum status`.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::identity::IdentityStatus;
use crate::service::Service;

/// The state of one process, as an operator wants to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// The process runs and is not ready yet.
    Starting,
    /// The balancer sends it requests.
    Healthy,
    /// It runs, and fails the balancer's health checks.
    Unhealthy,
    /// It gets no new requests and finishes those it has.
    Draining,
    /// It died and waits to be started again.
    Restarting,
    /// It was stopped.
    Stopped,
}

impl Health {
    /// The word shown for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Draining => "draining",
            Self::Restarting => "restarting",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One row: a task of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// The service.
    pub service: Service,
    /// The number of the task within its service, from 1.
    pub number: u16,
    /// Its state.
    pub health: Health,
    /// The port it listens on, on 127.0.0.1.
    pub port: Option<u16>,
    /// Its process id; none while it waits to be started.
    pub pid: Option<u32>,
    /// How often it was started again after a death. A wanted replacement does not count.
    pub restarts: u32,
    /// Resident memory in bytes; none where the system does not tell.
    pub rss_bytes: Option<u64>,
    /// Since the start of the present process.
    pub uptime_seconds: Option<u64>,
}

/// PostgreSQL's row, where the stack runs its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostgresStatus {
    /// Its state.
    pub health: Health,
    /// The port it listens on, on 127.0.0.1.
    pub port: u16,
    /// The process id of the postmaster.
    pub pid: Option<u32>,
    /// How often it was started again after a death.
    pub restarts: u32,
}

/// A whole stack: what `datum status` prints and what `stack.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackStatus {
    /// The process that runs the stack.
    pub pid: u32,
    /// Where the balancer answers, as `http://127.0.0.1:8080`.
    pub base_url: String,
    /// The balancer's port.
    pub port: u16,
    /// When it was started, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// Whether everything has been ready once.
    pub ready: bool,
    /// Whether login throttling is off, as load tests want it.
    pub throttle_off: bool,
    /// The hard share of CPU time of each task, in units of 1/1024 vCPU; none without `--task-cpu`.
    #[serde(default)]
    pub task_cpu_units: Option<u32>,
    /// Who keeps accounts.
    #[serde(default)]
    pub identity: IdentityStatus,
    /// What slows requests down on purpose, as `NAME=VALUE`; empty unless measuring itself is tested.
    #[serde(default)]
    pub faults: Vec<String>,
    /// The tasks.
    pub tasks: Vec<TaskStatus>,
    /// PostgreSQL, where the stack runs its own.
    pub postgres: Option<PostgresStatus>,
}

impl StackStatus {
    /// What is not as it should be, as `auth 0 of 1 healthy`; empty when everything is well.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let of_service = |service: Service| {
            let tasks: Vec<&TaskStatus> = self.tasks.iter().filter(|task| task.service == service).collect();
            let healthy = tasks.iter().filter(|task| task.health == Health::Healthy).count();
            (healthy < tasks.len()).then(|| format!("{service} {healthy} of {} healthy", tasks.len()))
        };
        let postgres = self.postgres.as_ref().filter(|postgres| postgres.health != Health::Healthy);
        let of_postgres = postgres.map(|postgres| format!("PostgreSQL {}", postgres.health));
        Service::ALL.into_iter().filter_map(of_service).chain(of_postgres).collect()
    }
}

/// Resident memory of a process in bytes (`VmRSS` of proc(5)); none where there is no `/proc`, or no such process.
#[must_use]
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    parse_resident_bytes(&text)
}

fn parse_resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_proc() {
        assert_eq!(parse_resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n"), Some(2_097_152));
        assert_eq!(parse_resident_bytes("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn troubles_are_counted_by_service() {
        let task = |service, number, health| TaskStatus {
            service,
            number,
            health,
            port: None,
            pid: None,
            restarts: 0,
            rss_bytes: None,
            uptime_seconds: None,
        };
        let mut status = StackStatus {
            pid: 1,
            base_url: "http://127.0.0.1:8080".into(),
            port: 8_080,
            started_at: OffsetDateTime::UNIX_EPOCH,
            ready: true,
            throttle_off: false,
            task_cpu_units: None,
            identity: IdentityStatus::Local,
            faults: Vec::new(),
            tasks: vec![task(Service::Auth, 1, Health::Healthy), task(Service::Actor, 1, Health::Healthy)],
            postgres: Some(PostgresStatus { health: Health::Healthy, port: 1, pid: None, restarts: 0 }),
        };
        assert_eq!(status.troubles(), Vec::<String>::new());
        status.tasks.extend([task(Service::Auth, 2, Health::Unhealthy), task(Service::Document, 1, Health::Starting)]);
        if let Some(postgres) = &mut status.postgres {
            postgres.health = Health::Restarting;
        }
        let troubles = ["auth 1 of 2 healthy", "document 0 of 1 healthy", "PostgreSQL restarting"];
        assert_eq!(status.troubles(), troubles);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_own_process_has_resident_memory() {
        assert!(resident_bytes(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
