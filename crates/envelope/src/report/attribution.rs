//! Where an endpoint's time went: its mean divided among the server's stages and the rest.
//!
//! Means are divided because means add up. A stage's mean is taken over all requests of the endpoint, also over those
//! that did not pass it, so that the parts sum up to the whole.

use super::group::merged;
use crate::result::Load;
pub use crate::result::{CLIENT_WAIT, UNATTRIBUTED, UNNAMED};
use crate::run::{Endpoint, LatencySummary, Run};

/// The stages of a request in the order in which it passes them; around them `client wait` (open model: from the intended
/// to the actual start) and `unattributed` (network, balancer, accept queue).
pub const STAGES: [&str; 8] = ["admission", "verify", "pool", "db", "hash", "idp", "s3", "app"];

/// Less than this share of the mean is rounding, not a part.
const NEGLIGIBLE: f64 = 0.005;

/// One endpoint's time, divided.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// The endpoint's name.
    pub endpoint: String,
    /// The mean that is divided, in milliseconds.
    pub mean_ms: f64,
    /// In the order in which a request passes them.
    pub parts: Vec<Part>,
    /// Stages that no answer named.
    pub not_recorded: Vec<&'static str>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name.
    pub stage: String,
    /// Its mean over all requests of the endpoint, in milliseconds.
    pub mean_ms: f64,
    /// Its share of the mean.
    pub share: f64,
    /// Its own distribution over the requests that passed it; `None` where a part is only known as a difference.
    pub summary: Option<LatencySummary>,
}

impl Breakdown {
    /// The part of a stage.
    #[must_use]
    pub fn part(&self, stage: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.stage == stage)
    }

    /// The largest part.
    #[must_use]
    pub fn largest(&self) -> Option<&Part> {
        self.parts.iter().max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

/// Divides the time of an endpoint over all of `runs` together; `None` if no answer carried a `total`.
#[must_use]
pub fn breakdown(runs: &[&Run], endpoint: &str) -> Option<Breakdown> {
    let those: Vec<(&Run, &Endpoint)> =
        runs.iter().filter_map(|run| run.endpoints.get(endpoint).map(|endpoint| (*run, endpoint))).collect();
    let of_all = |of: &dyn Fn(&Endpoint) -> Option<LatencySummary>| {
        let parts: Vec<LatencySummary> = those.iter().filter_map(|(_, endpoint)| of(endpoint)).collect();
        merged(&parts)
    };
    let stage = |name: &'static str| of_all(&|endpoint| endpoint.stages.get(name).cloned());
    let total = stage("total");
    let (requests, total_mean) = (total.count, total.mean?);
    let rest = of_all(&|endpoint| Some(endpoint.unattributed.clone()));

    let mut parts = Vec::new();
    let is_open = those.iter().all(|(run, _)| matches!(run.load, Some(Load::Open { .. })));
    let seen = total_mean + rest.mean.unwrap_or(0.0);
    let latency = of_all(&|endpoint| Some(endpoint.latency.clone()));
    if let Some(wait) = latency.mean.map(|mean| mean - seen).filter(|wait| is_open && *wait > NEGLIGIBLE * seen) {
        parts.push((CLIENT_WAIT, wait, None));
    }
    let mut not_recorded = Vec::new();
    let mut named = 0.0;
    for name in STAGES {
        let summary = stage(name);
        match mean_over(&summary, requests) {
            Some(mean) => {
                named += mean;
                parts.push((name, mean, Some(summary)));
            }
            None => not_recorded.push(name),
        }
    }
    if total_mean - named > NEGLIGIBLE * total_mean {
        parts.push((UNNAMED, total_mean - named, None));
    }
    match rest.mean {
        Some(mean) => parts.push((UNATTRIBUTED, mean, Some(rest))),
        None => not_recorded.push(UNATTRIBUTED),
    }

    let mean_ms: f64 = parts.iter().map(|(_, mean, _)| mean).sum();
    let part = |(stage, mean, summary): (&str, f64, Option<LatencySummary>)| Part {
        stage: stage.to_owned(),
        mean_ms: mean,
        share: if mean_ms > 0.0 { mean / mean_ms } else { 0.0 },
        summary,
    };
    Some(Breakdown {
        endpoint: endpoint.to_owned(),
        mean_ms,
        parts: parts.into_iter().map(part).collect(),
        not_recorded,
    })
}

/// The stage whose mean grew most from one breakdown to another, and by how many milliseconds; `None` if none grew.
#[must_use]
pub fn most_grown(before: &Breakdown, after: &Breakdown) -> Option<(String, f64)> {
    let grown = after.parts.iter().map(|part| {
        let was = before.part(&part.stage).map_or(0.0, |part| part.mean_ms);
        (part.stage.clone(), part.mean_ms - was)
    });
    grown.filter(|(_, by)| *by > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// A stage's mean as a share of all requests, not only of those that passed it.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn mean_over(summary: &LatencySummary, requests: u64) -> Option<f64> {
    let mean = summary.mean?;
    Some(if requests == 0 { mean } else { mean * summary.count as f64 / requests as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{endpoint_with_stages, run};

    #[test]
    fn parts_sum_up_to_the_whole_also_where_not_every_request_passed_them() {
        // 10 requests of 100 ms in the service; only 5 of them hash for 80 ms; 20 ms outside.
        let mut endpoint = endpoint_with_stages(10, 120, &[("db", 10, 10), ("app", 10, 50), ("total", 10, 100)], 20);
        endpoint.stages.extend(endpoint_with_stages(10, 0, &[("hash", 5, 80)], 0).stages);
        let run = run("r", [("login", endpoint)]);
        let breakdown = breakdown(&[&run], "login").unwrap();
        let shares: Vec<(&str, f64)> =
            breakdown.parts.iter().map(|part| (part.stage.as_str(), (part.mean_ms * 10.0).round() / 10.0)).collect();
        assert_eq!(shares, [("db", 10.0), ("hash", 40.0), ("app", 50.0), ("unattributed", 20.0)]);
        assert!((breakdown.parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(breakdown.not_recorded, ["admission", "verify", "pool", "idp", "s3"]);
        assert_eq!(breakdown.largest().unwrap().stage, "app");
    }

    #[test]
    fn time_before_the_start_is_a_part_of_its_own_in_an_open_run() {
        let endpoint = endpoint_with_stages(10, 150, &[("app", 10, 100), ("total", 10, 100)], 20);
        let closed = run("r", [("login", endpoint)]);
        assert!(breakdown(&[&closed], "login").unwrap().part(CLIENT_WAIT).is_none());
        let open = Run { load: Some(Load::Open { arrivals_per_second: 10.0 }), ..closed };
        let wait = breakdown(&[&open], "login").unwrap().part(CLIENT_WAIT).unwrap().mean_ms;
        assert!((wait - 30.0).abs() < 0.5, "{wait}");
    }

    #[test]
    fn without_the_servers_word_nothing_is_divided() {
        let run = run("r", [("login", endpoint_with_stages(10, 120, &[], 0))]);
        assert_eq!(breakdown(&[&run], "login"), None);
        assert_eq!(breakdown(&[&run], "upload"), None);
    }

    #[test]
    fn the_stage_that_grew_is_named() {
        let of = |db: u64| {
            let stages = [("db", 10, db), ("app", 10, 50), ("total", 10, db + 50)];
            breakdown(&[&run("r", [("login", endpoint_with_stages(10, db + 60, &stages, 10))])], "login").unwrap()
        };
        let (stage, by) = most_grown(&of(10), &of(60)).unwrap();
        assert_eq!(stage, "db");
        assert!((by - 50.0).abs() < 0.5, "{by}");
        assert_eq!(most_grown(&of(10), &of(10)), None);
    }
}
