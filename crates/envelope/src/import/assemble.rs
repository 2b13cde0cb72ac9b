//! From intervals to a run: series, window, figures.

use std::collections::BTreeMap;

use crate::as_float;
use crate::result::{EndpointInterval, Failure, FailureCount, Interval, Latencies, SET_UP};
use crate::run::{Endpoint, GeneratorSecond, LatencySummary, Second, Window, WindowRule};
use crate::statistics::{SteadyState, find_steady_state};

/// What intervals say once the measured window is known.
pub(super) struct Figures {
    pub(super) requests: u64,
    pub(super) overall: LatencySummary,
    pub(super) endpoints: BTreeMap<String, Endpoint>,
    pub(super) failures: Vec<FailureCount>,
}

/// One interval as a point of the series.
pub(super) fn second(interval: &Interval) -> Second {
    let mut latency = Latencies::new();
    let mut failed = 0;
    for (_, endpoint) in interval.endpoints.iter().filter(|(name, _)| *name != SET_UP) {
        latency.merge(&endpoint.latency);
        failed += endpoint.failed_latency.count();
    }
    Second {
        second: interval.second,
        work: interval.work,
        active_vus: interval.active_vus,
        longest_silence_ms: interval.longest_silence_ms,
        requests: latency.count() + failed,
        failed,
        mean_ms: latency.mean_ms(),
        p50_ms: latency.percentile_ms(50.0),
        p95_ms: latency.percentile_ms(95.0),
        p99_ms: latency.percentile_ms(99.0),
        generator: Some(GeneratorSecond {
            cpu_seconds: interval.generator.cpu_seconds,
            lateness_p99_ms: interval.generator.lateness.percentile_ms(99.0),
            lateness_max_ms: interval.generator.lateness.max_ms(),
        }),
    }
}

/// Finds the steady part of the seconds `from..until`. A second that is missing in the series is one without requests.
pub(super) fn find_window(series: &[Second], from: u32, until: u32) -> Window {
    /// A longer phase is a broken file, and its seconds would fill the memory.
    const MONTH_SECONDS: u32 = 31 * 86_400;
    let until = until.max(from);
    if until - from > MONTH_SECONDS {
        let reason = format!("the phase is said to last {} s, more than a month", until - from);
        return Window { from_second: from, until_second: until, found: WindowRule::NeverReached { reason } };
    }
    let length = (until - from) as usize;
    let (mut throughput, mut latency) = (vec![0.0; length], vec![None; length]);
    for second in series.iter().filter(|second| (from..until).contains(&second.second)) {
        let index = (second.second - from) as usize;
        throughput[index] = as_float(second.requests);
        latency[index] = second.mean_ms;
    }
    let (from_second, found) = match find_steady_state(&throughput, &latency) {
        SteadyState::FromTheStart => (from, WindowRule::WholePhase),
        SteadyState::After { seconds } => (from + seconds, WindowRule::Truncated { seconds }),
        SteadyState::NeverReached { reason } => (from, WindowRule::NeverReached { reason }),
    };
    Window { from_second, until_second: until, found }
}

/// Histograms of a window, merged as intervals come by.
#[derive(Default)]
pub(super) struct Merged {
    endpoints: BTreeMap<String, EndpointInterval>,
}

impl Merged {
    /// Adds one interval.
    pub(super) fn add(&mut self, interval: Interval) {
        for (name, from) in interval.endpoints {
            let Some(into) = self.endpoints.get_mut(&name) else {
                self.endpoints.insert(name, from);
                continue;
            };
            into.latency.merge(&from.latency);
            into.failed_latency.merge(&from.failed_latency);
            into.unattributed.merge(&from.unattributed);
            into.anatomy.merge(&from.anatomy);
            for (stage, latencies) in from.stages {
                into.stages.entry(stage).or_default().merge(&latencies);
            }
            into.failures.extend(from.failures);
        }
    }

    /// The figures of everything added.
    pub(super) fn figures(self) -> Figures {
        let mut overall = Latencies::new();
        let mut requests = 0;
        let mut failures = Vec::new();
        let endpoints = self
            .endpoints
            .into_iter()
            .map(|(name, merged)| {
                let of_endpoint = add_up(merged.failures);
                if name != SET_UP {
                    overall.merge(&merged.latency);
                    requests += merged.latency.count() + merged.failed_latency.count();
                    failures.extend(of_endpoint.iter().cloned());
                }
                let endpoint = Endpoint {
                    latency: LatencySummary::of(merged.latency),
                    failed: LatencySummary::of(merged.failed_latency),
                    failures: of_endpoint,
                    stages: merged.stages.into_iter().map(|(name, stage)| (name, LatencySummary::of(stage))).collect(),
                    unattributed: LatencySummary::of(merged.unattributed),
                    anatomy: merged.anatomy,
                };
                (name, endpoint)
            })
            .collect();
        Figures { requests, overall: LatencySummary::of(overall), endpoints, failures: add_up(failures) }
    }
}

/// One entry a cause, in a fixed order.
pub(super) fn add_up(failures: Vec<FailureCount>) -> Vec<FailureCount> {
    let mut counts: BTreeMap<Failure, u64> = BTreeMap::new();
    for FailureCount { failure, count } in failures {
        *counts.entry(failure).or_default() += count;
    }
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(failure, count)| FailureCount { failure, count }).collect()
}
