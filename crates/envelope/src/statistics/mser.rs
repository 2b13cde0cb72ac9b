//! Where a warm-up ends: the marginal standard error rule.

/// Where a series is best cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truncation {
    /// Observations to cut from the beginning.
    pub observations: usize,
    /// The statistic there: squared deviations of the kept batch means over the square of their number.
    pub statistic: f64,
    /// Mean of what is cut; `None` if nothing is.
    pub mean_before: Option<f64>,
    /// Mean of what is kept.
    pub mean_after: f64,
}

/// Batches that always stay, and at least a tenth of all: with fewer, a chance run of like values at the end looks like
/// perfect calm.
const KEPT_AT_LEAST: usize = 5;

/// MSER on means of `batch` observations (White, Simulation 69(6), 1997; with `batch` 5 MSER-5 of White, Cobb and
/// Spratt, WSC 2000): of all cuts the one that makes the standard error of the remaining mean smallest. A last, incomplete
/// batch is left out. `None` for fewer than ten batches.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "seconds of a run")]
pub fn mser(series: &[f64], batch: usize) -> Option<Truncation> {
    let means = batch_means(series, batch);
    if means.len() < 2 * KEPT_AT_LEAST {
        return None;
    }
    let kept_at_least = KEPT_AT_LEAST.max(means.len() / 10);
    // Deviations from the mean of a suffix, grown from the end (Welford), so that all cuts cost one pass.
    let mut best: Option<(usize, f64)> = None;
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (cut, value) in means.iter().enumerate().rev() {
        count += 1.0;
        let away = value - mean;
        mean += away / count;
        squares += away * (value - mean);
        let statistic = squares / (count * count);
        // Equal is better earlier: nothing is gained by cutting more.
        if means.len() - cut >= kept_at_least && best.is_none_or(|(_, least)| statistic <= least) {
            best = Some((cut, statistic));
        }
    }
    let (cut, statistic) = best?;
    let observations = cut * batch;
    let mean_of = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    Some(Truncation {
        observations,
        statistic,
        mean_before: (observations > 0).then(|| mean_of(&series[..observations])),
        mean_after: mean_of(&series[observations..]),
    })
}

/// Means of consecutive batches; a last, incomplete one is left out.
#[expect(clippy::cast_precision_loss, reason = "a handful")]
pub(super) fn batch_means(series: &[f64], batch: usize) -> Vec<f64> {
    series.chunks_exact(batch.max(1)).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::noise::noise;
    use super::*;

    #[test]
    fn a_warm_up_is_cut_where_it_ends() {
        let series: Vec<f64> =
            (0..180).map(|second| if second < 30 { 100.0 + f64::from(second) * 4.0 } else { 222.0 }).collect();
        let noisy: Vec<f64> = series.iter().enumerate().map(|(index, value)| value + noise(index)).collect();
        let cut = mser(&noisy, 5).unwrap();
        assert!((25..=40).contains(&cut.observations), "{cut:?}");
        assert!(cut.mean_before.unwrap() < 190.0 && (cut.mean_after - 222.0).abs() < 1.0, "{cut:?}");
    }

    #[test]
    fn a_level_series_keeps_nearly_everything() {
        let level: Vec<f64> = (0..200).map(|index| 50.0 + noise(index)).collect();
        let cut = mser(&level, 5).unwrap();
        assert!(cut.observations <= 100, "{cut:?}");
        assert_eq!(mser(&[7.0; 60], 5).unwrap().observations, 0);
    }

    #[test]
    fn a_level_that_comes_late_is_cut_late() {
        let series: Vec<f64> = (0..100).map(|second| if second < 70 { 10.0 } else { 90.0 }).collect();
        assert_eq!(mser(&series, 5).unwrap().observations, 70);
    }

    #[test]
    fn too_short_says_nothing() {
        assert_eq!(mser(&[1.0; 49], 5), None);
        assert_eq!(mser(&[], 5), None);
    }
}
