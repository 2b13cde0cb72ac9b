//! Runs for the tests of this module.

use std::collections::BTreeMap;

use time::macros::datetime;

use crate::result::{
    Answerer, Capsule, Completion, Driver, Failure, FailureCount, GeneratorUse, Latencies, Load, Machine, Phase,
    PhaseKind, PoolSize, StackFacts, Target,
};
use crate::run::{Endpoint, LatencySummary, Run, Second, Source, SourceKind};

/// `count` latencies of `ms` milliseconds.
pub(crate) fn same(count: u64, ms: u64) -> LatencySummary {
    let mut latencies = Latencies::new();
    (0..count).for_each(|_| latencies.record_micros(ms * 1_000));
    LatencySummary::of(latencies)
}

/// An endpoint with `count` requests of `ms` milliseconds, stages (name, requests, milliseconds) and a rest.
pub(crate) fn endpoint_with_stages(count: u64, ms: u64, stages: &[(&str, u64, u64)], rest_ms: u64) -> Endpoint {
    let unattributed = if stages.is_empty() { LatencySummary::default() } else { same(count, rest_ms) };
    Endpoint {
        latency: same(count, ms),
        stages: stages.iter().map(|(name, count, ms)| ((*name).to_owned(), same(*count, *ms))).collect(),
        unattributed,
        ..Endpoint::default()
    }
}

/// A closed run of 10 users without think time over 60 seconds.
pub(crate) fn run<const N: usize>(label: &str, endpoints: [(&str, Endpoint); N]) -> Run {
    let endpoints: BTreeMap<String, Endpoint> =
        endpoints.into_iter().map(|(name, endpoint)| (name.to_owned(), endpoint)).collect();
    let requests: u64 = endpoints.values().map(|endpoint| endpoint.latency.count).sum();
    let mut all = Latencies::new();
    endpoints.values().filter_map(|endpoint| endpoint.latency.histogram.as_ref()).for_each(|one| all.merge(one));
    #[expect(clippy::cast_precision_loss, reason = "a few requests")]
    let throughput = requests as f64 / 60.0;
    Run {
        label: label.to_owned(),
        role: None,
        source: Source { kind: SourceKind::Native, path: None },
        capsule: None,
        load: Some(Load::Closed { vus: 10, think_time_mean_seconds: 0.0 }),
        tasks_per_service: None,
        seconds: Some(60.0),
        requests,
        throughput: Some(throughput),
        overall: LatencySummary::of(all),
        endpoints,
        failures: vec![],
        series: vec![],
        window: None,
        void: vec![],
        warnings: vec![],
    }
}

/// A run of which only the figures are known.
pub(crate) fn figures(label: &str, role: &str, tasks: u32, throughput: f64, mean_ms: f64) -> Run {
    Run {
        role: Some(role.to_owned()),
        source: Source { kind: SourceKind::Figures, path: None },
        load: Some(Load::Closed { vus: 200, think_time_mean_seconds: 0.82 }),
        tasks_per_service: Some(tasks),
        throughput: Some(throughput),
        requests: 40_000,
        seconds: None,
        overall: LatencySummary { count: 40_000, mean: Some(mean_ms), ..LatencySummary::default() },
        ..run(label, [])
    }
}

/// A second in which `requests` ended and `vus` users were active.
pub(crate) fn second(second: u32, requests: u64, vus: u32) -> Second {
    Second { second, requests, active_vus: vus, ..Second::default() }
}

/// A cause of failure.
pub(crate) fn failure(status: Option<u16>, code: &str, answerer: Answerer, count: u64) -> FailureCount {
    FailureCount { failure: Failure { status, code: code.to_owned(), answerer }, count }
}

/// A capsule of a run with so many identities.
pub(crate) fn capsule(identities: u64) -> Capsule {
    let by_service = |auth: u32, document: u32| [("auth".to_owned(), auth), ("document".to_owned(), document)].into();
    let pool = PoolSize { min: 5, max: 14 };
    Capsule {
        format: 1,
        id: "20261130T210000Z-baseline-mix".into(),
        role: None,
        started_at: datetime!(2026-11-30 21:00 UTC),
        ended_at: datetime!(2026-11-30 21:01 UTC),
        completion: Completion::Whole,
        void: vec![],
        warnings: vec![],
        datum: "0.1.0 (abcdef0)".into(),
        driver: Driver { name: "native".into(), version: "0.1.0".into() },
        scenario: "baseline-mix".into(),
        scenario_definition: serde_json::json!({ "question": "What does it carry?" }),
        load: Load::Closed { vus: 10, think_time_mean_seconds: 0.0 },
        seed: 7,
        identities,
        dataset: None,
        target: Target {
            url: "http://127.0.0.1:8080".into(),
            stack: Some(StackFacts {
                tasks: by_service(2, 1),
                pools: [("auth".to_owned(), pool), ("document".to_owned(), pool)].into(),
                task_cpu_units: by_service(256, 256),
                settings: [("AUTH_THROTTLE".to_owned(), "off".to_owned())].into(),
                postgres: "15".into(),
            }),
        },
        phases: vec![Phase { kind: PhaseKind::Measure, name: None, from_second: 0, until_second: 60 }],
        verified: [("login".to_owned(), "ok".to_owned())].into(),
        generator: GeneratorUse { cpu_seconds: None, peak_memory_bytes: None, threads: None },
        stack_use: None,
        machine: Machine { kernel: "Linux 6.1".into(), cpu_model: "A CPU".into(), cpus: 2, memory_bytes: 8 << 30 },
        command: vec!["datum".into(), "bench".into(), "baseline-mix".into()],
    }
}

/// The published figures of the reference's five runs.
pub(crate) fn phase_4() -> Vec<Run> {
    let runs = [(1, 190.49, 232.05), (1, 189.32, 232.05), (2, 222.35, 75.28), (2, 221.79, 75.28), (2, 221.97, 75.28)];
    let role = |tasks| if tasks == 1 { "exploratory" } else { "steady state" };
    runs.map(|(tasks, rate, mean)| figures(&format!("r{rate}"), role(tasks), tasks, rate, mean)).to_vec()
}
