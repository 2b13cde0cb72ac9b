//! The arrival process of an open model, and choices from the mix. Both follow from the seed alone.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::scenario::{Arrivals, Endpoint, MixEntry, Schedule};

/// 2⁻⁵³: the spacing of doubles in [0.5, 1).
const UNIT: f64 = 1.0 / 9_007_199_254_740_992.0;

/// A generator of random numbers for one purpose (`stream`) of a run. Streams of one seed are independent.
pub(super) fn generator(seed: u64, stream: u64) -> Pcg64Mcg {
    // `seed_from_u64` hashes; the multiplication keeps (seed, stream) and (seed + 1, stream - 1) apart.
    Pcg64Mcg::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream)
}

/// Uniform on (0, 1].
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn uniform(random: &mut Pcg64Mcg) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 * UNIT
}

/// Exponentially distributed with mean 1 (by inversion).
pub(super) fn exponential(random: &mut Pcg64Mcg) -> f64 {
    -uniform(random).ln()
}

/// Draws requests by their weights.
#[derive(Debug, Clone)]
pub(super) struct Mix {
    /// Cumulative weights.
    edges: Vec<(u64, Endpoint)>,
    total: u64,
}

impl Mix {
    pub(super) fn new(entries: &[MixEntry]) -> Self {
        let mut total = 0;
        let edge = |entry: &MixEntry| {
            total += u64::from(entry.weight);
            (total, entry.endpoint)
        };
        let edges: Vec<_> = entries.iter().map(edge).collect();
        Self { edges, total }
    }

    pub(super) fn draw(&self, random: &mut Pcg64Mcg) -> Endpoint {
        // Multiplying maps 64 random bits to 0..total with a bias below total / 2⁶⁴ (Lemire 2019).
        let wide = u128::from(random.next_u64()) * u128::from(self.total);
        let point = u64::try_from(wide >> 64).unwrap_or(0);
        let chosen = self.edges.iter().find(|(edge, _)| point < *edge);
        chosen.map_or(Endpoint::GetUser, |(_, endpoint)| *endpoint)
    }
}

/// One arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arrival {
    /// Its number in the run.
    pub(super) iteration: u64,
    /// When it is due, in seconds of the run.
    pub(super) at: f64,
    pub(super) endpoint: Endpoint,
    /// Decides who of the dataset logs in.
    pub(super) draw: u64,
}

/// All arrivals of a run, in order.
pub(super) struct ArrivalProcess<'s> {
    random: Pcg64Mcg,
    schedule: &'s Schedule,
    rate: f64,
    spacing: Arrivals,
    mix: Mix,
    /// Arrivals in units of the mean, as if the rate were 1.
    unit: f64,
    iteration: u64,
}

impl<'s> ArrivalProcess<'s> {
    pub(super) fn new(seed: u64, schedule: &'s Schedule, rate: f64, spacing: Arrivals, mix: Mix) -> Self {
        Self { random: generator(seed, 0), schedule, rate, spacing, mix, unit: 0.0, iteration: 0 }
    }
}

impl Iterator for ArrivalProcess<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.unit += match self.spacing {
            Arrivals::Poisson => exponential(&mut self.random),
            Arrivals::Constant => 1.0,
        };
        let at = self.schedule.time_of_area(self.unit / self.rate)?;
        let iteration = self.iteration;
        self.iteration += 1;
        let endpoint = self.mix.draw(&mut self.random);
        Some(Arrival { iteration, at, endpoint, draw: self.random.next_u64() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::scenario::{Overrides, open};

    fn sls(measure: u32) -> crate::scenario::Scenario {
        let overrides = Overrides {
            ramp_seconds: Some(10),
            warm_up_seconds: Some(0),
            measure_seconds: Some(measure),
            ..Overrides::default()
        };
        overrides.apply(&open("sls").unwrap()).unwrap()
    }

    fn arrivals(seed: u64, rate: f64, spacing: Arrivals, measure: u32) -> Vec<Arrival> {
        let scenario = sls(measure);
        let schedule = scenario.schedule();
        ArrivalProcess::new(seed, &schedule, rate, spacing, Mix::new(&scenario.mix)).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals_and_another_others() {
        let first = arrivals(7, 100.0, Arrivals::Poisson, 20);
        assert_eq!(first, arrivals(7, 100.0, Arrivals::Poisson, 20));
        assert_ne!(first, arrivals(8, 100.0, Arrivals::Poisson, 20));
        assert!(first.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].iteration + 1 == pair[1].iteration));
    }

    /// A Poisson process has exponential gaps: their standard deviation is their mean. Bounds are more than five standard
    /// errors wide, and the seed is fixed.
    #[test]
    #[expect(clippy::cast_precision_loss, reason = "some ten thousand")]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_poisson_arrivals() {
        let all = arrivals(1, 100.0, Arrivals::Poisson, 200);
        let steady: Vec<f64> = all.iter().map(|arrival| arrival.at).filter(|at| *at >= 10.0).collect();
        let gaps: Vec<f64> = steady.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 0.01).abs() < 0.000_4, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{}", variance.sqrt() / mean);
        let in_ramp = all.len() - steady.len();
        assert!((380..620).contains(&in_ramp), "half the rate on average, not {in_ramp} in 10 s");
    }

    #[test]
    fn constant_arrivals_are_equally_spaced_once_the_ramp_is_over() {
        let all = arrivals(1, 50.0, Arrivals::Constant, 10);
        assert_eq!(all.len(), 250 + 500);
        let steady = all.windows(2).filter(|pair| pair[0].at >= 10.0);
        assert!(steady.into_iter().all(|pair| (pair[1].at - pair[0].at - 0.02).abs() < 1e-9));
    }

    #[test]
    fn weights_are_respected() {
        let mix = Mix::new(&open("baseline-mix").unwrap().mix);
        let mut random = generator(1, 1);
        let mut counts = BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(mix.draw(&mut random).name()).or_insert(0_u32) += 1;
        }
        for (endpoint, share) in [("get-user", 0.8), ("upload", 0.1), ("login", 0.07), ("register", 0.03)] {
            let drawn = f64::from(counts[endpoint]) / 100_000.0;
            // Five standard errors.
            let bound = 5.0 * (share * (1.0 - share) / 100_000.0_f64).sqrt();
            assert!((drawn - share).abs() < bound, "{endpoint}: {drawn}");
        }
    }

    #[test]
    fn streams_differ() {
        let first = |seed, stream| generator(seed, stream).next_u64();
        let all = [first(1, 0), first(1, 1), first(2, 0), first(0, 0), first(0, 1)];
        assert!(all.iter().enumerate().all(|(index, value)| !all[..index].contains(value)));
    }
}
