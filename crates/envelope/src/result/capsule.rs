//! What was run, on what, and whether it may be believed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;

/// Everything about a run that its numbers do not say themselves. The report rebuilds from this and the intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capsule {
    /// The format's version: 1.
    pub format: u32,
    /// The folder's name: time and scenario.
    pub id: String,
    /// What the run is for, in a report of several: `steady state`, `exploratory`; free text.
    pub role: Option<String>,
    /// When the load began (UTC, RFC 3339).
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// When the last request had ended (UTC, RFC 3339).
    #[serde(with = "time::serde::rfc3339")]
    pub ended_at: OffsetDateTime,
    /// Whether it ran to its end.
    pub completion: Completion,
    /// Reasons for which the run says nothing about the target, one sentence each, found while it ran. Empty: none.
    pub void: Vec<String>,
    /// Things that a reader should know and that do not void it, one sentence each.
    pub warnings: Vec<String>,
    /// Which Datum wrote this: version and, where it was built from a repository, revision.
    pub datum: String,
    /// Who sent the requests.
    pub driver: Driver,
    /// The scenario's name.
    pub scenario: String,
    /// The scenario as it was run, whole.
    pub scenario_definition: Value,
    /// The load model with its numbers.
    pub load: Load,
    /// Seed of all random choices.
    pub seed: u64,
    /// Distinct identities that sent requests.
    pub identities: u64,
    /// The users that were there before.
    pub dataset: Option<Dataset>,
    /// What was loaded.
    pub target: Target,
    /// The phases, in order, without gaps.
    pub phases: Vec<Phase>,
    /// What was verified before the load: check name → outcome (`ok`, or what was wrong).
    pub verified: BTreeMap<String, String>,
    /// What the driver used, over the measured phase.
    pub generator: GeneratorUse,
    /// What the processes of an own stack used, over the measured phase; `None` where that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_use: Option<StackUse>,
    /// The machine of the driver; with an own stack, of everything.
    pub machine: Machine,
    /// Options of the command that started the run, as typed.
    pub command: Vec<String>,
}

impl Capsule {
    /// What the operator called the run: what stands in [`Self::id`] after time and scenario; `None` if nothing does.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        let (_time, rest) = self.id.split_once('-')?;
        // In a folder's name other characters stand for some of the scenario's, each for one.
        let end = rest.char_indices().map(|(at, _)| at).nth(self.scenario.chars().count())?;
        rest.get(end..)?.strip_prefix('-').filter(|label| !label.is_empty())
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// As the scenario says.
    Whole,
    /// Ended early by the operator; what was measured until then is valid.
    Interrupted,
    /// The target or the driver broke.
    Failed,
}

/// Who sent the requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// `native` or `k6`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The load model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "snake_case")]
pub enum Load {
    /// Each virtual user waits for its answer, thinks, and asks again: throughput depends on the answers.
    Closed {
        /// Virtual users while measuring.
        vus: u32,
        /// Mean think time in seconds; 0 for none.
        think_time_mean_seconds: f64,
    },
    /// Requests arrive whether or not earlier ones were answered.
    Open {
        /// Iterations a second while measuring.
        arrivals_per_second: f64,
    },
}

/// The users that were in the database before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    /// How many.
    pub users: u64,
    /// Their seed.
    pub seed: u64,
    /// How many distinct precomputed password hashes they share.
    pub distinct_hashes: u32,
}

/// What was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Where the requests went.
    pub url: String,
    /// Its own stack, when the run started one (or found one of this machine); `None` for a system elsewhere.
    pub stack: Option<StackFacts>,
}

/// A stack on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFacts {
    /// Tasks by service.
    pub tasks: BTreeMap<String, u32>,
    /// Database pool by service, per task.
    pub pools: BTreeMap<String, PoolSize>,
    /// CPU quota per task by service, in Fargate units (1024 = one core); absent without one.
    pub task_cpu_units: BTreeMap<String, u32>,
    /// Other settings that were given, by variable name. No secrets.
    pub settings: BTreeMap<String, String>,
    /// Version of PostgreSQL.
    pub postgres: String,
}

/// A database pool's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSize {
    /// Connections kept.
    pub min: u32,
    /// Connections at most.
    pub max: u32,
}

/// A stretch of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What happens in it.
    pub kind: PhaseKind,
    /// A name where there are several of a kind: `2x`, `back`.
    pub name: Option<String>,
    /// Its first second, counted as intervals are.
    pub from_second: u32,
    /// The first second after it.
    pub until_second: u32,
}

/// What happens in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// The load grows.
    Ramp,
    /// Full load, not measured yet.
    WarmUp,
    /// Full load, measured.
    Measure,
    /// The load falls.
    RampDown,
}

/// What the driver used over the measured phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// CPU seconds, user and system.
    pub cpu_seconds: Option<f64>,
    /// Peak resident memory in bytes.
    pub peak_memory_bytes: Option<u64>,
    /// Threads that sent requests.
    pub threads: Option<u32>,
}

/// What the processes of a stack used, over the measured phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StackUse {
    /// Length of the observation in seconds.
    pub seconds: f64,
    /// By process: `auth-1`, `actor-2`, …, `postgres` (with its workers), `balancer` (with the object store, in one process).
    pub processes: BTreeMap<String, ProcessUse>,
}

/// What one process, with everything that it started, used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// CPU seconds, user and system.
    pub cpu_seconds: f64,
    /// Its CPU quota in cores (0.25 for 256 Fargate units); `None` without one.
    pub quota_cores: Option<f64>,
    /// What the quota did; `None` without one, or where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttled>,
}

/// What a CPU quota did to a process (`cpu.stat` of its cgroup).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Throttled {
    /// Periods of the quota in which the process wanted to run.
    pub periods: u64,
    /// Those in which the quota was used up before their end.
    pub throttled_periods: u64,
    /// How long its threads together were kept from running, in seconds.
    pub seconds: f64,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system and kernel release.
    pub kernel: String,
    /// The CPU's model name.
    pub cpu_model: String,
    /// Logical CPUs.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
}
