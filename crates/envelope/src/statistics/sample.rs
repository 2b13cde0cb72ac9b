//! A handful of figures, one a run.

use serde::{Deserialize, Serialize};

/// Figures of several runs, summed up, in the figures' own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// How many.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation of these figures as the whole population (divided by n).
    pub population_deviation: f64,
    /// Standard deviation as an estimate from a sample (divided by n − 1); `None` for a single figure.
    pub sample_deviation: Option<f64>,
}

impl Sample {
    /// Sums up `figures`; `None` if there are none or one is not finite.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "runs are counted in tens")]
    pub fn of(figures: &[f64]) -> Option<Self> {
        if figures.is_empty() || figures.iter().any(|figure| !figure.is_finite()) {
            return None;
        }
        let count = figures.len();
        let mean = figures.iter().sum::<f64>() / count as f64;
        // Two passes: the deviations are small against the mean, and the one-pass formula would cancel.
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        Some(Self {
            count,
            mean,
            min: figures.iter().copied().fold(f64::INFINITY, f64::min),
            max: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            population_deviation: (squares / count as f64).sqrt(),
            sample_deviation: (count > 1).then(|| (squares / (count as f64 - 1.0)).sqrt()),
        })
    }

    /// Coefficient of variation: the population deviation as a share of the mean; `None` around a mean of zero.
    #[must_use]
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        (self.mean != 0.0).then(|| self.population_deviation / self.mean.abs())
    }

    /// From smallest to largest, as a share of the mean; `None` around a mean of zero.
    #[must_use]
    pub fn spread(&self) -> Option<f64> {
        (self.mean != 0.0).then(|| (self.max - self.min) / self.mean.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_deviations_are_told_apart() {
        let sample = Sample::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((sample.mean - 5.0).abs() < 1e-12);
        assert!((sample.population_deviation - 2.0).abs() < 1e-12);
        assert!((sample.sample_deviation.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((sample.spread().unwrap() - 1.4).abs() < 1e-12);
    }

    #[test]
    fn one_figure_has_no_sample_deviation_and_none_has_nothing() {
        assert_eq!(Sample::of(&[3.0]).unwrap().sample_deviation, None);
        assert_eq!(Sample::of(&[]), None);
        assert_eq!(Sample::of(&[1.0, f64::NAN]), None);
        assert_eq!(Sample::of(&[0.0, 0.0]).unwrap().coefficient_of_variation(), None);
    }
}
