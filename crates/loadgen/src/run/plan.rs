//! What is to be run against what.

use std::num::NonZeroUsize;
use std::time::Duration;

use url::Url;

use crate::client::Trust;
use crate::dataset::Dataset;
use crate::scenario::Scenario;

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The load, with the run's overrides applied.
    pub scenario: Scenario,
    /// Where it goes: `http://127.0.0.1:8080`; https as well. A path before the API's is kept.
    pub target: Url,
    /// Decides arrivals, think times, the order of the mix and whom the drivers draw from the dataset.
    pub seed: u64,
    /// Makes the addresses of new accounts this run's own: the same database can be loaded again with the same seed. Lower-case
    /// letters, digits and hyphens, at most 32.
    pub tag: String,
    /// Whose certificates an https target's must be signed by.
    pub trust: Trust,
    /// The users that are there already; needed by scenarios with populated identities.
    pub dataset: Option<Dataset>,
    /// Threads that send, each with its own share of the virtual users. `None`: one for every eight cores, at least one: a
    /// thread sends tens of thousands of requests a second, and cores are better left to the target.
    pub threads: Option<NonZeroUsize>,
    /// How long is waited for what.
    pub timeouts: Timeouts,
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A connection, TLS included.
    pub connect: Duration,
    /// From the first byte of a request to the last of its answer.
    pub request: Duration,
    /// After the last phase, and after a stop: requests that are then still in flight are counted as `interrupted`.
    pub drain: Duration,
}

impl Default for Timeouts {
    /// 10 s, 60 s (k6's default), 30 s (k6's `gracefulStop`).
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), request: Duration::from_mins(1), drain: Duration::from_secs(30) }
    }
}

impl Plan {
    /// A run with defaults for what is rarely changed.
    #[must_use]
    pub fn new(scenario: Scenario, target: Url, seed: u64, tag: impl Into<String>) -> Self {
        Self {
            scenario,
            target,
            seed,
            tag: tag.into(),
            trust: Trust::default(),
            dataset: None,
            threads: None,
            timeouts: Timeouts::default(),
        }
    }
}
