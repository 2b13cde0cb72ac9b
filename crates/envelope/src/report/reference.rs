//! Published figures that a report can stand beside its own.

use std::collections::BTreeSet;

use crate::run::Run;

/// A published performance envelope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// What its columns are called.
    pub name: &'static str,
    /// What it is of, and what follows for a comparison.
    pub source: &'static str,
    /// Its runs in their order.
    pub runs: &'static [ReferenceRun],
    /// Latency over all endpoints.
    pub latency: &'static [ReferenceLatency],
    /// By endpoint, as ranges over its runs.
    pub endpoints: &'static [ReferenceEndpoint],
    /// Failed and all requests.
    pub errors: (u64, u64),
    /// The failures by status, with its explanation.
    pub failures: &'static [(u16, &'static str)],
}

/// One of its runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceRun {
    /// Its role.
    pub role: &'static str,
    /// Tasks per service.
    pub tasks_per_service: u32,
    /// Requests a second.
    pub throughput: f64,
}

/// Latency of some of its runs. Milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceLatency {
    /// Which runs.
    pub name: &'static str,
    /// Tasks per service.
    pub tasks_per_service: u32,
    /// Median.
    pub p50: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// One of its endpoints: what was published of it, as it was published.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceEndpoint {
    /// Its name here.
    pub endpoint: &'static str,
    /// Arithmetic mean.
    pub mean: &'static str,
    /// Median, where given.
    pub p50: Option<&'static str>,
    /// 95th percentile, where given.
    pub p95: Option<&'static str>,
    /// 99th percentile, where given.
    pub p99: Option<&'static str>,
}

impl Reference {
    /// The one that these runs were made to stand beside: that of `datum bench phase4` for runs of it.
    #[must_use]
    pub fn of_runs(runs: &[Run]) -> Option<Self> {
        let is_phase_4 = |run: &Run| {
            run.capsule.as_ref().is_some_and(|capsule| capsule.command.iter().any(|argument| argument == "phase4"))
        };
        (!runs.is_empty() && runs.iter().all(is_phase_4)).then_some(PHASE_4)
    }

    /// The throughput of its runs with so many tasks per service.
    #[must_use]
    pub fn rates_with_tasks(&self, tasks_per_service: u32) -> Vec<f64> {
        let runs = self.runs.iter().filter(|run| run.tasks_per_service == tasks_per_service);
        runs.map(|run| run.throughput).collect()
    }

    /// The task counts of its runs, ascending.
    #[must_use]
    pub fn task_counts(&self) -> BTreeSet<u32> {
        self.runs.iter().map(|run| run.tasks_per_service).collect()
    }

    /// The throughput of all its runs.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.throughput).collect()
    }

    /// What it says of an endpoint.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> Option<&ReferenceEndpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.endpoint == name)
    }
}

/// "Phase 4", the performance envelope that `datum bench phase4` repeats: 200 virtual users for three minutes against such a
/// system on ECS Fargate with Cognito.
pub const PHASE_4: Reference = Reference {
    name: "Reference",
    source: "The reference is a \"Phase 4\" performance envelope of such a system on ECS Fargate behind an ALB, with \
             Cognito as identity provider: 200 virtual users, about 3 minutes a run, k6. Other hardware, another network and \
             another identity provider: its figures show whether the shapes agree, not which system is faster. Its think \
             time was not published; its own figures imply about 0.82 s, so that its 222 requests a second are what 200 such \
             users send, not what the system could carry.",
    runs: &[
        ReferenceRun { role: "exploratory", tasks_per_service: 1, throughput: 190.49 },
        ReferenceRun { role: "exploratory, pool tuned", tasks_per_service: 1, throughput: 189.32 },
        ReferenceRun { role: "steady state", tasks_per_service: 2, throughput: 222.35 },
        ReferenceRun { role: "steady state", tasks_per_service: 2, throughput: 221.79 },
        ReferenceRun { role: "steady state", tasks_per_service: 2, throughput: 221.97 },
    ],
    latency: &[
        ReferenceLatency {
            name: "saturated",
            tasks_per_service: 1,
            p50: 180.7,
            mean: 232.05,
            p95: 793.0,
            p99: 1_170.0,
        },
        ReferenceLatency { name: "scaled", tasks_per_service: 2, p50: 6.5, mean: 75.28, p95: 364.0, p99: 852.0 },
    ],
    endpoints: &[
        ReferenceEndpoint {
            endpoint: "get-user",
            mean: "14 to 159",
            p50: Some("about 6"),
            p95: None,
            p99: Some("200 to 697"),
        },
        ReferenceEndpoint {
            endpoint: "login",
            mean: "551 to 1,010",
            p50: None,
            p95: Some("up to 6,000"),
            p99: Some("up to 7,300"),
        },
        ReferenceEndpoint { endpoint: "register", mean: "803 to 1,010", p50: None, p95: None, p99: None },
        ReferenceEndpoint { endpoint: "upload", mean: "60 to 246", p50: None, p95: None, p99: None },
    ],
    errors: (9, 379_269),
    failures: &[(502, "transient edge"), (401, "test-data concurrency"), (400, "registration race")],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{capsule, run};

    #[test]
    fn runs_of_the_same_experiment_have_the_reference_beside_them() {
        let made_by = |command: &[&str]| {
            let command = command.iter().map(ToString::to_string).collect();
            Run { capsule: Some(crate::result::Capsule { command, ..capsule(200) }), ..run("a", []) }
        };
        let phase_4 = made_by(&["datum", "bench", "phase4", "--short"]);
        assert_eq!(Reference::of_runs(&[phase_4.clone(), phase_4.clone()]).map(|it| it.errors), Some((9, 379_269)));
        assert_eq!(Reference::of_runs(&[phase_4, made_by(&["datum", "bench", "smoke"])]), None);
        assert_eq!(Reference::of_runs(&[]), None);
    }
}
