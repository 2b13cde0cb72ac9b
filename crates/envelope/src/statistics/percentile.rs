//! Whether a sample is large enough for a percentile.

/// A percentile of `n` samples is a figure from here on: as many samples as this lie beyond it, n·(1 − q) ≥ 10.
///
/// How many of n samples exceed the true q-quantile is binomial; where ten do, the share that really lies beyond is between
/// half and twice 1 − q with 95 % confidence (4.8 to 18.4 for ten: Garwood, Biometrika 28, 1936). So p95 takes 200 samples,
/// p99 1,000 and p99.9 10,000. It is the success-failure condition of the binomial, too.
pub const SAMPLES_BEYOND: f64 = 10.0;

/// What a sample says about one of its percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// At least [`SAMPLES_BEYOND`] lie beyond it, or nobody says how many samples there were.
    Good,
    /// Some lie beyond it, and so few that another run gives another figure.
    Rough,
    /// Not one lies beyond it: it is the longest sample under another name.
    None,
}

/// How well `count` samples support the percentile `percent` (0 to 100). A count of 0 is one that the source does not say.
#[must_use]
pub fn support(percent: f64, count: u64) -> Support {
    let beyond = crate::as_float(count) * (1.0 - percent / 100.0);
    // 10,000 times 0.1 % is a little below 10 in floating point.
    match beyond * (1.0 + 1e-9) {
        _ if count == 0 => Support::Good,
        beyond if beyond >= SAMPLES_BEYOND => Support::Good,
        beyond if beyond >= 1.0 => Support::Rough,
        _ => Support::None,
    }
}

/// The highest percentile (0 to 100) that so many samples support; `None` where they support none.
#[must_use]
pub fn highest_supported(count: u64) -> Option<f64> {
    let share = 1.0 - SAMPLES_BEYOND / crate::as_float(count.max(1));
    (share > 0.0).then_some(share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_samples_beyond_make_a_percentile() {
        for (percent, needed) in [(50.0, 20), (90.0, 100), (95.0, 200), (99.0, 1_000), (99.9, 10_000)] {
            assert_eq!(support(percent, needed), Support::Good, "{percent}");
            assert_eq!(support(percent, needed - 1), Support::Rough, "{percent}");
            assert_eq!(support(percent, needed / 10), Support::Rough, "{percent}");
            assert_eq!(support(percent, needed / 10 - 1), Support::None, "{percent}");
        }
        assert_eq!(support(99.9, 0), Support::Good, "nobody says how many there were");
        assert_eq!(highest_supported(200).map(f64::round), Some(95.0));
        assert_eq!(highest_supported(10), None);
    }
}
