//! A run from totals: what k6's summaries and its end-of-test text have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::point::Tags;
use crate::as_float;
use crate::import::error::ImportError;
use crate::import::label;
use crate::result::{Anatomy, Answerer, Failure, FailureCount, Load};
use crate::run::{Endpoint, LatencySummary, Run, Source, SourceKind, Window, WindowRule};

/// Figures by k6's name of the metric, with its tags, and of the statistic (`avg`, `p(95)`, `count`, `passes`, …). Times are in
/// milliseconds.
#[derive(Debug, Default)]
pub(super) struct Totals {
    metrics: Vec<Entry>,
    /// Length of the whole run in seconds.
    pub(super) seconds: Option<f64>,
    /// Iterations a second that the executor was to begin, where that is known and it is one that does.
    pub(super) arrivals_per_second: Option<f64>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    tags: BTreeMap<String, String>,
    figures: Figures,
}

/// Figures by the name of the statistic.
pub(super) type Figures = BTreeMap<String, f64>;

impl Totals {
    /// Adds a metric by its full name, `http_req_duration{endpoint:login}`. The first of a name stands: the full text
    /// repeats all of them for each scenario and group, after the totals.
    pub(super) fn add(&mut self, full_name: &str, figures: Figures) {
        let (name, tags) = match full_name.split_once('{') {
            Some((name, tags)) => (name, self::tags(tags.trim_end().trim_end_matches('}'))),
            None => (full_name, BTreeMap::new()),
        };
        let (name, tags) = (name.trim().to_owned(), tags);
        if !self.metrics.iter().any(|entry| entry.name == name && entry.tags == tags) {
            self.metrics.push(Entry { name, tags, figures });
        }
    }

    /// The metric for `endpoint` (`None`: for all together) that fits best: of the measured phase before of the whole run, of
    /// expected answers before of all.
    fn best(&self, name: &str, endpoint: Option<&str>) -> Option<&Entry> {
        self.metrics
            .iter()
            .filter(|entry| entry.name == name && endpoint_of(&entry.tags) == endpoint)
            .filter_map(|entry| Some((fitness(&entry.tags)?, entry)))
            .max_by_key(|(fitness, _)| *fitness)
            .map(|(_, entry)| entry)
    }

    /// The metric for `endpoint` without any other tag.
    fn plain(&self, name: &str, endpoint: Option<&str>) -> Option<&Figures> {
        let plain = |entry: &&Entry| fitness(&entry.tags) == Some(0);
        let of = |entry: &&Entry| entry.name == name && endpoint_of(&entry.tags) == endpoint;
        self.metrics.iter().filter(plain).find(of).map(|entry| &entry.figures)
    }

    fn figure(&self, name: &str, statistic: &str) -> Option<f64> {
        self.plain(name, None)?.get(statistic).copied()
    }

    fn endpoints(&self) -> BTreeSet<&str> {
        let of_requests = ["http_req_duration", "http_reqs", "http_req_failed"];
        let entries = self.metrics.iter().filter(|entry| of_requests.contains(&entry.name.as_str()));
        entries.filter_map(|entry| endpoint_of(&entry.tags)).collect()
    }
}

fn tags(text: &str) -> BTreeMap<String, String> {
    text.split(',')
        .filter_map(|tag| tag.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

fn endpoint_of(tags: &BTreeMap<String, String>) -> Option<&str> {
    tags.get("endpoint").or_else(|| tags.get("name")).map(String::as_str)
}

/// `None` for metrics with tags that select something else.
fn fitness(tags: &BTreeMap<String, String>) -> Option<u32> {
    tags.iter().try_fold(0, |fitness, (name, value)| match (name.as_str(), value.as_str()) {
        ("endpoint" | "name", _) => Some(fitness),
        ("phase", "measure") => Some(fitness + 2),
        ("expected_response", "true") => Some(fitness + 1),
        _ => None,
    })
}

pub(super) fn run(path: &Path, kind: SourceKind, totals: &Totals) -> Result<Run, ImportError> {
    let of_requests = totals.plain("http_reqs", None);
    let count = |figures: &Figures| figures.get("count").copied().map(whole);
    let Some(requests) = of_requests.and_then(count).filter(|requests| *requests > 0) else {
        let reason = "it has no metric http_reqs with a count".into();
        return Err(ImportError::Empty { path: path.to_owned(), reason });
    };
    let rate = totals.figure("http_reqs", "rate").filter(|rate| *rate > 0.0);
    let seconds = totals.seconds.filter(|seconds| *seconds > 0.0).or(rate.map(|rate| as_float(requests) / rate));
    let throughput = rate.or(seconds.map(|seconds| as_float(requests) / seconds));

    let counted = counted_failures(totals);
    let endpoints: BTreeMap<String, Endpoint> =
        totals.endpoints().into_iter().map(|name| (name.to_owned(), endpoint(totals, name, &counted))).collect();
    let failures = completed(counted.iter().map(|(_, found)| found), failed(totals, None));
    let failed_requests = failed(totals, None).unwrap_or(0);
    let mut overall = totals.best("http_req_duration", None).map(summary).unwrap_or_default();
    if overall.count == 0 {
        overall.count = requests.saturating_sub(failed_requests);
    }
    let mut warnings = vec!["The figures are totals of the whole run, its beginning and end included.".to_owned()];
    let load = load(totals, requests, seconds, &mut warnings);
    Ok(Run {
        label: label(path),
        role: None,
        source: Source { kind, path: Some(path.to_owned()) },
        capsule: None,
        load,
        tasks_per_service: None,
        seconds,
        requests,
        throughput,
        overall,
        endpoints,
        failures,
        series: Vec::new(),
        window: seconds.map(|seconds| Window {
            from_second: 0,
            until_second: u32::try_from(whole(seconds)).unwrap_or(u32::MAX),
            found: WindowRule::Unknown,
        }),
        void: Vec::new(),
        warnings,
    })
}

fn endpoint(totals: &Totals, name: &str, counted: &[(Option<String>, FailureCount)]) -> Endpoint {
    let mut latency = totals.best("http_req_duration", Some(name)).map(summary).unwrap_or_default();
    let failed = failed(totals, Some(name));
    if latency.count == 0 {
        let requests = totals.plain("http_reqs", Some(name)).and_then(|figures| figures.get("count"));
        latency.count = requests.copied().map_or(0, whole).saturating_sub(failed.unwrap_or(0));
    }
    let own = counted.iter().filter(|(endpoint, _)| endpoint.as_deref() == Some(name)).map(|(_, found)| found);
    let stage_names: BTreeSet<&str> =
        totals.metrics.iter().filter_map(|entry| entry.name.strip_prefix("stage_")).collect();
    let stages = stage_names
        .into_iter()
        .filter_map(|stage| Some((stage.to_owned(), summary(totals.best(&format!("stage_{stage}"), Some(name))?))))
        .collect();
    Endpoint {
        latency,
        failed: LatencySummary { count: failed.unwrap_or(0), ..LatencySummary::default() },
        failures: completed(own, failed),
        stages,
        unattributed: totals.best("unattributed", Some(name)).map(summary).unwrap_or_default(),
        // k6's metrics do not say which values belong to one request.
        anatomy: Anatomy::default(),
    }
}

/// How many requests failed: of a rate metric, how often it was true.
fn failed(totals: &Totals, endpoint: Option<&str>) -> Option<u64> {
    totals.plain("http_req_failed", endpoint)?.get("passes").copied().map(whole)
}

/// The failures that Datum's scripts count, with their endpoint: `failures{endpoint:…,status:…,code:…,answerer:…}`.
fn counted_failures(totals: &Totals) -> Vec<(Option<String>, FailureCount)> {
    let with_cause = |entry: &&Entry| {
        entry.name == "failures" && (entry.tags.contains_key("status") || entry.tags.contains_key("code"))
    };
    totals
        .metrics
        .iter()
        .filter(with_cause)
        .filter_map(|entry| {
            let count = entry.figures.get("count").copied().map(whole).filter(|count| *count > 0)?;
            let mut of = Tags::default();
            entry.tags.iter().for_each(|(name, value)| of.set(name, value));
            Some((endpoint_of(&entry.tags).map(str::to_owned), FailureCount { failure: of.failure(), count }))
        })
        .collect()
}

/// Adds what failed and has no cause, as `unknown`.
fn completed<'a>(known: impl Iterator<Item = &'a FailureCount>, failed: Option<u64>) -> Vec<FailureCount> {
    let mut all: Vec<FailureCount> = known.cloned().collect();
    let explained: u64 = all.iter().map(|found| found.count).sum();
    let count = failed.unwrap_or(0).saturating_sub(explained);
    if count > 0 {
        let failure = Failure { status: None, code: "unknown".into(), answerer: Answerer::Unknown };
        all.push(FailureCount { failure, count });
    }
    crate::import::assemble::add_up(all)
}

fn summary(entry: &Entry) -> LatencySummary {
    let figure = |names: &[&str]| names.iter().find_map(|name| entry.figures.get(*name)).copied();
    LatencySummary {
        count: figure(&["count"]).map_or(0, whole),
        min: figure(&["min"]),
        mean: figure(&["avg"]),
        p50: figure(&["med", "p(50)"]),
        p90: figure(&["p(90)"]),
        p95: figure(&["p(95)"]),
        p99: figure(&["p(99)"]),
        p999: figure(&["p(99.9)"]),
        max: figure(&["max"]),
        histogram: None,
    }
}

fn load(totals: &Totals, requests: u64, seconds: Option<f64>, warnings: &mut Vec<String>) -> Option<Load> {
    let dropped = totals.figure("dropped_iterations", "count").unwrap_or(0.0);
    let iterations = totals.figure("iterations", "count").unwrap_or(0.0);
    if dropped > 0.0 {
        warnings.push(self::dropped(whole(dropped), whole(iterations)));
    }
    if let Some(arrivals_per_second) = totals.arrivals_per_second {
        return Some(Load::Open { arrivals_per_second });
    }
    if dropped > 0.0 {
        return seconds.map(|seconds| Load::Open { arrivals_per_second: (iterations + dropped) / seconds });
    }
    let vus = totals.figure("vus", "max").or(totals.figure("vus", "value")).or(totals.figure("vus_max", "max"))?;
    let vus = u32::try_from(whole(vus)).ok().filter(|vus| *vus > 0)?;
    warnings.push("The virtual users are taken as a closed model; the summary has their highest number only.".into());
    // What iterations lasted beyond their requests, per request.
    let lasted = totals.figure("iteration_duration", "avg").map(|mean| mean * iterations);
    let waited = totals.figure("http_req_duration", "avg").map(|mean| mean * as_float(requests));
    let thinking_ms = lasted.zip(waited).map_or(0.0, |(lasted, waited)| (lasted - waited).max(0.0));
    Some(Load::Closed { vus, think_time_mean_seconds: thinking_ms / 1_000.0 / as_float(requests) })
}

/// What a reader should know of iterations that were never begun.
pub(super) fn dropped(dropped: u64, ended: u64) -> String {
    let all = dropped + ended;
    format!(
        "k6 had no virtual user free for {dropped} of {all} iterations and dropped them: less was offered than asked for."
    )
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and negative counts are none")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
