//! Numbers as the report writes them: three significant digits, units always named.

use crate::run::LatencySummary;
use crate::statistics::{Support, support};

/// What a source does not say.
pub const NOT_RECORDED: &str = "not recorded";

/// A duration given in milliseconds: `0.42 ms`, `75.3 ms`, `364 ms`, `1.17 s`.
#[must_use]
pub fn ms(value: f64) -> String {
    if !value.is_finite() {
        return NOT_RECORDED.to_owned();
    }
    // What rounds to 1000 ms is a second.
    if value.abs() >= 999.5 {
        format!("{} s", significant(value / 1000.0))
    } else {
        format!("{} ms", significant(value))
    }
}

/// The same without a unit, for columns that name theirs; always milliseconds.
#[must_use]
pub fn plain_ms(value: f64) -> String {
    significant(value)
}

/// What stands before a percentile that the sample supports badly.
pub const ROUGHLY: char = '≈';
/// What stands for a percentile that the sample cannot have.
pub const TOO_FEW: &str = "too few";

/// A percentile (0 to 100) of `count` samples in milliseconds, without its unit, marked as far as the sample does not support it
/// ([`support`]).
#[must_use]
pub fn percentile_ms(value: Option<f64>, percent: f64, count: u64) -> String {
    let Some(value) = value else { return NOT_RECORDED.to_owned() };
    match support(percent, count) {
        Support::Good => plain_ms(value),
        Support::Rough => format!("{ROUGHLY}{}", plain_ms(value)),
        Support::None => TOO_FEW.to_owned(),
    }
}

/// The same with its unit, for a sentence; `None` where the sample cannot have it.
#[must_use]
pub fn percentile_in_words(value: Option<f64>, percent: f64, count: u64) -> Option<String> {
    match support(percent, count) {
        Support::Good => value.map(ms),
        Support::Rough => value.map(|value| format!("{ROUGHLY}{}", ms(value))),
        Support::None => None,
    }
}

/// Percentiles of a summary for the cells of a table, as [`percentile_ms`] writes them. 50, 90, 95, 99 and 99.9 are known.
#[must_use]
pub fn percentiles<const N: usize>(latency: &LatencySummary, percents: [f64; N]) -> [String; N] {
    percents.map(|percent| percentile_ms(latency.percentile(percent), percent, latency.count))
}

/// A rate a second, two decimals, thousands apart: `1,222.35`.
#[must_use]
pub fn rate(value: f64) -> String {
    decimals(value, 2)
}

/// A count, thousands apart: `379,269`.
#[must_use]
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A fraction as per cent: `0.0024 %`, `7.5 %`, `87 %`.
#[must_use]
pub fn percent(fraction: f64) -> String {
    format!("{} %", two_significant(fraction * 100.0))
}

/// A change as per cent with its sign: `+17 %`, `-3.1 %`.
#[must_use]
pub fn change(fraction: f64) -> String {
    let sign = if fraction > 0.0 { "+" } else { "" };
    format!("{sign}{}", percent(fraction))
}

/// How many times one thing is another: `3.1`.
#[must_use]
pub fn factor(value: f64) -> String {
    two_significant(value)
}

/// Seconds: `0.82 s`, `180 s`, `12 min`.
#[must_use]
pub fn seconds(value: f64) -> String {
    if value >= 600.0 { format!("{} min", significant(value / 60.0)) } else { format!("{} s", significant(value)) }
}

/// Bytes in binary units: `29 MiB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(value: u64) -> String {
    let (mut value, mut unit) = (value as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    format!("{} {unit}", significant(value))
}

/// `1 run`, `5 runs`.
#[must_use]
pub fn plural(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", count(number as u64)) }
}

/// `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A value or what stands where there is none.
#[must_use]
pub fn or_missing(value: Option<String>) -> String {
    value.unwrap_or_else(|| NOT_RECORDED.to_owned())
}

/// Fixed decimals, thousands apart.
#[must_use]
pub fn decimals(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NOT_RECORDED.to_owned();
    }
    let text = format!("{value:.decimals$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    match digits.split_once('.') {
        Some((whole, fraction)) => format!("{sign}{}.{fraction}", grouped(whole)),
        None => format!("{sign}{}", grouped(digits)),
    }
}

/// Three significant digits, but never fewer than the whole part has.
fn significant(value: f64) -> String {
    rounded(value, 3)
}

fn two_significant(value: f64) -> String {
    rounded(value, 2)
}

fn rounded(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return NOT_RECORDED.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rounding may carry into another digit (0.9996 is 1.00), so its result decides.
    let magnitude = order(value);
    let step = 10_f64.powi(digits - 1 - magnitude);
    let magnitude = order((value * step).round() / step);
    let places = usize::try_from((digits - 1 - magnitude).max(0)).unwrap_or(0);
    decimals(value, places)
}

/// The power of ten of the first digit.
#[expect(clippy::cast_possible_truncation, reason = "a finite number has an exponent below 309")]
fn order(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_three_digits_and_their_unit() {
        for (value, shown) in [
            (0.0, "0 ms"),
            (0.004_21, "0.00421 ms"),
            (6.5, "6.50 ms"),
            (75.28, "75.3 ms"),
            (364.2, "364 ms"),
            (999.4, "999 ms"),
            (999.6, "1.00 s"),
            (1_170.0, "1.17 s"),
            (60_000.0, "60.0 s"),
        ] {
            assert_eq!(ms(value), shown);
        }
    }

    #[test]
    fn a_percentile_of_few_is_marked_and_one_of_too_few_is_none() {
        assert_eq!(percentile_ms(Some(851.0), 99.0, 1_000), "851");
        assert_eq!(percentile_ms(Some(851.0), 99.0, 999), "≈851");
        assert_eq!(percentile_ms(Some(851.0), 99.9, 200), "too few");
        assert_eq!(percentile_ms(None, 99.0, 200), NOT_RECORDED);
        assert_eq!(percentile_in_words(Some(851.0), 99.0, 200).as_deref(), Some("≈851 ms"));
        assert_eq!(percentile_in_words(Some(851.0), 99.9, 200), None);
    }

    #[test]
    fn rounding_that_carries_keeps_the_digits() {
        assert_eq!(plain_ms(9.999), "10.0");
        assert_eq!(plain_ms(99.96), "100");
        assert_eq!(percent(0.009_96), "1.0 %");
    }

    #[test]
    fn rates_counts_and_shares() {
        assert_eq!(rate(222.036_67), "222.04");
        assert_eq!(rate(-1_234.5), "-1,234.50");
        assert_eq!(count(379_269), "379,269");
        assert_eq!(count(999), "999");
        assert_eq!(percent(9.0 / 379_269.0), "0.0024 %");
        assert_eq!(percent(0.075), "7.5 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(change(0.169), "+17 %");
        assert_eq!(change(-0.031), "-3.1 %");
        assert_eq!(bytes(30_408_704), "29.0 MiB");
    }

    #[test]
    fn what_is_no_number_is_not_shown_as_one() {
        assert_eq!(ms(f64::NAN), NOT_RECORDED);
        assert_eq!(rate(f64::INFINITY), NOT_RECORDED);
    }

    #[test]
    fn lists_read_as_sentences() {
        let words = |words: &[&str]| list(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(words(&["a"]), "a");
        assert_eq!(words(&["a", "b"]), "a and b");
        assert_eq!(words(&["a", "b", "c"]), "a, b and c");
        assert_eq!(plural(1, "run", "runs"), "1 run");
        assert_eq!(plural(5, "run", "runs"), "5 runs");
    }
}
