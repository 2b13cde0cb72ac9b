//! Intervals by resampling runs.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

/// An interval with its confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true value, 0 to 1.
    pub confidence: f64,
}

impl Interval {
    /// Whether `value` lies in it, its ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Upper minus lower end.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// How to resample. The same seed gives the same interval on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// How many times.
    pub resamples: u32,
    /// Seed of the generator (PCG-64, O'Neill 2014).
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Self {
        Self { resamples: 2_000, seed: 0xDA7A }
    }
}

impl Resampling {
    /// The percentile interval (Efron 1979) of a statistic of two groups. `statistic` gets how often each run of a group was
    /// drawn, for both groups, and returns `None` where it is not defined; `None` if that is so for more than half of all.
    pub fn of_two(
        self,
        sizes: (usize, usize),
        confidence: f64,
        mut statistic: impl FnMut(&[u32], &[u32]) -> Option<f64>,
    ) -> Option<Interval> {
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut drawn = (vec![0; sizes.0], vec![0; sizes.1]);
        let mut values = Vec::new();
        for _ in 0..self.resamples {
            draw(&mut random, &mut drawn.0);
            draw(&mut random, &mut drawn.1);
            values.extend(statistic(&drawn.0, &drawn.1).filter(|value| value.is_finite()));
        }
        if values.len() * 2 < self.resamples as usize {
            return None;
        }
        percentile_interval(&mut values, confidence)
    }

    /// The percentile interval of a statistic of one group, as [`of_two`](Self::of_two).
    pub fn of_one(
        self,
        size: usize,
        confidence: f64,
        mut statistic: impl FnMut(&[u32]) -> Option<f64>,
    ) -> Option<Interval> {
        self.of_two((size, 0), confidence, |drawn, _| statistic(drawn))
    }
}

fn draw(random: &mut impl Rng, counts: &mut [u32]) {
    counts.fill(0);
    for _ in 0..counts.len() {
        // Rejection-free and portable: the high half of a product with a uniform 64-bit number.
        let wide = u128::from(random.next_u64()) * counts.len() as u128;
        if let Some(count) = usize::try_from(wide >> 64).ok().and_then(|index| counts.get_mut(index)) {
            *count += 1;
        }
    }
}

/// The middle `confidence` of `values`, which it sorts; `None` of nothing.
pub(crate) fn percentile_interval(values: &mut [f64], confidence: f64) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: quantile(values, tail), high: quantile(values, 1.0 - tail), confidence })
}

/// Linear between the neighbours (type 7 of Hyndman and Fan 1996).
#[expect(clippy::cast_precision_loss, reason = "thousands")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the slice")]
fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let position = probability.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64], drawn: &[u32]) -> f64 {
        let sum: f64 = values.iter().zip(drawn).map(|(value, count)| value * f64::from(*count)).sum();
        sum / f64::from(drawn.iter().sum::<u32>())
    }

    #[test]
    fn the_interval_holds_the_estimate_and_narrows_with_more_runs() {
        let few = [10.0, 11.0, 9.0, 10.5];
        let many: Vec<f64> = few.iter().copied().cycle().take(40).collect();
        let of = |values: &[f64]| {
            Resampling::default().of_one(values.len(), 0.95, |drawn| Some(mean(values, drawn))).unwrap()
        };
        let (wide, narrow) = (of(&few), of(&many));
        assert!(wide.contains(10.125) && narrow.contains(10.125));
        assert!(narrow.width() < wide.width() / 2.0, "{wide:?} {narrow:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values = [1.0, 4.0, 9.0, 16.0];
        let of = |seed| Resampling { resamples: 500, seed }.of_one(4, 0.9, |drawn| Some(mean(&values, drawn))).unwrap();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn an_undefined_statistic_has_no_interval() {
        assert_eq!(Resampling::default().of_one(3, 0.95, |_| None), None);
    }
}
