//! How much identical runs differ: what a difference must exceed to be one.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::pooled::{Metric, Pooled, Quantity};
use crate::run::Run;
use crate::statistics::{CONFIDENCE, noise_of_difference};

/// The noise of repeated identical runs (A/A), by metric. Kept as JSON beside the runs that it was measured from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// The format's version: 1.
    pub format: u32,
    /// How many identical runs.
    pub runs: usize,
    /// The figures, in a fixed order.
    pub metrics: Vec<MetricNoise>,
}

/// The noise of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricNoise {
    /// Which.
    #[serde(flatten)]
    pub metric: Metric,
    /// Mean over the runs, in the metric's unit.
    pub mean: f64,
    /// Sample standard deviation of a run, as a share of the mean.
    pub deviation: f64,
}

impl NoiseFloor {
    /// The relative difference that two groups of identical runs stay within with 95 % confidence, as a share; `None` for a
    /// metric that was not measured.
    #[must_use]
    pub fn of(&self, metric: &Metric, sizes: (usize, usize)) -> Option<f64> {
        let noise = self.metrics.iter().find(|noise| noise.metric == *metric)?;
        if sizes.0 == 0 || sizes.1 == 0 {
            return None;
        }
        Some(noise_of_difference(noise.deviation, degrees(self.runs)?, sizes, CONFIDENCE))
    }
}

/// Measures the noise floor from identical runs; `None` for fewer than two.
#[must_use]
pub fn noise_floor(runs: &[Run]) -> Option<NoiseFloor> {
    degrees(runs.len())?;
    let metrics = metrics(runs)
        .into_iter()
        .filter_map(|metric| {
            let sample = Pooled::of(&metric, runs)?.sample()?;
            let deviation = sample.sample_deviation? / sample.mean.abs();
            deviation.is_finite().then_some(MetricNoise { metric, mean: sample.mean, deviation })
        })
        .collect();
    Some(NoiseFloor { format: 1, runs: runs.len(), metrics })
}

#[expect(clippy::cast_precision_loss, reason = "runs are counted in tens")]
fn degrees(runs: usize) -> Option<f64> {
    (runs > 1).then_some(runs as f64 - 1.0)
}

/// All metrics that runs can have: throughput and latencies, of all together and of each endpoint.
pub(super) fn metrics<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<Metric> {
    let endpoints: BTreeSet<&String> = runs.into_iter().flat_map(|run| run.endpoints.keys()).collect();
    let of = |endpoint: Option<&String>, quantity| Metric { endpoint: endpoint.cloned(), quantity };
    std::iter::once(of(None, Quantity::Throughput))
        .chain(Quantity::LATENCIES.map(|quantity| of(None, quantity)))
        .chain(
            endpoints.into_iter().flat_map(|endpoint| Quantity::LATENCIES.map(|quantity| of(Some(endpoint), quantity))),
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::pooled::tests::figures;
    use super::*;

    #[test]
    fn the_floor_follows_from_the_deviation_and_the_sizes() {
        let runs = [figures("a", 99.0, 10.0), figures("b", 101.0, 10.0), figures("c", 100.0, 10.0)];
        let floor = noise_floor(&runs).unwrap();
        let throughput = Metric { endpoint: None, quantity: Quantity::Throughput };
        // Deviation 1 %, t(0.975, 2) = 4.30265, two single runs: √2.
        assert!((floor.of(&throughput, (1, 1)).unwrap() - 0.01 * 4.302_65 * 2.0_f64.sqrt()).abs() < 1e-6);
        assert!(floor.of(&throughput, (5, 5)).unwrap() < floor.of(&throughput, (1, 1)).unwrap());
        assert_eq!(floor.of(&Metric { endpoint: None, quantity: Quantity::P99 }, (1, 1)), None);
    }

    #[test]
    fn one_run_has_no_noise_to_measure() {
        assert_eq!(noise_floor(&[figures("a", 1.0, 1.0)]), None);
    }

    #[test]
    fn a_floor_survives_a_file() {
        let floor = noise_floor(&[figures("a", 99.0, 10.0), figures("b", 101.0, 11.0)]).unwrap();
        let text = serde_json::to_string(&floor).unwrap();
        assert_eq!(serde_json::from_str::<NoiseFloor>(&text).unwrap(), floor);
    }
}
