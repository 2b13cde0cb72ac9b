//! One second of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Anatomy, Latencies};

/// What happened in one second. Requests are counted in the second in which they ended, whenever they started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Seconds since the load began: 0 covers [0 s, 1 s).
    pub second: u32,
    /// Work that the scenario asked for and what became of it.
    pub work: Work,
    /// Virtual users: those of a closed model at the end of the second; in an open one, those that were busy.
    pub active_vus: u32,
    /// The longest stretch that ended in this second and in which requests were under way and none ended, in milliseconds;
    /// `None` if no request ended in it, or the driver does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_silence_ms: Option<u32>,
    /// What the driver itself used.
    pub generator: GeneratorInterval,
    /// By the scenario's endpoint names (`login`, `get-user`, …).
    pub endpoints: BTreeMap<String, EndpointInterval>,
}

/// Iterations in one second. In an open model an iteration is one request that the arrival process asks for; in a closed
/// one, whatever a virtual user does between two think times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Asked for by the scenario. In a closed model this is `started`: users wait for answers.
    pub offered: u64,
    /// Begun.
    pub started: u64,
    /// Ended, well or not.
    pub completed: u64,
    /// Asked for and never begun, because every virtual user that the driver may have was busy.
    pub dropped: u64,
}

/// The driver's own condition in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorInterval {
    /// CPU seconds, user and system, of the driver's process (of the driver's threads, where it shares a process).
    pub cpu_seconds: f64,
    /// How late requests were begun: from the intended start to the first byte written, without waiting for a free
    /// virtual user. Long ones mean that the driver was the bottleneck.
    pub lateness: Latencies,
}

/// The endpoint name of what a driver sends outside the scenario's mix, such as renewing a token in mid-run. It has a row of
/// its own and is in no total: how often it happens is the driver's affair.
pub const SET_UP: &str = "set-up";

/// One endpoint in one second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointInterval {
    /// Of requests that ended as the scenario expects. Open model: from the intended start; closed: from the start.
    pub latency: Latencies,
    /// Of those that did not, kept apart so that fast failures improve nothing.
    pub failed_latency: Latencies,
    /// The failures by cause; the counts add up to `failed_latency`'s.
    pub failures: Vec<FailureCount>,
    /// Of expected answers: what the server says in `Server-Timing`, by stage name, `total` among them.
    pub stages: BTreeMap<String, Latencies>,
    /// Of expected answers that carried a `total`: service time seen by the client (from the actual start) minus that total.
    pub unattributed: Latencies,
    /// Of the same answers: what requests of each length consist of. Empty where a driver does not know the parts of single
    /// requests (k6).
    #[serde(default, skip_serializing_if = "Anatomy::is_empty")]
    pub anatomy: Anatomy,
}

/// A cause of failure and how often it struck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// What went wrong.
    #[serde(flatten)]
    pub failure: Failure,
    /// How often.
    pub count: u64,
}

/// What went wrong with one request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Failure {
    /// The HTTP status; `None` if no answer came.
    pub status: Option<u16>,
    /// The problem's `code`. Without an answer or a problem one of `connect`, `reset`, `timeout`, `protocol`,
    /// `interrupted`; `check:NAME` where the answer came and was not the right one; `unknown` where a source does not say.
    pub code: String,
    /// Who answered.
    pub answerer: Answerer,
}

/// Who gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerer {
    /// A task of a service: its answers carry `Server-Timing`.
    Task,
    /// The balancer itself (`server: datum-balancer`, `server: awselb/…`).
    Balancer,
    /// Nobody: the connection failed, or the driver gave up.
    Nobody,
    /// The source of the result does not say.
    Unknown,
}
