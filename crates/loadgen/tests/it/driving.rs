//! Runs a scenario against a stub and keeps what it told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use envelope::result::{Dataset, EndpointInterval, Interval, Work};
use loadgen::run::{Event, LoadError, Outcome, Plan, Timeouts, run};
use loadgen::scenario::Scenario;
use serde_json::{Value, json};
use service_kit::clock::ManualClock;
use time::macros::datetime;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

/// What a run left.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) intervals: Vec<Interval>,
}

impl Ran {
    /// All seconds of an endpoint, merged.
    pub(crate) fn endpoint(&self, name: &str) -> EndpointInterval {
        let mut all = EndpointInterval::default();
        for endpoint in self.intervals.iter().filter_map(|interval| interval.endpoints.get(name)) {
            all.latency.merge(&endpoint.latency);
            all.failed_latency.merge(&endpoint.failed_latency);
            all.unattributed.merge(&endpoint.unattributed);
            all.failures.extend(endpoint.failures.iter().cloned());
            for (stage, times) in &endpoint.stages {
                all.stages.entry(stage.clone()).or_default().merge(times);
            }
        }
        all
    }

    pub(crate) fn work(&self) -> Work {
        self.intervals.iter().fold(Work::default(), |all, interval| Work {
            offered: all.offered + interval.work.offered,
            started: all.started + interval.work.started,
            completed: all.completed + interval.work.completed,
            dropped: all.dropped + interval.work.dropped,
        })
    }

    /// Failures of an endpoint: `status code answerer` → how often.
    pub(crate) fn failures(&self, endpoint: &str) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for it in self.endpoint(endpoint).failures {
            let status = it.failure.status.map_or("-".to_owned(), |status| status.to_string());
            *counts.entry(format!("{status} {} {:?}", it.failure.code, it.failure.answerer)).or_default() += it.count;
        }
        counts
    }

    pub(crate) fn all_failures(&self) -> u64 {
        let endpoints = self.intervals.iter().flat_map(|interval| interval.endpoints.values());
        endpoints.map(|endpoint| endpoint.failed_latency.count()).sum()
    }
}

/// `vus` users with a constant think time, measured from the first second on.
pub(crate) fn closed(vus: u32, think_seconds: f64, seconds: u32, mix: &Value) -> Scenario {
    let think_time = json!({"distribution": "constant", "mean_seconds": think_seconds});
    let model = json!({"kind": "closed", "vus": vus, "think_time": think_time});
    scenario(&model, seconds, mix, "per_vu")
}

/// Constant arrivals.
pub(crate) fn open(rate: f64, max_vus: u32, seconds: u32, mix: &Value) -> Scenario {
    let model = json!({"kind": "open", "arrivals_per_second": rate, "max_vus": max_vus, "arrivals": "constant"});
    scenario(&model, seconds, mix, "per_vu")
}

pub(crate) fn scenario(model: &Value, seconds: u32, mix: &Value, identities: &str) -> Scenario {
    let tokens = mix.as_array().unwrap().iter().any(|it| it["endpoint"] == "get-user" || it["endpoint"] == "upload");
    let scenario = json!({
        "name": "test", "description": "a test", "question": "does it hold?", "model": model,
        "phases": [{"kind": "measure", "seconds": seconds}], "mix": mix, "identities": identities,
        "tokens": if tokens { "set_up" } else { "none" },
    });
    Scenario::parse(&scenario.to_string(), "test").unwrap()
}

pub(crate) fn get_user() -> Value {
    json!([{"endpoint": "get-user", "weight": 1}])
}

pub(crate) fn register() -> Value {
    json!([{"endpoint": "register", "weight": 1}])
}

pub(crate) fn plan(scenario: Scenario, target: Url) -> Plan {
    let timeouts = Timeouts { drain: Duration::from_secs(20), ..Timeouts::default() };
    Plan { timeouts, ..Plan::new(scenario, target, 1, "test") }
}

pub(crate) fn with_users(plan: Plan, users: u64) -> Plan {
    Plan { dataset: Some(Dataset { users, seed: 3, distinct_hashes: 4 }), ..plan }
}

pub(crate) async fn drive(plan: Plan) -> Ran {
    drive_watched(plan, |_, _| {}).await.unwrap()
}

/// Runs, and shows every event as it comes, with what stops the run.
pub(crate) async fn drive_watched(
    plan: Plan,
    mut watch: impl FnMut(&Event, &CancellationToken),
) -> Result<Ran, LoadError> {
    let (events, mut happening) = mpsc::channel(4);
    let stop = CancellationToken::new();
    let clock = Arc::new(ManualClock::at(datetime!(2026-03-01 12:00 UTC)));
    let running = tokio::spawn(run(plan, clock, events, stop.clone()));
    let mut intervals = Vec::new();
    while let Some(event) = happening.recv().await {
        watch(&event, &stop);
        if let Event::Interval(interval) = event {
            intervals.push(*interval);
        }
    }
    let outcome = running.await.unwrap()?;
    let seconds: Vec<u32> = intervals.iter().map(|interval| interval.second).collect();
    assert!(
        seconds.iter().copied().eq(0..u32::try_from(seconds.len()).unwrap()),
        "seconds in order, none missing: {seconds:?}"
    );
    Ok(Ran { outcome, intervals })
}
