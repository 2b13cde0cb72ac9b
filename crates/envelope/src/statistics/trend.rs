//! Whether a series still rises or falls.

use super::special::normal_two_sided;

/// A monotone trend, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Probability of a statistic as extreme as this one if there is no trend (two-sided).
    pub p_value: f64,
    /// Change per observation: the median of the slopes of all pairs (Theil 1950, Sen 1968).
    pub slope: f64,
}

/// The test of Mann (Econometrica 13, 1945) and Kendall for a monotone trend, with the correction of the variance for
/// equal values and the normal approximation; `None` for fewer than eight observations, where that does not hold.
///
/// The observations should be independent: give batch means, not neighbouring seconds.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "hundreds of observations")]
pub fn mann_kendall(series: &[f64]) -> Option<Trend> {
    const FEWEST: usize = 8;
    if series.len() < FEWEST || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut score = 0.0;
    let mut slopes = Vec::with_capacity(series.len() * (series.len() - 1) / 2);
    for (earlier, first) in series.iter().enumerate() {
        for (later, second) in series.iter().enumerate().skip(earlier + 1) {
            let rise = second - first;
            score += if rise == 0.0 { 0.0 } else { rise.signum() };
            slopes.push(rise / (later - earlier) as f64);
        }
    }
    let n = series.len() as f64;
    let of_ties: f64 = tie_sizes(series).map(|size| size * (size - 1.0) * (2.0 * size + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - of_ties) / 18.0;
    let z = if score == 0.0 || variance <= 0.0 { 0.0 } else { (score.abs() - 1.0) / variance.sqrt() };
    Some(Trend { p_value: normal_two_sided(z), slope: median(&mut slopes) })
}

#[expect(clippy::cast_precision_loss, reason = "hundreds of observations")]
fn tie_sizes(series: &[f64]) -> impl Iterator<Item = f64> {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let sizes: Vec<f64> =
        sorted.chunk_by(|left, right| left.total_cmp(right).is_eq()).map(|equal| equal.len() as f64).collect();
    sizes.into_iter()
}

/// The middle value; the mean of the two middle ones of an even number. Zero of nothing.
pub(super) fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], values[middle]) } else { values[middle] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_is_seen_and_measured() {
        let climb: Vec<f64> = (0..30).map(|step| 10.0 + 0.5 * f64::from(step)).collect();
        let trend = mann_kendall(&climb).unwrap();
        assert!(trend.p_value < 1e-6);
        assert!((trend.slope - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_see_saw_is_no_trend() {
        let see_saw: Vec<f64> = (0..40).map(|step| f64::from(step % 2)).collect();
        assert!(mann_kendall(&see_saw).unwrap().p_value > 0.5);
        assert!((mann_kendall(&[4.0; 12]).unwrap().p_value - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_statistic_is_the_textbooks() {
        // Ten values, one pair out of order: S = 45 − 2 = 43, Var = 10·9·25/18 = 125, z = 42/√125 = 3.757.
        let values = [1.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        let trend = mann_kendall(&values).unwrap();
        assert!((trend.p_value - 0.000_172).abs() < 2e-6, "{trend:?}");
    }

    #[test]
    fn few_values_say_nothing() {
        assert_eq!(mann_kendall(&[1.0, 2.0, 3.0]), None);
    }
}
