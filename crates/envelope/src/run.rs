//! One run as analysis and report see it, wherever its numbers came from.
//!
//! Sources differ in what they know. A native result and k6's own `json` and `csv` outputs have every second; k6's summaries
//! and its end-of-test text have totals and a few percentiles. What a source does not say is `None`, never a zero.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::result::{Anatomy, Capsule, FailureCount, Latencies, Load, Work};

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What tables call it: the folder's or file's name.
    pub label: String,
    /// What the run is for: `steady state`, `exploratory`, …
    pub role: Option<String>,
    /// Where it was read from.
    pub source: Source,
    /// What was run on what; only native results have it.
    pub capsule: Option<Capsule>,
    /// The load model, from the capsule or from what k6 says of its virtual users.
    pub load: Option<Load>,
    /// Tasks per service, where known and equal for all.
    pub tasks_per_service: Option<u32>,
    /// Length of the measured window in seconds.
    pub seconds: Option<f64>,
    /// Requests that ended in the window.
    pub requests: u64,
    /// Requests a second in the window.
    pub throughput: Option<f64>,
    /// Latency of expected answers, all endpoints together.
    pub overall: LatencySummary,
    /// By endpoint name.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// The failures in the window by cause, all endpoints together.
    pub failures: Vec<FailureCount>,
    /// Every second of the run, warm-up and all; empty where the source has totals only.
    pub series: Vec<Second>,
    /// Which stretch was measured, and how it was found.
    pub window: Option<Window>,
    /// Reasons for which the run says nothing about the target.
    pub void: Vec<String>,
    /// What a reader should know beside.
    pub warnings: Vec<String>,
}

impl Run {
    /// Requests that failed, whatever the cause.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.iter().map(|failure| failure.count).sum()
    }

    /// Expected answers a second: what is left of the throughput without the requests that failed.
    #[must_use]
    pub fn goodput(&self) -> Option<f64> {
        let failed = self.failed().min(self.requests);
        let share = if failed == 0 { 0.0 } else { crate::as_float(failed) / crate::as_float(self.requests) };
        self.throughput.map(|throughput| throughput * (1.0 - share))
    }

    /// Mean time from request to answer, right or wrong, in milliseconds: what the operational laws speak of. A failure that
    /// took two seconds has kept its user as long as an answer would. Where the times of failures are not known, the mean of
    /// expected answers.
    #[must_use]
    pub fn mean_response_ms(&self) -> Option<f64> {
        let good = self.overall.mean;
        let mix = self.endpoints.iter().filter(|(name, _)| name.as_str() != crate::result::SET_UP);
        let (mut count, mut sum) = (0, 0.0);
        for failed in mix.map(|(_, endpoint)| &endpoint.failed) {
            if let Some(mean) = failed.mean {
                count += failed.count;
                sum += mean * crate::as_float(failed.count);
            }
        }
        if count == 0 {
            return good;
        }
        let answered = self.overall.count;
        let of_answers = if answered == 0 { 0.0 } else { good? * crate::as_float(answered) };
        Some((of_answers + sum) / crate::as_float(answered + count))
    }
}

/// Where a run was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The kind of file.
    pub kind: SourceKind,
    /// The folder or file; `None` for figures given in code.
    pub path: Option<PathBuf>,
}

/// The kinds of result that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A result folder of Datum.
    Native,
    /// `k6 run --out json=…`
    K6Json,
    /// `k6 run --out csv=…`
    K6Csv,
    /// `k6 run --summary-export=…`
    K6SummaryExport,
    /// k6's machine-readable summary (`handleSummary` data, v1 and v2).
    K6Summary,
    /// k6's plain end-of-test text.
    K6Text,
    /// Figures from a published document.
    Figures,
}

/// Latencies, summed up. Milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencySummary {
    /// How many requests.
    pub count: u64,
    /// Shortest.
    pub min: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Longest.
    pub max: Option<f64>,
    /// Everything, where the source has it: other percentiles, charts and merging come from here.
    pub histogram: Option<Latencies>,
}

impl LatencySummary {
    /// Sums up a histogram and keeps it.
    #[must_use]
    pub fn of(histogram: Latencies) -> Self {
        Self {
            count: histogram.count(),
            min: histogram.min_ms(),
            mean: histogram.mean_ms(),
            p50: histogram.percentile_ms(50.0),
            p90: histogram.percentile_ms(90.0),
            p95: histogram.percentile_ms(95.0),
            p99: histogram.percentile_ms(99.0),
            p999: histogram.percentile_ms(99.9),
            max: histogram.max_ms(),
            histogram: Some(histogram),
        }
    }

    /// The percentile `percent`, if it is one of the fields.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let known = [(50.0, self.p50), (90.0, self.p90), (95.0, self.p95), (99.0, self.p99), (99.9, self.p999)];
        known.into_iter().find(|(known, _)| (known - percent).abs() < 1e-9).and_then(|(_, value)| value)
    }
}

/// One endpoint in the window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Endpoint {
    /// Latency of expected answers.
    pub latency: LatencySummary,
    /// Latency of failures.
    pub failed: LatencySummary,
    /// Failures by cause.
    pub failures: Vec<FailureCount>,
    /// What the server said, by stage name (`admission`, `pool`, `db`, `hash`, `idp`, `s3`, `verify`, `app`, `total`).
    pub stages: BTreeMap<String, LatencySummary>,
    /// Client time minus the server's `total`: network, balancer, accept queue.
    pub unattributed: LatencySummary,
    /// What requests of each length consist of; empty where the source does not know the parts of single requests.
    pub anatomy: Anatomy,
}

/// One second, for charts and for finding the steady state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// Seconds since the load began.
    pub second: u32,
    /// Iterations.
    pub work: Work,
    /// Virtual users.
    pub active_vus: u32,
    /// The longest stretch that ended in it and in which requests were under way and none ended, in milliseconds.
    pub longest_silence_ms: Option<u32>,
    /// Requests that ended, well or not.
    pub requests: u64,
    /// Those that failed.
    pub failed: u64,
    /// Latency of expected answers in milliseconds: mean, median, 95th and 99th percentile; `None` if there were none.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// The driver's own condition, where known.
    pub generator: Option<GeneratorSecond>,
}

/// The driver's condition in one second. Without the histogram that the result folder has: an hour of those is half a
/// gigabyte.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GeneratorSecond {
    /// CPU seconds, user and system.
    pub cpu_seconds: f64,
    /// 99th percentile of how late requests were begun, in milliseconds; `None` if none was.
    pub lateness_p99_ms: Option<f64>,
    /// The latest, in milliseconds.
    pub lateness_max_ms: Option<f64>,
}

/// A measured stretch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its first second.
    pub from_second: u32,
    /// The first second after it.
    pub until_second: u32,
    /// How its beginning was found.
    pub found: WindowRule,
}

/// How a window's beginning was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum WindowRule {
    /// The whole measured phase: the series is steady from its beginning.
    WholePhase,
    /// The rule cut this many seconds from the beginning of the measured phase.
    Truncated {
        /// Seconds cut off.
        seconds: u32,
    },
    /// No steady state was reached: the measured phase stands for itself, and the report says so.
    NeverReached {
        /// Why, with its numbers.
        reason: String,
    },
    /// The source has totals only.
    Unknown,
}
