//! How often something failed, and how often it may fail at most.

use serde::{Deserialize, Serialize};

use super::CONFIDENCE;
use super::special::beta_quantile;

/// Failures among requests. Zero failures are a bound, not a zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ErrorRate {
    /// Requests that failed.
    pub errors: u64,
    /// All requests.
    pub requests: u64,
    /// Share that failed, 0 to 1; 0 if there were no requests.
    pub rate: f64,
    /// The true share is at most this, with 95 % confidence: [`exact_upper_bound`]. 1 if there were no requests.
    pub upper_bound: f64,
}

impl ErrorRate {
    /// Of `errors` among `requests`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    pub fn of(errors: u64, requests: u64) -> Self {
        let rate = if requests == 0 { 0.0 } else { errors.min(requests) as f64 / requests as f64 };
        Self { errors, requests, rate, upper_bound: exact_upper_bound(errors, requests, CONFIDENCE) }
    }
}

/// The one-sided upper bound of Clopper and Pearson (Biometrika 26, 1934) on a share of which `hits` among `trials` were
/// seen: the quantile of Beta(hits + 1, trials − hits). For no hits it is 1 − (1 − confidence)^(1/trials), about
/// 3/trials at 95 %.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub fn exact_upper_bound(hits: u64, trials: u64, confidence: f64) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    beta_quantile(hits as f64 + 1.0, (trials - hits) as f64, confidence)
}

/// The two-sided interval of Clopper and Pearson.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub fn exact_interval(hits: u64, trials: u64, confidence: f64) -> (f64, f64) {
    let tail = (1.0 - confidence) / 2.0;
    let low = if hits == 0 || trials == 0 {
        0.0
    } else if hits >= trials {
        tail.powf(1.0 / trials as f64)
    } else {
        beta_quantile(hits as f64, (trials - hits) as f64 + 1.0, tail)
    };
    (low, exact_upper_bound(hits, trials, 1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, tolerance: f64) {
        assert!((left / right - 1.0).abs() < tolerance, "{left} is not {right}");
    }

    #[test]
    fn no_errors_are_a_bound() {
        for trials in [10_u32, 1_000, 379_269] {
            let exact = 1.0 - 0.05_f64.powf(1.0 / f64::from(trials));
            close(exact_upper_bound(0, trials.into(), 0.95), exact, 1e-9);
        }
        close(exact_upper_bound(0, 100_000, 0.95), 3.0 / 100_000.0, 0.002);
        assert!((ErrorRate::of(0, 0).upper_bound - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_bound_is_where_so_few_hits_would_be_rare() {
        // Sum the binomial distribution up to the hits, by hand: at the bound it must be what confidence leaves.
        for (hits, trials) in [(1_u32, 20_u32), (3, 50), (9, 400)] {
            let bound = exact_upper_bound(hits.into(), trials.into(), 0.95);
            let mut term = (1.0 - bound).powf(f64::from(trials));
            let mut sum = term;
            for k in 1..=hits {
                term *= f64::from(trials - k + 1) / f64::from(k) * bound / (1.0 - bound);
                sum += term;
            }
            close(sum, 0.05, 1e-8);
        }
    }

    #[test]
    fn nine_of_many_follow_the_published_poisson_limits() {
        // Garwood's exact limits for 9 events (Biometrika 28, 1936): 4.115 and 17.085 two-sided at 95 %; 15.705 above at
        // 95 % one-sided. With 379,269 trials the binomial is Poisson to four digits.
        close(exact_upper_bound(9, 379_269, 0.95) * 379_269.0, 15.705, 1e-4);
        let (low, high) = exact_interval(9, 379_269, 0.95);
        close(low * 379_269.0, 4.115, 2e-4);
        close(high * 379_269.0, 17.085, 2e-4);
    }

    #[test]
    fn everything_failing_is_bounded_by_one() {
        assert!((exact_upper_bound(5, 5, 0.95) - 1.0).abs() < 1e-12);
        let (low, high) = exact_interval(5, 5, 0.95);
        close(low, 0.025_f64.powf(0.2), 1e-12);
        assert!((high - 1.0).abs() < 1e-12);
    }
}
