//! Latencies of several runs side by side: from the best run to the worst, and all of them merged.

use std::collections::BTreeMap;

use crate::result::Latencies;
use crate::run::{LatencySummary, Run};

/// From the least to the most of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// Latencies over several runs, in milliseconds. `None` where no run says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyRanges {
    /// Requests that ended as expected, over all runs.
    pub count: u64,
    /// Means of the runs.
    pub mean: Option<Range>,
    /// Medians.
    pub p50: Option<Range>,
    /// 90th percentiles.
    pub p90: Option<Range>,
    /// 95th percentiles.
    pub p95: Option<Range>,
    /// 99th percentiles.
    pub p99: Option<Range>,
    /// 99.9th percentiles.
    pub p999: Option<Range>,
    /// Longest.
    pub max: Option<Range>,
    /// All runs' histograms merged, where every run has one.
    pub merged: Option<LatencySummary>,
}

/// Latencies over several runs by endpoint.
pub type EndpointRanges = BTreeMap<String, LatencyRanges>;

/// The ranges of all endpoints together, and of each.
#[must_use]
pub fn latency_ranges(runs: &[Run]) -> (LatencyRanges, EndpointRanges) {
    let overall = ranges(runs.iter().map(|run| &run.overall));
    let mut by_endpoint: BTreeMap<&String, Vec<&LatencySummary>> = BTreeMap::new();
    for (name, endpoint) in runs.iter().flat_map(|run| &run.endpoints) {
        by_endpoint.entry(name).or_default().push(&endpoint.latency);
    }
    let endpoints =
        by_endpoint.into_iter().map(|(name, latencies)| (name.clone(), ranges(latencies.into_iter()))).collect();
    (overall, endpoints)
}

fn ranges<'a>(summaries: impl Iterator<Item = &'a LatencySummary> + Clone) -> LatencyRanges {
    let range = |of: fn(&LatencySummary) -> Option<f64>| {
        summaries.clone().filter_map(of).fold(None, |range: Option<Range>, value| {
            let Range { min, max } = range.unwrap_or(Range { min: value, max: value });
            Some(Range { min: min.min(value), max: max.max(value) })
        })
    };
    LatencyRanges {
        count: summaries.clone().map(|summary| summary.count).sum(),
        mean: range(|summary| summary.mean),
        p50: range(|summary| summary.p50),
        p90: range(|summary| summary.p90),
        p95: range(|summary| summary.p95),
        p99: range(|summary| summary.p99),
        p999: range(|summary| summary.p999),
        max: range(|summary| summary.max),
        merged: merged(summaries),
    }
}

fn merged<'a>(summaries: impl Iterator<Item = &'a LatencySummary>) -> Option<LatencySummary> {
    let mut all: Option<Latencies> = None;
    for summary in summaries {
        let histogram = summary.histogram.as_ref()?;
        all.get_or_insert_default().merge(histogram);
    }
    all.map(LatencySummary::of)
}

#[cfg(test)]
mod tests {
    use super::super::pooled::tests::{figures, recorded};
    use super::*;

    #[test]
    fn ranges_go_from_the_least_to_the_most_run() {
        let (overall, endpoints) = latency_ranges(&[figures("a", 1.0, 75.28), figures("b", 1.0, 232.05)]);
        assert_eq!(overall.mean, Some(Range { min: 75.28, max: 232.05 }));
        assert_eq!((overall.p95, overall.merged.is_none(), endpoints.is_empty()), (None, true, true));
    }

    #[test]
    fn histograms_are_merged_only_where_every_run_has_one() {
        let both = [recorded(1.0, [1_000; 5]), recorded(1.0, [9_000; 5])];
        let (overall, _) = latency_ranges(&both);
        assert_eq!(overall.merged.unwrap().count, 10);
        let (overall, _) = latency_ranges(&[both[0].clone(), figures("b", 1.0, 1.0)]);
        assert_eq!(overall.merged, None);
    }
}
