//! The two functions that bounds and intervals are made of.

/// Natural logarithm of the gamma function for `x` > 0: Lanczos' approximation (1964) with g = 7 and nine
/// coefficients, good to about 1e-15.
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series = COEFFICIENTS[1..]
        .iter()
        .zip(1_u8..)
        .fold(COEFFICIENTS[0], |sum, (coefficient, step)| sum + coefficient / (x + f64::from(step)));
    let t = x + G + 0.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// The regularised incomplete beta function `I_x(a, b)` for `a`, `b` > 0 and `x` in 0 to 1: the continued fraction of
/// DLMF 8.17.22, evaluated by Lentz's method.
#[must_use]
pub fn regularised_incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean of the distribution; above it the mirror image does (DLMF 8.17.4).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - regularised_incomplete_beta(b, a, 1.0 - x);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    front * beta_fraction(a, b, x)
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const ENOUGH: f64 = 1e-15;
    const STEPS: u32 = 10_000;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };

    let (mut above, mut below) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = below;
    for step in 1..=STEPS {
        let step = f64::from(step);
        let even = step * (b - step) * x / ((a + 2.0 * step - 1.0) * (a + 2.0 * step));
        let odd = -(a + step) * (a + b + step) * x / ((a + 2.0 * step) * (a + 2.0 * step + 1.0));
        let mut factor = 1.0;
        for coefficient in [even, odd] {
            below = 1.0 / away_from_zero(1.0 + coefficient * below);
            above = away_from_zero(1.0 + coefficient / above);
            factor = above * below;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < ENOUGH {
            break;
        }
    }
    fraction
}

/// The `x` in 0 to 1 at which `I_x(a, b)` is `probability`, by bisection.
pub(super) fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // A bound of a few in a billion is met in practice: halve until the digits are used up, not to a fixed width.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if regularised_incomplete_beta(a, b, middle) < probability { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The quantile of Student's t distribution for `probability` in 0 to 1 (exclusive) and `degrees` of freedom > 0.
#[must_use]
pub fn student_t_quantile(probability: f64, degrees: f64) -> f64 {
    if probability < 0.5 {
        return -student_t_quantile(1.0 - probability, degrees);
    }
    // P(|T| > t) = I(ν/2, 1/2) at ν/(ν+t²) (Abramowitz and Stegun 26.5.27, 26.7.1).
    let tail = 2.0 * (1.0 - probability);
    let x = beta_quantile(degrees / 2.0, 0.5, tail);
    (degrees * (1.0 - x) / x).sqrt()
}

/// P(|Z| > |z|) of the standard normal distribution: that of Student's t with so many degrees of freedom that the two
/// differ by less than 1e-7.
pub(super) fn normal_two_sided(z: f64) -> f64 {
    const DEGREES: f64 = 1e7;
    regularised_incomplete_beta(DEGREES / 2.0, 0.5, DEGREES / (DEGREES + z * z))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, tolerance: f64) {
        assert!((left - right).abs() <= tolerance * right.abs().max(1e-12), "{left} is not {right}");
    }

    #[test]
    fn gamma_at_known_points() {
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-13);
        close(ln_gamma(10.0), 362_880.0_f64.ln(), 1e-13);
        close(ln_gamma(100.0), 359.134_205_369_575_4, 1e-13);
    }

    #[test]
    fn beta_at_known_points() {
        close(regularised_incomplete_beta(1.0, 1.0, 0.3), 0.3, 1e-13);
        close(regularised_incomplete_beta(2.0, 3.0, 0.4), 0.5248, 1e-12);
        close(regularised_incomplete_beta(5.0, 1.0, 0.9), 0.9_f64.powi(5), 1e-12);
        close(regularised_incomplete_beta(0.5, 0.5, 0.5), 0.5, 1e-12);
    }

    #[test]
    fn student_t_as_in_the_tables() {
        close(student_t_quantile(0.975, 1.0), 12.706_204_736, 1e-8);
        close(student_t_quantile(0.975, 4.0), 2.776_445_105, 1e-8);
        close(student_t_quantile(0.95, 10.0), 1.812_461_123, 1e-8);
        close(student_t_quantile(0.05, 10.0), -1.812_461_123, 1e-8);
    }

    #[test]
    fn normal_as_in_the_tables() {
        close(normal_two_sided(1.959_963_985), 0.05, 1e-5);
        close(normal_two_sided(2.575_829_304), 0.01, 1e-5);
        close(normal_two_sided(0.0), 1.0, 1e-12);
    }
}
