//! Statistics of runs and of the seconds within one.
//!
//! Nothing is thrown away here: there is no rule for outliers. Percentiles are not here either: they come from merged
//! histograms ([`Latencies`](crate::result::Latencies)) and are never averaged.

mod bootstrap;
mod difference;
mod error_rate;
mod mser;
#[cfg(test)]
mod noise;
mod percentile;
mod sample;
mod special;
mod steady;
mod trend;

pub(crate) use bootstrap::percentile_interval;
pub use bootstrap::{Interval, Resampling};
pub use difference::{DEFAULT_POWER, minimum_detectable_difference, noise_of_difference, pooled_deviation};
pub use error_rate::{ErrorRate, exact_interval, exact_upper_bound};
pub use mser::{Truncation, mser};
pub use percentile::{SAMPLES_BEYOND, Support, highest_supported, support};
pub use sample::Sample;
pub use special::{regularised_incomplete_beta, student_t_quantile};
pub use steady::{SteadyState, find_steady_state};
pub use trend::{Trend, mann_kendall};

/// The confidence of every bound and interval unless a caller says otherwise.
pub const CONFIDENCE: f64 = 0.95;
