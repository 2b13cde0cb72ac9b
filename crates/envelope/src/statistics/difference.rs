//! How large a difference between two groups of runs must be to be seen.

use super::{Sample, student_t_quantile};

/// The power of [`minimum_detectable_difference`]: a difference of that size is missed one time in five.
pub const DEFAULT_POWER: f64 = 0.80;

/// The deviation of a single run that two groups have in common, and its degrees of freedom; `None` if neither has two runs.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "runs are counted in tens")]
pub fn pooled_deviation(a: &Sample, b: &Sample) -> Option<(f64, f64)> {
    let freedom = |sample: &Sample| sample.count as f64 - 1.0;
    let squares = |sample: &Sample| sample.population_deviation.powi(2) * sample.count as f64;
    let degrees = freedom(a) + freedom(b);
    (degrees > 0.0).then(|| (((squares(a) + squares(b)) / degrees).sqrt(), degrees))
}

/// Half the width of the interval of the difference of two groups' means that chance alone gives: Student's t times the
/// standard error, in the unit of `deviation`, which is that of a single run with `degrees` of freedom.
#[must_use]
pub fn noise_of_difference(deviation: f64, degrees: f64, sizes: (usize, usize), confidence: f64) -> f64 {
    student_t_quantile(f64::midpoint(1.0, confidence), degrees) * standard_error(deviation, sizes)
}

/// The smallest true difference of two groups' means that a test at `confidence` finds with probability `power`:
/// (t of 1 − α/2 plus t of the power) times the standard error (Cohen, Statistical Power Analysis, 1988, in its usual t form).
#[must_use]
pub fn minimum_detectable_difference(
    deviation: f64,
    degrees: f64,
    sizes: (usize, usize),
    confidence: f64,
    power: f64,
) -> f64 {
    let both = student_t_quantile(f64::midpoint(1.0, confidence), degrees) + student_t_quantile(power, degrees);
    both * standard_error(deviation, sizes)
}

#[expect(clippy::cast_precision_loss, reason = "runs are counted in tens")]
fn standard_error(deviation: f64, sizes: (usize, usize)) -> f64 {
    deviation * (1.0 / sizes.0 as f64 + 1.0 / sizes.1 as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_example() {
        // Two groups of five, deviation 1: SE = √0.4 = 0.63246, t(0.975, 8) = 2.30600, t(0.8, 8) = 0.88889.
        let noise = noise_of_difference(1.0, 8.0, (5, 5), 0.95);
        assert!((noise - 1.458_45).abs() < 1e-4, "{noise}");
        let difference = minimum_detectable_difference(1.0, 8.0, (5, 5), 0.95, DEFAULT_POWER);
        assert!((difference - 2.020_64).abs() < 1e-4, "{difference}");
    }

    #[test]
    fn single_runs_have_no_deviation() {
        let one = Sample::of(&[5.0]).unwrap();
        assert_eq!(pooled_deviation(&one, &one), None);
        let three = Sample::of(&[4.0, 5.0, 6.0]).unwrap();
        assert_eq!(pooled_deviation(&one, &three), Some((1.0, 2.0)));
    }
}
