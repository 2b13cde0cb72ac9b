//! The Universal Scalability Law: X(N) = λN / (1 + σ(N−1) + κN(N−1)), with λ the throughput of one, σ contention and κ
//! coherency (Gunther, *Guerrilla Capacity Planning*, 2007, chapter 4).
//!
//! Fitted by nonlinear least squares (Levenberg 1944, Marquardt 1963) under σ ≥ 0 and κ ≥ 0. Intervals are the middle 95 %
//! of refits to data simulated from the fit with the scatter that the residuals show; the scatter itself is drawn anew each time
//! (its scaled inverse χ² distribution), because a handful of points do not know it well. Three parameters need three
//! different N, and more points than parameters to say how sure they are; less is refused.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::statistics::{CONFIDENCE, Interval, Resampling, percentile_interval};

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslPoint {
    /// Tasks (or users).
    pub n: f64,
    /// Throughput in requests a second.
    pub throughput: f64,
}

/// A fitted parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslParameter {
    /// The estimate.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub struct UslFit {
    /// λ: throughput of one, in requests a second.
    pub lambda: UslParameter,
    /// σ: the share of work that is serial.
    pub sigma: UslParameter,
    /// κ: the cost of keeping each with each other consistent.
    pub kappa: UslParameter,
    /// √((1 − σ)/κ): where throughput is highest. `None` unless κ's interval excludes zero: then no peak can be told.
    pub peak: Option<UslParameter>,
    /// Standard deviation of the residuals, in requests a second.
    pub residual_deviation: f64,
    /// What the points cannot tell, one sentence each.
    pub caveats: Vec<String>,
    /// The parameters of the refits that the intervals come from.
    refits: Vec<Parameters>,
}

impl UslFit {
    /// The fitted throughput at `n`.
    #[must_use]
    pub fn throughput(&self, n: f64) -> f64 {
        predict([self.lambda.value, self.sigma.value, self.kappa.value], n)
    }

    /// The 95 % interval of the fitted throughput at `n`: the middle of what the refits give there. `None` without refits.
    #[must_use]
    pub fn throughput_interval(&self, n: f64) -> Option<Interval> {
        let mut values: Vec<f64> = self.refits.iter().map(|refit| predict(*refit, n)).collect();
        percentile_interval(&mut values, CONFIDENCE)
    }
}

/// Why no law is fitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UslRefusal {
    /// Too few different N.
    #[error("{distinct} different task counts cannot identify three parameters: at least three are needed")]
    TooFewLevels {
        /// How many there are.
        distinct: usize,
    },
    /// Exactly as many points as parameters.
    #[error(
        "three points fit three parameters exactly and leave nothing to say how sure they are: repeat at least one"
    )]
    NothingToSpare,
    /// A point that is no measurement.
    #[error("{throughput} requests a second at {n} is no measurement")]
    Unusable {
        /// Its N.
        n: f64,
        /// Its throughput.
        throughput: f64,
    },
    /// The points scatter so much that every scaling fits.
    #[error("the points scatter too much: contention could be anything from {low:.3} to {high:.3}")]
    Unidentified {
        /// Lower end of σ's interval.
        low: f64,
        /// Upper end of σ's interval.
        high: f64,
    },
}

/// Fits the law to `points`, several for one N where a measurement was repeated.
pub fn fit_usl(points: &[UslPoint]) -> Result<UslFit, UslRefusal> {
    fit_usl_with(points, Resampling { resamples: 1_000, ..Resampling::default() })
}

const PARAMETERS: usize = 3;
type Parameters = [f64; PARAMETERS];

/// [`fit_usl`] with given resampling.
pub fn fit_usl_with(points: &[UslPoint], resampling: Resampling) -> Result<UslFit, UslRefusal> {
    let usable = |point: &&UslPoint| {
        point.n >= 1.0 && point.n.is_finite() && point.throughput > 0.0 && point.throughput.is_finite()
    };
    if let Some(UslPoint { n, throughput }) = points.iter().find(|point| !usable(point)) {
        return Err(UslRefusal::Unusable { n: *n, throughput: *throughput });
    }
    let mut levels: Vec<f64> = points.iter().map(|point| point.n).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if levels.len() < PARAMETERS {
        return Err(UslRefusal::TooFewLevels { distinct: levels.len() });
    }
    if points.len() <= PARAMETERS {
        return Err(UslRefusal::NothingToSpare);
    }

    let best = least_squares(points);
    let degrees = points.len() - PARAMETERS;
    let residual_deviation = (residual_squares(points, best) / crate::as_float(degrees as u64)).sqrt();
    let refits = refits(points, best, residual_deviation, degrees, resampling);
    let parameter = |index: usize| {
        let mut values: Vec<f64> = refits.iter().map(|refit| refit[index]).collect();
        let whole = Interval { low: best[index], high: best[index], confidence: CONFIDENCE };
        UslParameter { value: best[index], interval: percentile_interval(&mut values, CONFIDENCE).unwrap_or(whole) }
    };
    let (lambda, sigma, kappa) = (parameter(0), parameter(1), parameter(2));
    if sigma.interval.low <= 0.0 && sigma.interval.high >= 1.0 {
        return Err(UslRefusal::Unidentified { low: sigma.interval.low, high: sigma.interval.high });
    }
    let mut caveats = Vec::new();
    if kappa.interval.low <= 0.0 {
        caveats.push(format!(
            "coherency may be zero (interval 0 to {:.2e}), so that no peak can be told",
            kappa.interval.high
        ));
    }
    if sigma.interval.low <= 0.0 {
        caveats.push(format!("contention may be zero (interval 0 to {:.3})", sigma.interval.high));
    }
    let peak = (kappa.interval.low > 0.0).then(|| peak(best, &refits)).flatten();
    Ok(UslFit { lambda, sigma, kappa, peak, residual_deviation, caveats, refits })
}

fn peak(best: Parameters, refits: &[Parameters]) -> Option<UslParameter> {
    let of = |[_, sigma, kappa]: Parameters| (kappa > 0.0 && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt());
    let mut values: Vec<f64> = refits.iter().copied().filter_map(of).collect();
    Some(UslParameter { value: of(best)?, interval: percentile_interval(&mut values, CONFIDENCE)? })
}

fn refits(points: &[UslPoint], best: Parameters, deviation: f64, degrees: usize, how: Resampling) -> Vec<Parameters> {
    let mut random = Pcg64Mcg::seed_from_u64(how.seed);
    let mut simulated = points.to_vec();
    (0..how.resamples)
        .map(|_| {
            let chi_squared: f64 = (0..degrees).map(|_| normal(&mut random).powi(2)).sum();
            let drawn = deviation * (crate::as_float(degrees as u64) / chi_squared.max(f64::MIN_POSITIVE)).sqrt();
            for point in &mut simulated {
                point.throughput = predict(best, point.n) + drawn * normal(&mut random);
            }
            least_squares(&simulated)
        })
        .collect()
}

/// A standard normal number (Box and Muller 1958).
#[expect(clippy::cast_precision_loss, reason = "53 bits")]
fn normal(random: &mut impl Rng) -> f64 {
    let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
    radius * angle.cos()
}

fn predict([lambda, sigma, kappa]: Parameters, n: f64) -> f64 {
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

fn residual_squares(points: &[UslPoint], parameters: Parameters) -> f64 {
    points.iter().map(|point| (point.throughput - predict(parameters, point.n)).powi(2)).sum()
}

/// The best of the fits in which σ, κ, both or none are held at zero, among those that keep within σ, κ ≥ 0.
fn least_squares(points: &[UslPoint]) -> Parameters {
    let total: f64 = points.iter().map(|point| point.throughput).sum();
    let linear = [total / points.iter().map(|point| point.n).sum::<f64>(), 0.0, 0.0];
    let start = [points.iter().map(|point| point.throughput / point.n).fold(0.0, f64::max), 0.05, 0.001];
    [[true, true, true], [true, true, false], [true, false, true]]
        .into_iter()
        .map(|free| marquardt(points, free, start))
        .filter(|found| found[1] >= 0.0 && found[2] >= 0.0 && found[0] > 0.0)
        .chain([marquardt(points, [true, false, false], linear)])
        .map(|found| (residual_squares(points, found), found))
        .filter(|(squares, _)| squares.is_finite())
        .min_by(|left, right| left.0.total_cmp(&right.0))
        .map_or(linear, |(_, found)| found)
}

/// Levenberg–Marquardt; parameters that are not free are held at zero (λ always is free).
fn marquardt(points: &[UslPoint], free: [bool; PARAMETERS], start: Parameters) -> Parameters {
    const STEPS: u32 = 200;
    let mut at: Parameters = std::array::from_fn(|index| if free[index] { start[index] } else { 0.0 });
    let mut squares = residual_squares(points, at);
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let (mut matrix, mut vector) = ([[0.0; PARAMETERS]; PARAMETERS], [0.0; PARAMETERS]);
        for point in points {
            let gradient = gradient(at, point.n, free);
            let residual = point.throughput - predict(at, point.n);
            for row in 0..PARAMETERS {
                vector[row] += gradient[row] * residual;
                for column in 0..PARAMETERS {
                    matrix[row][column] += gradient[row] * gradient[column];
                }
            }
        }
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] = if free[index] { row[index] * (1.0 + damping) } else { 1.0 };
        }
        let Some(step) = solve(matrix, vector) else { break };
        let next: Parameters = std::array::from_fn(|index| at[index] + step[index]);
        let next_squares = residual_squares(points, next);
        // A denominator that crossed zero predicts nonsense that may fit by chance.
        let sound = points.iter().all(|point| predict(next, point.n) > 0.0);
        if sound && next_squares <= squares {
            let gained = squares - next_squares;
            (at, squares) = (next, next_squares);
            damping = (damping / 10.0).max(1e-12);
            if gained <= 1e-14 * squares {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    at
}

fn gradient([lambda, sigma, kappa]: Parameters, n: f64, free: [bool; PARAMETERS]) -> Parameters {
    let denominator = 1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0);
    let by_sigma = -lambda * n * (n - 1.0) / denominator.powi(2);
    let all = [n / denominator, by_sigma, by_sigma * n];
    std::array::from_fn(|index| if free[index] { all[index] } else { 0.0 })
}

/// Gaussian elimination with pivoting; `None` for a singular matrix.
fn solve(mut matrix: [[f64; PARAMETERS]; PARAMETERS], mut vector: Parameters) -> Option<Parameters> {
    for column in 0..PARAMETERS {
        let pivot =
            (column..PARAMETERS).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        matrix.swap(column, pivot);
        vector.swap(column, pivot);
        let pivot_row = matrix[column];
        for row in column + 1..PARAMETERS {
            let factor = matrix[row][column] / pivot_row[column];
            for (cell, above) in matrix[row].iter_mut().zip(pivot_row) {
                *cell -= factor * above;
            }
            vector[row] -= factor * vector[column];
        }
    }
    let mut solution = [0.0; PARAMETERS];
    for row in (0..PARAMETERS).rev() {
        let known: f64 = (row + 1..PARAMETERS).map(|column| matrix[row][column] * solution[column]).sum();
        solution[row] = (vector[row] - known) / matrix[row][row];
    }
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(parameters: Parameters, levels: &[f64], scatter: impl Fn(usize) -> f64) -> Vec<UslPoint> {
        levels
            .iter()
            .enumerate()
            .map(|(index, n)| UslPoint { n: *n, throughput: predict(parameters, *n) * (1.0 + scatter(index)) })
            .collect()
    }

    const LEVELS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0];

    #[test]
    fn the_band_of_the_curve_encloses_it_and_is_narrow_where_points_agree() {
        let of = |scatter: f64| -> UslFit {
            let points: Vec<UslPoint> = [1.0, 2.0, 4.0, 8.0]
                .into_iter()
                .flat_map(|n| {
                    let exact = predict([100.0, 0.05, 0.01], n);
                    [exact * (1.0 - scatter), exact * (1.0 + scatter)].map(|throughput| UslPoint { n, throughput })
                })
                .collect();
            fit_usl(&points).expect("a fit")
        };
        let width = |fit: &UslFit| {
            let Interval { low, high, .. } = fit.throughput_interval(4.0).expect("refits");
            assert!(low <= fit.throughput(4.0) && fit.throughput(4.0) <= high, "{low} to {high}");
            high - low
        };
        assert!(width(&of(0.002)) < width(&of(0.03)) / 3.0);
    }

    #[test]
    fn exact_points_give_their_parameters_back() {
        let fit = fit_usl(&points([995.0, 0.0267, 0.000_769], &LEVELS, |_| 0.0)).unwrap();
        assert!((fit.lambda.value - 995.0).abs() < 0.01, "{fit:?}");
        assert!((fit.sigma.value - 0.0267).abs() < 1e-5 && (fit.kappa.value - 0.000_769).abs() < 1e-6, "{fit:?}");
        let peak = fit.peak.unwrap();
        assert!((peak.value - ((1.0 - 0.0267) / 0.000_769_f64).sqrt()).abs() < 0.05, "{peak:?}");
        assert!((fit.throughput(16.0) - predict([995.0, 0.0267, 0.000_769], 16.0)).abs() < 0.01);
    }

    #[test]
    fn scattered_points_give_intervals_that_hold_the_truth() {
        let truth = [500.0, 0.05, 0.002];
        let levels: Vec<f64> = LEVELS.iter().chain(&LEVELS).copied().collect();
        let fit = fit_usl(&points(truth, &levels, |index| if index % 3 == 0 { 0.01 } else { -0.005 })).unwrap();
        for (parameter, truth) in [fit.lambda, fit.sigma, fit.kappa].into_iter().zip(truth) {
            assert!(parameter.interval.contains(truth), "{parameter:?} {truth}");
            assert!(parameter.interval.contains(parameter.value) && parameter.interval.width() > 0.0, "{parameter:?}");
        }
    }

    #[test]
    fn linear_scaling_has_no_contention_and_no_peak() {
        let fit =
            fit_usl(&points([100.0, 0.0, 0.0], &LEVELS, |index| if index % 2 == 0 { 0.01 } else { -0.01 })).unwrap();
        assert!(fit.sigma.value < 0.01 && fit.kappa.value < 0.001, "{fit:?}");
        assert_eq!(fit.peak, None);
        assert!(fit.caveats.iter().any(|caveat| caveat.contains("no peak")), "{:?}", fit.caveats);
    }

    #[test]
    fn what_grows_faster_than_linear_gets_no_negative_cost() {
        let fit =
            fit_usl(&points([100.0, 0.05, -0.0005], &LEVELS, |index| if index % 2 == 0 { 0.005 } else { -0.005 }));
        let fit = fit.unwrap();
        assert!(fit.kappa.value >= 0.0 && fit.kappa.interval.low >= 0.0 && fit.sigma.interval.low >= 0.0, "{fit:?}");
        assert_eq!(fit.peak, None);
    }

    #[test]
    fn two_task_counts_are_refused_however_often_they_were_measured() {
        let found = fit_usl(&points([100.0, 0.1, 0.0], &[1.0, 1.0, 2.0, 2.0, 2.0], |_| 0.0));
        assert_eq!(found, Err(UslRefusal::TooFewLevels { distinct: 2 }));
    }

    #[test]
    fn three_single_points_leave_nothing_to_spare() {
        assert_eq!(fit_usl(&points([100.0, 0.1, 0.0], &[1.0, 2.0, 3.0], |_| 0.0)), Err(UslRefusal::NothingToSpare));
    }

    #[test]
    fn wild_scatter_is_refused() {
        let wild = points([100.0, 0.1, 0.01], &[1.0, 2.0, 3.0, 3.0], |index| [0.5, -0.5, 0.9, -0.4][index]);
        assert!(matches!(fit_usl(&wild), Err(UslRefusal::Unidentified { .. })), "{:?}", fit_usl(&wild));
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        let mut broken = points([100.0, 0.1, 0.0], &LEVELS, |_| 0.0);
        broken[3].throughput = f64::NAN;
        assert!(matches!(fit_usl(&broken), Err(UslRefusal::Unusable { .. })));
    }

    #[test]
    fn the_same_points_give_the_same_intervals() {
        let noisy = points([500.0, 0.05, 0.002], &LEVELS, |index| if index % 3 == 0 { 0.02 } else { -0.01 });
        assert_eq!(fit_usl(&noisy), fit_usl(&noisy));
    }
}
