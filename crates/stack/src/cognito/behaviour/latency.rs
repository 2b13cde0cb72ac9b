//! How long a call takes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::per_operation::{PerOperation, Target};
use crate::cognito::operation::Operation;

/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;
/// The longest delay that can be set.
const LONGEST: Duration = Duration::from_mins(5);

/// The time from a request's arrival to its answer, at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    /// Always the same: `400ms`.
    Constant(Duration),
    /// Lognormal, by median and 99th percentile: `p50:120ms/p99:400ms`. Its parameters are μ = ln p50 and
    /// σ = ln(p99/p50) / 2.3263, because the q-quantile of a lognormal is exp(μ + σ·z(q)).
    Lognormal {
        /// The median.
        p50: Duration,
        /// The 99th percentile.
        p99: Duration,
    },
}

impl Latency {
    /// One draw; `uniform` are two independent numbers in (0, 1).
    #[must_use]
    pub fn draw(&self, (first, second): (f64, f64)) -> Duration {
        match *self {
            Self::Constant(delay) => delay,
            Self::Lognormal { p50, p99 } => {
                let sigma = (p99.as_secs_f64() / p50.as_secs_f64()).ln() / NORMAL_P99;
                // Box and Muller, 1958.
                let normal = (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos();
                let seconds = p50.as_secs_f64() * (sigma * normal).exp();
                Duration::try_from_secs_f64(seconds).map_or(LONGEST, |delay| delay.min(LONGEST))
            }
        }
    }
}

impl FromStr for Latency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(quantiles) = text.strip_prefix("p50:") else { return duration(text).map(Self::Constant) };
        let (p50, p99) = quantiles.split_once("/p99:").ok_or_else(|| format!("`{text}` is no p50:TIME/p99:TIME"))?;
        let (p50, p99) = (duration(p50)?, duration(p99)?);
        if p50.is_zero() || p99 < p50 {
            return Err(format!("`{text}`: the median is above 0 and at most the 99th percentile"));
        }
        Ok(Self::Lognormal { p50, p99 })
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        match *self {
            Self::Constant(delay) => write!(f, "{}ms", ms(delay)),
            Self::Lognormal { p50, p99 } => write!(f, "p50:{}ms/p99:{}ms", ms(p50), ms(p99)),
        }
    }
}

/// `400ms`, `1.5s`, `0`.
fn duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is no time from 0 to 300s (400ms, 1.5s)");
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) if text == "0" => (text, 1.0),
        (None, None) => return Err(refused()),
    };
    let seconds: f64 = number.parse().map_err(|_| refused())?;
    let duration = Duration::try_from_secs_f64(seconds * scale).map_err(|_| refused())?;
    if duration > LONGEST { Err(refused()) } else { Ok(duration) }
}

/// Latencies of calls: `InitiateAuth=p50:120ms/p99:400ms,*=20ms`; `*` stands for all that are not named.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latencies(PerOperation<Latency>);

impl Latencies {
    /// That of one call.
    #[must_use]
    pub fn of(&self, operation: Operation) -> Option<Latency> {
        self.0.of(operation).copied()
    }

    /// The same with another latency of one call.
    #[must_use]
    pub fn with(mut self, operation: Operation, latency: Latency) -> Self {
        self.0.set(Target::One(operation), latency);
        self
    }
}

impl FromStr for Latencies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cognito::behaviour::draws::Draws;

    #[test]
    fn latencies_are_read_as_they_are_written() {
        for text in ["InitiateAuth=400ms", "*=0.5ms,SignUp=p50:120ms/p99:400ms", ""] {
            assert_eq!(text.parse::<Latencies>().unwrap().to_string(), text);
        }
        let latencies: Latencies = "*=20ms, InitiateAuth=1.5s".parse().unwrap();
        assert_eq!(latencies.of(Operation::InitiateAuth), Some(Latency::Constant(Duration::from_millis(1_500))));
        assert_eq!(latencies.of(Operation::GetUser), Some(Latency::Constant(Duration::from_millis(20))));
        for wrong in ["InitiateAuth", "Nothing=1ms", "*=1", "*=-1ms", "*=301s", "*=p50:0/p99:1s", "*=p50:2s/p99:1s"] {
            assert!(wrong.parse::<Latencies>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lognormal_has_the_quantiles_that_were_asked_for() {
        let latency: Latency = "p50:120ms/p99:400ms".parse().unwrap();
        let draws = Draws::new(7);
        let mut seconds: Vec<f64> = (0..100_000).map(|_| latency.draw(draws.pair()).as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let (p50, p99) = (seconds[50_000], seconds[99_000]);
        // Standard error of a sample quantile: sqrt(q(1-q)/n) / density; at p99 about 1 % here.
        assert!((p50 / 0.120 - 1.0).abs() < 0.02, "{p50}");
        assert!((p99 / 0.400 - 1.0).abs() < 0.05, "{p99}");
    }

    #[test]
    fn the_same_seed_gives_the_same_latencies() {
        let latency: Latency = "p50:120ms/p99:400ms".parse().unwrap();
        let sequence = |seed| {
            let draws = Draws::new(seed);
            (0..50).map(|_| latency.draw(draws.pair())).collect::<Vec<_>>()
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
    }
}
