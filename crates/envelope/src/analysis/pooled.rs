//! One figure of a group of runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::run::{LatencySummary, Run};
use crate::statistics::{Sample, Support, support};

/// Something that can be compared between groups of runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Metric {
    /// Of which endpoint; `None` for all together.
    pub endpoint: Option<String>,
    /// What of it.
    pub quantity: Quantity,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Requests a second: more is faster.
    Throughput,
    /// Mean latency in milliseconds.
    Mean,
    /// Median latency in milliseconds.
    P50,
    /// 95th percentile of latency in milliseconds.
    P95,
    /// 99th percentile of latency in milliseconds.
    P99,
}

impl Quantity {
    /// The latencies, in order.
    pub const LATENCIES: [Self; 4] = [Self::Mean, Self::P50, Self::P95, Self::P99];

    /// Whether a larger figure is the better one.
    #[must_use]
    pub fn more_is_faster(self) -> bool {
        self == Self::Throughput
    }

    /// The percentile that it is, 0 to 100.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        match self {
            Self::Throughput | Self::Mean => None,
            Self::P50 => Some(50.0),
            Self::P95 => Some(95.0),
            Self::P99 => Some(99.0),
        }
    }

    pub(super) fn of(self, latency: &LatencySummary) -> Option<f64> {
        match self {
            Self::Throughput => None,
            Self::Mean => latency.mean,
            Self::P50 => latency.p50,
            Self::P95 => latency.p95,
            Self::P99 => latency.p99,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Throughput => "throughput",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
        })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => write!(f, "{endpoint} {}", self.quantity),
            None => self.quantity.fmt(f),
        }
    }
}

impl Metric {
    /// The figure of one run; `None` where the run does not say.
    #[must_use]
    pub fn of(&self, run: &Run) -> Option<f64> {
        match (&self.endpoint, self.quantity) {
            (None, Quantity::Throughput) => run.throughput,
            (Some(endpoint), Quantity::Throughput) => {
                let endpoint = run.endpoints.get(endpoint)?;
                let requests = endpoint.latency.count + endpoint.failed.count;
                Some(crate::as_float(requests) / run.seconds.filter(|seconds| *seconds > 0.0)?)
            }
            _ => self.quantity.of(self.latency(run)?),
        }
    }

    /// How well the requests of a group support it. Where histograms are merged all of them do; elsewhere those of one run.
    pub(super) fn support(&self, runs: &[Run]) -> Support {
        let Some(percent) = self.quantity.percent() else { return Support::Good };
        let latencies: Vec<&LatencySummary> = runs.iter().filter_map(|run| self.latency(run)).collect();
        let merged = latencies.iter().all(|latency| latency.histogram.is_some());
        let counts = latencies.iter().map(|latency| latency.count);
        support(percent, if merged { counts.sum() } else { counts.min().unwrap_or(0) })
    }

    fn latency<'a>(&self, run: &'a Run) -> Option<&'a LatencySummary> {
        match &self.endpoint {
            None => Some(&run.overall),
            Some(endpoint) => run.endpoints.get(endpoint).map(|endpoint| &endpoint.latency),
        }
    }
}

/// A metric of a group, ready to be resampled by runs.
pub(super) struct Pooled {
    /// The runs' own figures.
    pub(super) figures: Vec<f64>,
    kind: Kind,
}

enum Kind {
    /// The mean of the runs' figures.
    Mean,
    /// The middle one of the runs' percentiles, where histograms are missing: an order statistic, not an average.
    MiddleRun,
    /// The percentile of the merged histograms: `(upper edge in ms, count in each run)`, ascending.
    Merged { percent: f64, cells: Vec<(f64, Vec<u64>)> },
}

impl Pooled {
    /// `None` unless every run has the figure.
    pub(super) fn of(metric: &Metric, runs: &[Run]) -> Option<Self> {
        let figures: Vec<f64> = runs.iter().map(|run| metric.of(run)).collect::<Option<_>>()?;
        if figures.is_empty() || figures.iter().any(|figure| !figure.is_finite()) {
            return None;
        }
        let kind = match metric.quantity.percent() {
            None => Kind::Mean,
            Some(percent) => cells(metric, runs).map_or(Kind::MiddleRun, |cells| Kind::Merged { percent, cells }),
        };
        Some(Self { figures, kind })
    }

    /// The runs' figures, summed up.
    pub(super) fn sample(&self) -> Option<Sample> {
        Sample::of(&self.figures)
    }

    /// The group's figure with every run once.
    pub(super) fn figure(&self) -> Option<f64> {
        self.drawn(&vec![1; self.figures.len()])
    }

    /// The group's figure with each run as often as drawn.
    pub(super) fn drawn(&self, counts: &[u32]) -> Option<f64> {
        let total: u32 = counts.iter().sum();
        if total == 0 {
            return None;
        }
        match &self.kind {
            Kind::Mean => {
                let sum: f64 = self.figures.iter().zip(counts).map(|(figure, count)| figure * f64::from(*count)).sum();
                Some(sum / f64::from(total))
            }
            Kind::MiddleRun => {
                let mut drawn: Vec<f64> = self
                    .figures
                    .iter()
                    .zip(counts)
                    .flat_map(|(figure, count)| std::iter::repeat_n(*figure, *count as usize))
                    .collect();
                drawn.sort_by(f64::total_cmp);
                drawn.get((drawn.len() - 1) / 2).copied()
            }
            Kind::Merged { percent, cells } => merged_percentile(*percent, cells, counts),
        }
    }
}

fn cells(metric: &Metric, runs: &[Run]) -> Option<Vec<(f64, Vec<u64>)>> {
    let mut cells: std::collections::BTreeMap<u64, (f64, Vec<u64>)> = std::collections::BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for (edge, count) in metric.latency(run)?.histogram.as_ref()?.recorded() {
            // Edges are positive, and the bits of positive floats sort as they do.
            cells.entry(edge.to_bits()).or_insert_with(|| (edge, vec![0; runs.len()])).1[index] += count;
        }
    }
    Some(cells.into_values().collect())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank among counts")]
fn merged_percentile(percent: f64, cells: &[(f64, Vec<u64>)], counts: &[u32]) -> Option<f64> {
    let weight = |cell: &[u64]| cell.iter().zip(counts).map(|(have, drawn)| have * u64::from(*drawn)).sum::<u64>();
    let total: u64 = cells.iter().map(|(_, cell)| weight(cell)).sum();
    // The smallest value that `percent` of all do not exceed, as HdrHistogram defines it.
    let rank = ((percent / 100.0 * crate::as_float(total)).ceil() as u64).max(1);
    let mut below = 0;
    cells.iter().find_map(|(edge, cell)| {
        below += weight(cell);
        (below >= rank && total > 0).then_some(*edge)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::result::Latencies;
    use crate::run::{Source, SourceKind};

    /// A run of which only throughput and mean latency are known.
    pub(in crate::analysis) fn figures(label: &str, throughput: f64, mean_ms: f64) -> Run {
        Run {
            label: label.into(),
            role: None,
            source: Source { kind: SourceKind::Figures, path: None },
            capsule: None,
            load: None,
            tasks_per_service: None,
            seconds: Some(180.0),
            requests: 0,
            throughput: Some(throughput),
            overall: LatencySummary { mean: Some(mean_ms), ..LatencySummary::default() },
            endpoints: BTreeMap::new(),
            failures: Vec::new(),
            series: Vec::new(),
            window: None,
            void: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A run with a histogram of `micros`.
    pub(in crate::analysis) fn recorded(throughput: f64, micros: impl IntoIterator<Item = u64>) -> Run {
        let mut latencies = Latencies::new();
        micros.into_iter().for_each(|micros| latencies.record_micros(micros));
        Run { overall: LatencySummary::of(latencies), ..figures("recorded", throughput, 0.0) }
    }

    #[test]
    fn percentiles_of_a_group_come_from_merged_histograms() {
        // The medians are 1 and 3 ms; of all together it is 3 ms, not their mean.
        let runs = [recorded(1.0, std::iter::repeat_n(1_000, 10)), recorded(1.0, std::iter::repeat_n(3_000, 90))];
        let metric = Metric { endpoint: None, quantity: Quantity::P50 };
        let pooled = Pooled::of(&metric, &runs).unwrap();
        assert!((pooled.figure().unwrap() - 3.0).abs() < 0.01);
        assert!((pooled.drawn(&[2, 0]).unwrap() - 1.0).abs() < 0.01);

        let mut merged = runs[0].overall.histogram.clone().unwrap();
        merged.merge(runs[1].overall.histogram.as_ref().unwrap());
        for quantity in [Quantity::P50, Quantity::P95, Quantity::P99] {
            let pooled = Pooled::of(&Metric { endpoint: None, quantity }, &runs).unwrap().figure().unwrap();
            let direct = merged.percentile_ms(quantity.percent().unwrap()).unwrap();
            assert!((pooled - direct).abs() <= direct * 0.001, "{quantity}: {pooled} {direct}");
        }
    }

    #[test]
    fn without_histograms_the_middle_run_speaks_for_the_group() {
        let runs: Vec<Run> = [5.0, 100.0, 6.0]
            .into_iter()
            .map(|p95| {
                let mut run = figures("x", 1.0, 1.0);
                run.overall.p95 = Some(p95);
                run
            })
            .collect();
        let pooled = Pooled::of(&Metric { endpoint: None, quantity: Quantity::P95 }, &runs).unwrap();
        assert_eq!(pooled.figure(), Some(6.0));
    }

    #[test]
    fn a_figure_that_a_run_lacks_is_not_made_up() {
        let runs = [figures("a", 1.0, 1.0)];
        assert!(Pooled::of(&Metric { endpoint: None, quantity: Quantity::P99 }, &runs).is_none());
        assert!(Pooled::of(&Metric { endpoint: Some("login".into()), quantity: Quantity::Mean }, &runs).is_none());
        assert!(Pooled::of(&Metric { endpoint: None, quantity: Quantity::Mean }, &[]).is_none());
    }
}
