//! Whether one group of runs is faster than another.

use super::compared::Compared;
use super::noise_floor::{NoiseFloor, metrics};
use super::owner::is_mostly_broken;
use super::pooled::{Metric, Pooled, Quantity};
use super::throughput::capacity_evidence_of;
use crate::result::Load;
use crate::run::Run;
use crate::statistics::{
    CONFIDENCE, DEFAULT_POWER, ErrorRate, Interval, Resampling, Sample, Support, exact_interval,
    minimum_detectable_difference, noise_of_difference, pooled_deviation,
};

/// From this share of the arrivals on a system kept up with them: random arrivals of some thousands differ from their mean by less.
const KEPT_UP: f64 = 0.95;

/// What comparing two groups of runs gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Runs in the first group.
    pub a_runs: usize,
    /// Runs in the second.
    pub b_runs: usize,
    /// In what the groups differ, and so what a difference in the figures may be put down to.
    pub compared: Compared,
    /// Throughput and latencies, of all together and then by endpoint; only what every run has.
    pub metrics: Vec<MetricComparison>,
    /// Errors of all together.
    pub errors: ErrorComparison,
    /// Labels of runs in either group that are void or mostly failed: they should not be compared at all.
    pub void: Vec<String>,
}

/// One metric in both groups.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricComparison {
    /// Which.
    pub metric: Metric,
    /// The first group's figure: a mean over its runs, or a percentile of its merged histograms.
    pub a: f64,
    /// The second group's.
    pub b: f64,
    /// How well the requests of either group support the figure; a mean and a throughput are always well supported.
    pub support: (Support, Support),
    /// (b − a) / a.
    pub difference: f64,
    /// Interval of the relative difference by resampling runs; `None` with fewer than two runs in either group.
    pub interval: Option<Interval>,
    /// What a relative difference must exceed: the given noise floor, else the noise of the runs themselves (Student's t);
    /// `None` where neither is known.
    pub noise: Option<f64>,
    /// The smallest relative difference that so many runs find four times in five; `None` without repeated runs.
    pub minimum_detectable: Option<f64>,
    /// What to make of it.
    pub verdict: Verdict,
}

/// Whether the second group is faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// More throughput, or less latency.
    Faster,
    /// Less throughput, or more latency.
    Slower,
    /// The difference is within the noise.
    NotDistinguishable,
    /// Nobody can know from these runs.
    NotDecidable(Undecidable),
}

/// Why nothing is said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecidable {
    /// A group is a single run, and no noise floor is given: what identical runs differ by is not known.
    SingleRun,
    /// A percentile with fewer than [`crate::statistics::SAMPLES_BEYOND`] requests beyond it.
    FewRequests,
    /// A group holds runs of different conditions: its figures are of no system.
    MixedRuns,
    /// A throughput that the load has set in every run: think times, or arrivals that the system kept up with.
    SetByTheLoad,
}

/// The errors of both groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorComparison {
    /// The first group's.
    pub a: ErrorRate,
    /// The second group's.
    pub b: ErrorRate,
    /// What to make of it.
    pub verdict: ErrorVerdict,
}

/// Whether the second group has fewer errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorVerdict {
    /// Its exact 95 % interval lies below the other's.
    Fewer,
    /// Its exact 95 % interval lies above the other's.
    More,
    /// The intervals overlap.
    NotDistinguishable,
    /// A group holds runs of different conditions.
    NotDecidable,
}

/// Compares `b` with `a`. A metric is faster or slower only if the bootstrap interval of its difference excludes zero *and*
/// the difference exceeds the noise. Both are asked for because an interval from three runs is too narrow (it knows only ten
/// distinct resamples), and because a floor measured on another day says nothing about today's scatter.
#[must_use]
pub fn compare(a: &[Run], b: &[Run], noise: Option<&NoiseFloor>) -> Comparison {
    compare_with(a, b, noise, Resampling::default())
}

/// [`compare`] with given resampling.
#[must_use]
pub fn compare_with(a: &[Run], b: &[Run], noise: Option<&NoiseFloor>, resampling: Resampling) -> Comparison {
    let compared = Compared::of(a, b);
    let mut metrics: Vec<MetricComparison> = metrics(a.iter().chain(b))
        .into_iter()
        .filter_map(|metric| compare_metric(metric, a, b, noise, resampling))
        .collect();
    if a.iter().chain(b).all(sets_its_throughput) {
        for metric in metrics.iter_mut().filter(|metric| metric.metric.quantity == Quantity::Throughput) {
            metric.verdict = Verdict::NotDecidable(Undecidable::SetByTheLoad);
        }
    }
    let mut errors = compare_errors(a, b);
    if compared.is_mixed() {
        for metric in &mut metrics {
            metric.verdict = Verdict::NotDecidable(Undecidable::MixedRuns);
        }
        errors.verdict = ErrorVerdict::NotDecidable;
    }
    let void = a
        .iter()
        .chain(b)
        .filter(|run| !run.void.is_empty() || is_mostly_broken(run))
        .map(|run| run.label.clone())
        .collect();
    Comparison { a_runs: a.len(), b_runs: b.len(), compared, metrics, errors, void }
}

/// Whether a run's throughput is that of its load, whatever answers it.
fn sets_its_throughput(run: &Run) -> bool {
    match run.load {
        Some(Load::Open { arrivals_per_second, .. }) => {
            run.throughput.is_some_and(|achieved| achieved >= KEPT_UP * arrivals_per_second)
        }
        _ => capacity_evidence_of(run, None).is_some_and(|evidence| evidence.void),
    }
}

fn compare_metric(
    metric: Metric,
    a: &[Run],
    b: &[Run],
    floor: Option<&NoiseFloor>,
    resampling: Resampling,
) -> Option<MetricComparison> {
    let (of_a, of_b) = (Pooled::of(&metric, a)?, Pooled::of(&metric, b)?);
    let (figure_a, figure_b) = (of_a.figure()?, of_b.figure()?);
    let relative = |a: f64, b: f64| (a != 0.0).then(|| (b - a) / a);
    let difference = relative(figure_a, figure_b)?;
    let sizes = (a.len(), b.len());

    let interval = if sizes.0 > 1 && sizes.1 > 1 {
        resampling.of_two(sizes, CONFIDENCE, |drawn_a, drawn_b| relative(of_a.drawn(drawn_a)?, of_b.drawn(drawn_b)?))
    } else {
        None
    };
    let (own_noise, minimum_detectable) = own_noise(&of_a.sample()?, &of_b.sample()?, figure_a, sizes).unzip();
    let given = floor.and_then(|floor| floor.of(&metric, sizes));
    let noise = given.or(own_noise);

    let excludes_zero = match &interval {
        Some(interval) => !interval.contains(0.0),
        // Single runs have no interval; a floor measured beforehand can still speak.
        None => given.is_some(),
    };
    let beyond_noise = noise.is_some_and(|noise| difference.abs() > noise);
    let support = (metric.support(a), metric.support(b));
    let verdict = if support != (Support::Good, Support::Good) {
        Verdict::NotDecidable(Undecidable::FewRequests)
    } else if interval.is_none() && given.is_none() {
        Verdict::NotDecidable(Undecidable::SingleRun)
    } else {
        match (excludes_zero && beyond_noise, (difference > 0.0) == metric.quantity.more_is_faster()) {
            (false, _) => Verdict::NotDistinguishable,
            (true, true) => Verdict::Faster,
            (true, false) => Verdict::Slower,
        }
    };
    Some(MetricComparison {
        metric,
        a: figure_a,
        b: figure_b,
        support,
        difference,
        interval,
        noise,
        minimum_detectable,
        verdict,
    })
}

/// Noise of the difference and minimum detectable difference, as shares of `base`.
fn own_noise(a: &Sample, b: &Sample, base: f64, sizes: (usize, usize)) -> Option<(f64, f64)> {
    let (deviation, degrees) = pooled_deviation(a, b)?;
    let share = |value: f64| value / base.abs();
    Some((
        share(noise_of_difference(deviation, degrees, sizes, CONFIDENCE)),
        share(minimum_detectable_difference(deviation, degrees, sizes, CONFIDENCE, DEFAULT_POWER)),
    ))
}

fn compare_errors(a: &[Run], b: &[Run]) -> ErrorComparison {
    let rate = |runs: &[Run]| {
        let errors = runs.iter().flat_map(|run| &run.failures).map(|failure| failure.count).sum();
        ErrorRate::of(errors, runs.iter().map(|run| run.requests).sum())
    };
    let (a, b) = (rate(a), rate(b));
    let interval = |rate: &ErrorRate| exact_interval(rate.errors, rate.requests, CONFIDENCE);
    let ((low_a, high_a), (low_b, high_b)) = (interval(&a), interval(&b));
    let verdict = if high_b < low_a {
        ErrorVerdict::Fewer
    } else if low_b > high_a {
        ErrorVerdict::More
    } else {
        ErrorVerdict::NotDistinguishable
    };
    ErrorComparison { a, b, verdict }
}

#[cfg(test)]
mod tests {
    use super::super::noise_floor::noise_floor;
    use super::super::pooled::tests::{figures, recorded};
    use super::*;
    use crate::result::{Answerer, Failure, FailureCount};

    fn throughputs(values: &[f64]) -> Vec<Run> {
        values.iter().map(|value| figures("run", *value, 10_000.0 / value)).collect()
    }

    fn verdict(comparison: &Comparison, quantity: Quantity) -> Verdict {
        comparison.metrics.iter().find(|found| found.metric.quantity == quantity).unwrap().verdict
    }

    #[test]
    fn a_throughput_that_the_load_sets_is_no_difference_of_the_systems() {
        let loaded = |values: &[f64], load: &Load| {
            let runs = throughputs(values).into_iter();
            runs.map(|run| Run { load: Some(load.clone()), ..run }).collect::<Vec<_>>()
        };
        let said = |load: &Load| {
            let comparison = compare(&loaded(&[100.0, 101.0, 99.0], load), &loaded(&[120.0, 121.0, 119.0], load), None);
            verdict(&comparison, Quantity::Throughput)
        };
        let set = Verdict::NotDecidable(Undecidable::SetByTheLoad);
        assert_eq!(said(&Load::Open { arrivals_per_second: 100.0 }), set);
        assert_eq!(said(&Load::Open { arrivals_per_second: 150.0 }), Verdict::Faster, "neither kept up");
        // Answers take a tenth of a second: users who think for eight send what they are made to.
        assert_eq!(said(&Load::Closed { vus: 800, think_time_mean_seconds: 8.0 }), set);
        assert_eq!(said(&Load::Closed { vus: 10, think_time_mean_seconds: 0.0 }), Verdict::Faster);
    }

    #[test]
    fn a_clear_difference_is_called_one_in_both_directions() {
        let (slow, fast) = (throughputs(&[100.0, 101.0, 99.0]), throughputs(&[120.0, 121.0, 119.0]));
        let up = compare(&slow, &fast, None);
        assert_eq!(verdict(&up, Quantity::Throughput), Verdict::Faster);
        assert_eq!(verdict(&up, Quantity::Mean), Verdict::Faster, "less latency is faster");
        let down = compare(&fast, &slow, None);
        assert_eq!(verdict(&down, Quantity::Throughput), Verdict::Slower);
        let metric = &up.metrics[0];
        assert!((metric.difference - 0.2).abs() < 1e-9);
        assert!(metric.interval.unwrap().contains(0.2));
        assert!(metric.minimum_detectable.unwrap() > metric.noise.unwrap());
    }

    #[test]
    fn a_difference_within_the_scatter_is_none() {
        let comparison = compare(&throughputs(&[100.0, 110.0, 95.0]), &throughputs(&[103.0, 97.0, 112.0]), None);
        assert!(comparison.metrics.iter().all(|metric| metric.verdict == Verdict::NotDistinguishable));
    }

    #[test]
    fn a_difference_below_the_noise_floor_is_none_however_calm_the_runs_are() {
        let (a, b) = (throughputs(&[100.0, 100.1, 99.9]), throughputs(&[102.0, 102.1, 101.9]));
        assert_eq!(verdict(&compare(&a, &b, None), Quantity::Throughput), Verdict::Faster);
        let floor = noise_floor(&throughputs(&[95.0, 100.0, 105.0, 98.0])).unwrap();
        assert_eq!(verdict(&compare(&a, &b, Some(&floor)), Quantity::Throughput), Verdict::NotDistinguishable);
    }

    #[test]
    fn single_runs_need_a_noise_floor() {
        let (a, b) = (throughputs(&[100.0]), throughputs(&[150.0]));
        let alone = Verdict::NotDecidable(Undecidable::SingleRun);
        assert_eq!(verdict(&compare(&a, &b, None), Quantity::Throughput), alone);
        let floor = noise_floor(&throughputs(&[99.0, 100.0, 101.0])).unwrap();
        assert_eq!(verdict(&compare(&a, &b, Some(&floor)), Quantity::Throughput), Verdict::Faster);
    }

    #[test]
    fn percentiles_are_compared_on_merged_histograms() {
        let of = |base: u64| -> Vec<Run> {
            (0..4).map(|run| recorded(100.0, (0..1_000).map(move |step| base + run * 3 + step))).collect()
        };
        let comparison = compare(&of(10_000), &of(20_000), None);
        let p95 = comparison.metrics.iter().find(|found| found.metric.quantity == Quantity::P95).unwrap();
        assert_eq!(p95.verdict, Verdict::Slower);
        assert!((p95.a - 10.95).abs() < 0.03 && (p95.b - 20.95).abs() < 0.03, "{p95:?}");
    }

    #[test]
    fn a_percentile_of_few_requests_decides_nothing_however_far_it_lies() {
        let of = |base: u64, requests: u64| -> Vec<Run> {
            (0..3).map(|_| recorded(100.0, (0..requests).map(move |step| base + step))).collect()
        };
        let p99 = |requests| {
            let comparison = compare(&of(1_000, requests), &of(900_000, requests), None);
            let found = comparison.metrics.iter().find(|found| found.metric.quantity == Quantity::P99).unwrap();
            (found.verdict, found.support.0)
        };
        assert_eq!(p99(400), (Verdict::Slower, Support::Good), "1,200 in all");
        assert_eq!(p99(100), (Verdict::NotDecidable(Undecidable::FewRequests), Support::Rough));
        assert_eq!(p99(20), (Verdict::NotDecidable(Undecidable::FewRequests), Support::None));
    }

    #[test]
    fn a_group_of_different_runs_is_compared_with_nothing() {
        let mut mixed = throughputs(&[100.0, 101.0, 99.0]);
        mixed[2].load = Some(crate::result::Load::Open { arrivals_per_second: 9.0 });
        let comparison = compare(&mixed, &throughputs(&[120.0, 121.0, 119.0]), None);
        assert_eq!(verdict(&comparison, Quantity::Throughput), Verdict::NotDecidable(Undecidable::MixedRuns));
        assert_eq!(comparison.errors.verdict, ErrorVerdict::NotDecidable);
    }

    #[test]
    fn errors_are_compared_by_exact_intervals() {
        let with = |errors: u64| {
            let mut run = figures("run", 1.0, 1.0);
            run.requests = 10_000;
            let failure = Failure { status: Some(500), code: "unknown".into(), answerer: Answerer::Unknown };
            run.failures = vec![FailureCount { failure, count: errors }];
            [run]
        };
        assert_eq!(compare(&with(0), &with(3), None).errors.verdict, ErrorVerdict::NotDistinguishable);
        assert_eq!(compare(&with(0), &with(30), None).errors.verdict, ErrorVerdict::More);
        assert_eq!(compare(&with(300), &with(30), None).errors.verdict, ErrorVerdict::Fewer);
    }

    #[test]
    fn void_runs_are_named() {
        let mut void = throughputs(&[1.0]);
        void[0].void.push("the generator was the bottleneck".into());
        assert_eq!(compare(&void, &throughputs(&[1.0]), None).void, ["run"]);
        let mut failed = throughputs(&[1.0]);
        let failure = Failure { status: Some(500), code: "unknown".into(), answerer: Answerer::Task };
        failed[0].requests = 10;
        failed[0].failures = vec![FailureCount { failure, count: 5 }];
        assert_eq!(compare(&failed, &throughputs(&[1.0]), None).void, ["run"]);
    }
}
