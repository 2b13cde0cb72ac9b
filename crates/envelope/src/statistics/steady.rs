//! Whether a run reached a steady state, and when.

use super::Sample;
use super::mser::{batch_means, mser};
use super::trend::mann_kendall;

/// What the seconds of a measured phase show.
#[derive(Debug, Clone, PartialEq)]
pub enum SteadyState {
    /// Steady from its first second.
    FromTheStart,
    /// Steady after a warm-up of so many seconds.
    After {
        /// Seconds to discard.
        seconds: u32,
    },
    /// Not steady, with the numbers that say so.
    NeverReached {
        /// A sentence.
        reason: String,
    },
}

/// Shorter phases are not judged.
const SHORTEST_SECONDS: usize = 10;
/// From this length on seconds are batched by five (MSER-5); shorter series would have too few batches.
const BATCHED_FROM_SECONDS: usize = 50;
/// A warm-up of at most one in this many seconds is discarded without further question: it costs little.
const SHORT_WARM_UP: usize = 5;
/// A trend test looks at no more batches than this: it compares all pairs.
const MOST_BATCHES: usize = 400;
/// A trend is one if chance gives it less often than this …
const TREND_P_VALUE: f64 = 0.01;

/// One of the series that are looked at.
struct Series<'a> {
    name: &'static str,
    unit: &'static str,
    values: &'a [f64],
    /// … and if it changes the level by more than this share over the remainder.
    relevant_change: f64,
}

/// Finds the steady state of a phase from its seconds: MSER on throughput and on mean latency, the later of both counts.
/// The rule:
///
/// 1. A cut in the first half is the warm-up. One of more than a fifth of the phase must also divide two levels: the means before
///    and after it differ by more than twice the standard error of their difference (Welch 1938). Otherwise it only found a
///    quieter stretch, and nothing is discarded.
/// 2. A cut in the last half with another level before it (throughput by more than 5 %, latency by more than 10 %) means that
///    no steady state was reached. With the same level before and after, the cut only flees a disturbance, which stays in: it
///    happened.
/// 3. What remains must not have a trend: Mann–Kendall on batch means with p < 0.01, and a Theil–Sen change over the
///    remainder beyond the same shares.
///
/// `throughput` is requests per second, `mean_latency` in milliseconds; a second without expected answers is `None` and takes
/// the latency of its neighbour.
#[must_use]
pub fn find_steady_state(throughput: &[f64], mean_latency: &[Option<f64>]) -> SteadyState {
    let length = throughput.len();
    if length < SHORTEST_SECONDS {
        let reason = format!("{length} s are too few to judge: at least {SHORTEST_SECONDS} s are needed");
        return SteadyState::NeverReached { reason };
    }
    let latency = filled(mean_latency);
    let all = [
        Series { name: "throughput", unit: "requests a second", values: throughput, relevant_change: 0.05 },
        Series { name: "mean latency", unit: "ms", values: &latency, relevant_change: 0.10 },
    ];
    let batch = if length < BATCHED_FROM_SECONDS { 1 } else { 5 };
    let mut discard = 0;
    for series in all.iter().filter(|series| !series.values.is_empty()) {
        match warm_up(series, batch) {
            Ok(seconds) => discard = discard.max(seconds),
            Err(reason) => return SteadyState::NeverReached { reason },
        }
    }
    for series in all.iter().filter(|series| series.values.len() > discard) {
        if let Some(reason) = trend(series, discard, batch) {
            return SteadyState::NeverReached { reason };
        }
    }
    match u32::try_from(discard) {
        Ok(0) => SteadyState::FromTheStart,
        Ok(seconds) => SteadyState::After { seconds },
        Err(_) => SteadyState::NeverReached { reason: "the series is longer than a century".into() },
    }
}

fn warm_up(series: &Series<'_>, batch: usize) -> Result<usize, String> {
    let Some(cut) = mser(series.values, batch) else { return Ok(0) };
    let before = cut.mean_before.unwrap_or(cut.mean_after);
    if cut.observations * 2 <= series.values.len() {
        let is_short = cut.observations * SHORT_WARM_UP <= series.values.len();
        let is_warm_up = is_short || differs(series.values, cut.observations, batch);
        return Ok(if is_warm_up { cut.observations } else { 0 });
    }
    let change = relative(cut.mean_after - before, cut.mean_after);
    if change.abs() <= series.relevant_change {
        return Ok(0);
    }
    Err(format!(
        "{} comes to another level after {} of {} s: from {} to {} {}",
        series.name,
        cut.observations,
        series.values.len(),
        figure(before),
        figure(cut.mean_after),
        series.unit,
    ))
}

/// Whether the level before `cut` is another than after it, by more than twice the standard error.
#[expect(clippy::cast_precision_loss, reason = "seconds of a run")]
fn differs(values: &[f64], cut: usize, batch: usize) -> bool {
    let variance_of_mean =
        |sample: &Sample| sample.sample_deviation.map(|deviation| deviation.powi(2) / sample.count as f64);
    let sample = |part: &[f64]| Sample::of(&batch_means(part, batch));
    let (Some(before), Some(after)) = (sample(&values[..cut]), sample(&values[cut..])) else { return false };
    let (Some(of_before), Some(of_after)) = (variance_of_mean(&before), variance_of_mean(&after)) else { return true };
    (before.mean - after.mean).abs() > 2.0 * (of_before + of_after).sqrt()
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a run")]
fn trend(series: &Series<'_>, discard: usize, batch: usize) -> Option<String> {
    let rest = &series.values[discard..];
    let batch = batch.max(rest.len().div_ceil(MOST_BATCHES));
    let means = batch_means(rest, batch);
    let trend = mann_kendall(&means)?;
    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
    let change = relative(trend.slope * (means.len() - 1) as f64, mean);
    (trend.p_value < TREND_P_VALUE && change.abs() > series.relevant_change).then(|| {
        format!(
            "{} still changes by {:+.1} % over the remaining {} s (Mann–Kendall p = {:.4})",
            series.name,
            change * 100.0,
            rest.len(),
            trend.p_value,
        )
    })
}

fn relative(change: f64, of: f64) -> f64 {
    if of == 0.0 { if change == 0.0 { 0.0 } else { f64::INFINITY } } else { change / of.abs() }
}

fn figure(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// Gaps take the value before them, the first ones the first value that there is; empty if there is none.
fn filled(values: &[Option<f64>]) -> Vec<f64> {
    let Some(mut last) = values.iter().copied().flatten().next() else { return Vec::new() };
    values
        .iter()
        .map(|value| {
            last = value.unwrap_or(last);
            last
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::noise::noise;
    use super::*;

    fn seconds(count: u32, value: impl Fn(u32) -> f64) -> Vec<f64> {
        (0..count).map(|second| value(second) + noise(second as usize)).collect()
    }

    fn level(count: usize, value: f64) -> Vec<Option<f64>> {
        vec![Some(value); count]
    }

    #[test]
    fn a_level_run_is_steady_or_nearly_so_from_the_start() {
        match find_steady_state(&seconds(180, |_| 222.0), &level(180, 75.0)) {
            SteadyState::FromTheStart => {}
            SteadyState::After { seconds } => assert!(seconds <= 90, "{seconds}"),
            SteadyState::NeverReached { reason } => panic!("{reason}"),
        }
    }

    #[test]
    fn a_short_noisy_run_loses_nothing_to_a_quieter_end() {
        let noisy: Vec<f64> =
            (0..30).map(|second| 100.0 + 40.0 * noise(second) * f64::from(u8::from(second < 14))).collect();
        assert_eq!(find_steady_state(&noisy, &level(30, 75.0)), SteadyState::FromTheStart);
    }

    #[test]
    fn a_warm_up_is_discarded() {
        let throughput = seconds(180, |second| if second < 25 { 120.0 } else { 222.0 });
        let found = find_steady_state(&throughput, &level(180, 75.0));
        let SteadyState::After { seconds } = found else { panic!("{found:?}") };
        assert!((25..=35).contains(&seconds), "{seconds}");
    }

    #[test]
    fn the_later_of_throughput_and_latency_counts() {
        let latency: Vec<_> = (0..180).map(|second| Some(if second < 40 { 300.0 } else { 75.0 })).collect();
        let throughput: Vec<f64> = (0..180).map(|second| if second < 10 { 100.0 } else { 222.0 }).collect();
        assert_eq!(find_steady_state(&throughput, &latency), SteadyState::After { seconds: 40 });
    }

    #[test]
    fn a_climb_is_never_steady() {
        let climb = seconds(180, |second| 100.0 + f64::from(second));
        assert!(matches!(find_steady_state(&climb, &level(180, 75.0)), SteadyState::NeverReached { .. }));
        let slow = seconds(180, |second| 200.0 + 0.15 * f64::from(second));
        assert!(matches!(find_steady_state(&slow, &level(180, 75.0)), SteadyState::NeverReached { .. }));
    }

    #[test]
    fn a_drift_that_the_scatter_hides_is_found_by_its_trend() {
        let drift: Vec<f64> = (0..180)
            .map(|second| 200.0 + 60.0 * noise(second) + f64::from(u32::try_from(second).unwrap()) / 6.0)
            .collect();
        let found = find_steady_state(&drift, &level(180, 75.0));
        let SteadyState::NeverReached { reason } = found else { panic!("{found:?}") };
        assert!(reason.contains("still changes by +"), "{reason}");
    }

    #[test]
    fn another_level_in_the_last_half_is_never_steady() {
        let late = seconds(180, |second| if second < 120 { 150.0 } else { 222.0 });
        let found = find_steady_state(&late, &level(180, 75.0));
        let SteadyState::NeverReached { reason } = found else { panic!("{found:?}") };
        assert!(reason.starts_with("throughput comes to another level after 1"), "{reason}");
    }

    #[test]
    fn a_late_disturbance_stays_in() {
        let stalled = seconds(180, |second| if (120..123).contains(&second) { 100.0 } else { 222.0 });
        assert!(!matches!(find_steady_state(&stalled, &level(180, 75.0)), SteadyState::NeverReached { .. }));
    }

    #[test]
    fn a_few_seconds_are_not_judged() {
        assert!(matches!(find_steady_state(&[1.0; 9], &level(9, 1.0)), SteadyState::NeverReached { .. }));
        assert_eq!(find_steady_state(&[5.0; 12], &[None; 12]), SteadyState::FromTheStart);
    }
}
