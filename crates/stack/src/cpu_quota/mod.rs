//! `--task-cpu`: what Fargate does to a task, done here by a cgroup quota.
//!
//! Fargate gives a task a hard share of CPU time without bursts (containers-roadmap#163), in units of 1/1024 vCPU. The
//! same is asked of the kernel here: so much CPU time in each period of 100 ms, Linux's default. A quota that cannot be
//! kept is refused: a benchmark that believes in one would be worse than none.

mod discover;
mod usage;
mod v1;
mod v2;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::service::TaskId;
pub use usage::{QuotaUse, use_of};

/// The kernel's period of CFS bandwidth control, in microseconds (`Documentation/scheduler/sched-bwc.rst`).
const PERIOD_US: u32 = 100_000;
/// What the names of our groups begin with.
const PREFIX: &str = "datum-";

/// The file (`cgroup.procs`) that a task joins before it does anything else.
pub const JOIN_VARIABLE: &str = "DATUM_CGROUP_PROCS";

/// CPU units of a task, as Fargate sells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCpu(u32);

impl TaskCpu {
    /// The sizes that Fargate has ("Amazon ECS task definition parameters for Fargate", task size).
    pub const SIZES: [u32; 7] = [256, 512, 1024, 2048, 4096, 8192, 16384];

    /// Units of 1/1024 vCPU.
    #[must_use]
    pub const fn units(self) -> u32 {
        self.0
    }

    /// CPU time in one period, in microseconds.
    const fn quota_us(self) -> u32 {
        self.0 * (PERIOD_US / 1024) + self.0 * (PERIOD_US % 1024) / 1024
    }

    /// Threads that can run at once without being throttled: whole vCPUs, at least one.
    #[must_use]
    pub const fn whole_cpus(self) -> u32 {
        if self.0 < 1024 { 1 } else { self.0 / 1024 }
    }
}

impl FromStr for TaskCpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = text.parse().ok().filter(|units| Self::SIZES.contains(units));
        units.map(Self).ok_or_else(|| {
            format!("`{text}` is not a Fargate task size: {}", Self::SIZES.map(|s| s.to_string()).join(", "))
        })
    }
}

impl fmt::Display for TaskCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPU units", self.0)
    }
}

/// Why a quota cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// The system has no CPU controller that a process can use.
    #[error("cannot limit the CPU of a task: {0}")]
    NoController(String),
    /// There is one, and this user may not use it.
    #[error("cannot limit the CPU of a task: no permission for {} ({source})", path.display())]
    NotPermitted {
        /// The group or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl QuotaError {
    /// What the reader can do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::NoController(_) => "leave --task-cpu out; tasks then share the whole machine",
            Self::NotPermitted { .. } => {
                "run as root; with cgroups version 2 a delegated scope does as well \
                 (`systemd-run --user --scope -p Delegate=yes datum up …`); or leave --task-cpu out"
            }
        }
    }

    fn not_permitted(path: &Path, source: io::Error) -> Self {
        Self::NotPermitted { path: path.to_owned(), source }
    }
}

/// Where groups for tasks can be made, and how.
#[derive(Debug)]
enum Hierarchy {
    V1(v1::Parent),
    V2(v2::Parent),
}

/// The quota of every task of one stack.
#[derive(Debug)]
pub struct Quotas {
    hierarchy: Hierarchy,
    cpu: TaskCpu,
}

impl Quotas {
    /// Finds a place for groups and makes sure that one with a quota can be made.
    ///
    /// # Errors
    /// [`QuotaError`] when no quota can be kept here.
    pub fn prepare(cpu: TaskCpu) -> Result<Self, QuotaError> {
        let hierarchy = match discover::find()? {
            discover::Found::V1 { group } => Hierarchy::V1(v1::Parent::new(group)),
            discover::Found::V2 { mount, group } => Hierarchy::V2(v2::Parent::choose(&mount, &group)?),
        };
        let quotas = Self { hierarchy, cpu };
        // Made and removed: what is not permitted is said now, and not after PostgreSQL was started.
        drop(quotas.make("trial")?);
        Ok(quotas)
    }

    /// A group for one process of a task. It is removed when the value is dropped, which must be after the process's end.
    ///
    /// # Errors
    /// [`QuotaError`] when it cannot be made.
    pub fn group(&self, task: TaskId) -> Result<Group, QuotaError> {
        // A task has two processes while it is replaced.
        self.make(&format!("{task}-{}", hex::encode(rand::random::<[u8; 3]>())))
    }

    fn make(&self, name: &str) -> Result<Group, QuotaError> {
        let path = self.parent().join(format!("{PREFIX}{}-{name}", std::process::id()));
        fs::create_dir(&path).map_err(|source| QuotaError::not_permitted(&path, source))?;
        let group = Group { path };
        match &self.hierarchy {
            Hierarchy::V1(_) => v1::limit(&group.path, self.cpu)?,
            Hierarchy::V2(_) => v2::limit(&group.path, self.cpu)?,
        }
        Ok(group)
    }

    fn parent(&self) -> &Path {
        match &self.hierarchy {
            Hierarchy::V1(parent) => parent.path(),
            Hierarchy::V2(parent) => parent.path(),
        }
    }
}

/// One group with a quota.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// The file that a process writes itself into.
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails while a process is in it; the next stack removes it then.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Puts the calling process into the group named by [`JOIN_VARIABLE`], if there is one.
///
/// A task does this itself, first of all: were it moved by its parent, threads and caches would already be sized for the
/// whole machine.
///
/// # Errors
/// The group is gone, or this user may not enter it.
pub fn join_from_environment() -> io::Result<()> {
    let Some(procs) = std::env::var_os(JOIN_VARIABLE) else { return Ok(()) };
    let join =
        || fs::OpenOptions::new().write(true).open(&procs).and_then(|mut file| io::Write::write_all(&mut file, b"0"));
    join()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot enter {}: {error}", Path::new(&procs).display())))
}

/// Removes what stacks have left that were killed: empty groups, wherever one of ours could have made them. A stack does so at its
/// start, with a quota of its own or without.
pub fn remove_left_behind() {
    match discover::find() {
        Ok(discover::Found::V1 { group }) => remove_dead(&group),
        Ok(discover::Found::V2 { mount, group }) => {
            group.ancestors().take_while(|group| group.starts_with(&mount)).for_each(remove_dead);
        }
        // Where there are no groups, none was left.
        Err(_) => {}
    }
}

/// Removes empty groups whose stack is dead, such as after `kill -9`.
fn remove_dead(parent: &Path) {
    let Ok(groups) = fs::read_dir(parent) else { return };
    for group in groups.flatten() {
        let name = group.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_dir(group.path());
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), QuotaError> {
    // Opened without `create`: in a cgroup every file is there, and elsewhere none must appear.
    let written = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(|source| QuotaError::not_permitted(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Service;

    #[test]
    fn units_are_fargates_and_become_time_and_threads() {
        for (text, quota_us, cpus) in [
            ("256", 25_000, 1),
            ("512", 50_000, 1),
            ("1024", 100_000, 1),
            ("2048", 200_000, 2),
            ("16384", 1_600_000, 16),
        ] {
            let cpu: TaskCpu = text.parse().expect(text);
            assert_eq!((cpu.quota_us(), cpu.whole_cpus()), (quota_us, cpus), "{text}");
        }
        for text in ["", "0", "257", "1vcpu", "-256", "0.25"] {
            assert!(text.parse::<TaskCpu>().is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let error = QuotaError::not_permitted(Path::new("/sys/fs/cgroup/x"), io::ErrorKind::PermissionDenied.into());
        assert!(error.to_string().contains("/sys/fs/cgroup/x"));
        assert!(error.advice().contains("Delegate=yes"));
    }

    #[test]
    fn groups_of_the_dead_are_removed_and_those_of_the_living_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        // No process has this number: it is above the kernel's limit (proc(5), pid_max).
        let [dead, living, other] =
            ["datum-4194999-auth-1".to_owned(), format!("{PREFIX}{}-x", std::process::id()), "x".to_owned()]
                .map(|name| parent.path().join(name));
        for group in [&dead, &living, &other] {
            fs::create_dir(group).expect("made");
        }
        remove_dead(parent.path());
        assert!(!dead.exists() && living.exists() && other.exists());
    }

    /// Where the machine that runs this test permits it (root on most build machines), the quota is really the kernel's.
    #[test]
    fn where_permitted_a_group_has_the_quota_and_goes_when_dropped() {
        let quotas = match Quotas::prepare(TaskCpu(256)) {
            Ok(quotas) => quotas,
            Err(QuotaError::NotPermitted { .. } | QuotaError::NoController(_)) => return,
        };
        let group = quotas.group(TaskId::new(Service::Auth, 1)).expect("a group");
        let path = group.path.clone();
        let limit = match quotas.hierarchy {
            Hierarchy::V1(_) => fs::read_to_string(path.join("cpu.cfs_quota_us")),
            Hierarchy::V2(_) => fs::read_to_string(path.join("cpu.max")),
        };
        assert!(limit.expect("a limit").starts_with("25000"));
        assert!(group.procs().exists());
        drop(group);
        assert!(!path.exists());
    }
}
