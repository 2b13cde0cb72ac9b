//! Latencies as an HDR histogram, in microseconds.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Ten minutes: longer latencies are counted as this one. In an open model a latency counts from the intended start and
/// can exceed every request timeout.
pub const HIGHEST_MICROS: u64 = 600_000_000;

/// Three significant digits: every recorded value is kept within 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram that is none, or one of another shape.
#[derive(Debug, thiserror::Error)]
#[error("no histogram of latencies: {0}")]
pub struct HistogramError(String);

/// Counts of latencies, mergeable without loss. Serialised in the V2 format of `HdrHistogram`, deflated, in base64.
#[derive(Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// An empty histogram of 1 µs to [`HIGHEST_MICROS`].
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "the bounds are constants that HdrHistogram accepts")]
    pub fn new() -> Self {
        Self(Histogram::new_with_bounds(1, HIGHEST_MICROS, SIGNIFICANT_DIGITS).expect("constant bounds"))
    }

    /// Counts one latency; below 1 µs counts as 1 µs, above [`HIGHEST_MICROS`] as that.
    pub fn record(&mut self, latency: Duration) {
        self.record_micros(u64::try_from(latency.as_micros()).unwrap_or(HIGHEST_MICROS));
    }

    /// Counts one latency in microseconds, as [`record`](Self::record) does.
    pub fn record_micros(&mut self, micros: u64) {
        self.0.saturating_record(micros.max(1));
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so that nothing can be refused.
        self.0 += &other.0;
    }

    /// Forgets all counts, keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many latencies were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether none was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latency that `percent` (0 to 100) of all do not exceed, in milliseconds; `None` if nothing was counted.
    #[must_use]
    pub fn percentile_ms(&self, percent: f64) -> Option<f64> {
        (!self.is_empty()).then(|| millis(self.0.value_at_percentile(percent)))
    }

    /// The arithmetic mean in milliseconds; `None` if nothing was counted.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.mean() / 1000.0)
    }

    /// The longest in milliseconds; `None` if nothing was counted.
    #[must_use]
    pub fn max_ms(&self) -> Option<f64> {
        (!self.is_empty()).then(|| millis(self.0.max()))
    }

    /// The shortest in milliseconds; `None` if nothing was counted.
    #[must_use]
    pub fn min_ms(&self) -> Option<f64> {
        (!self.is_empty()).then(|| millis(self.0.min()))
    }

    /// All of them added up, in seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    pub fn sum_seconds(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.0.mean() * self.0.len() as f64 / 1e6 }
    }

    /// `(upper edge in milliseconds, count)` of every recorded value, ascending: for charts and goodness of fit.
    pub fn recorded(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.0.iter_recorded().map(|value| (millis(value.value_iterated_to()), value.count_at_value()))
    }

    /// How many exceed `ms` milliseconds.
    #[must_use]
    pub fn count_above_ms(&self, ms: f64) -> u64 {
        self.recorded().filter(|(edge, _)| *edge > ms).map(|(_, count)| count).sum()
    }

    fn encode(&self) -> String {
        let mut bytes = Vec::new();
        // Writing to memory cannot fail, and the counts are in the format's range.
        let _ = V2DeflateSerializer::new().serialize(&self.0, &mut bytes);
        STANDARD.encode(bytes)
    }

    fn decode(text: &str) -> Result<Self, HistogramError> {
        let refused = |error: &dyn std::fmt::Display| HistogramError(error.to_string());
        let bytes = STANDARD.decode(text).map_err(|error| refused(&error))?;
        let read: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| refused(&error))?;
        let mut own = Self::new();
        own.0.add(&read).map_err(|error| refused(&error))?;
        Ok(own)
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most 600,000,000")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// Its twenty thousand counters say less than this.
impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Latencies");
        shown.field("count", &self.count()).field("p50_ms", &self.percentile_ms(50.0)).field("max_ms", &self.max_ms());
        shown.finish_non_exhaustive()
    }
}

impl Serialize for Latencies {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encode())
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::decode(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_survives_a_file() {
        let mut latencies = Latencies::new();
        for ms in [1, 2, 2, 250, 70_000] {
            latencies.record(Duration::from_millis(ms));
        }
        let text = serde_json::to_string(&latencies).unwrap();
        let read: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(read, latencies);
        assert_eq!(read.count(), 5);
    }

    #[test]
    fn out_of_range_is_counted_at_the_edge() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::ZERO);
        latencies.record(Duration::from_secs(100_000));
        assert_eq!(latencies.count(), 2);
        assert!((latencies.min_ms().unwrap() - 0.001).abs() < 1e-9);
        assert!((latencies.max_ms().unwrap() / 600_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn merging_is_counting_together() {
        let (mut left, mut right, mut both) = (Latencies::new(), Latencies::new(), Latencies::new());
        for micros in 1..=1000 {
            if micros % 3 == 0 {
                left.record_micros(micros);
            } else {
                right.record_micros(micros);
            }
            both.record_micros(micros);
        }
        left.merge(&right);
        assert_eq!(left, both);
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Latencies::new().percentile_ms(99.0), None);
        assert_eq!(Latencies::new().mean_ms(), None);
    }

    #[test]
    fn what_is_no_histogram_is_an_error() {
        for text in ["\"\"", "\"####\"", "\"AAAA\"", "7"] {
            assert!(serde_json::from_str::<Latencies>(text).is_err(), "{text}");
        }
    }
}
