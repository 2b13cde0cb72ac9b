//! k6's end-of-test text, as it is printed by v0.x (`http_reqs....: 10 1/s`, checks with ✓ and ✗) and v1 (sections, `1 out of
//! 10`), with or without the progress lines before it.

use std::path::Path;

use super::totals::{self, Figures, Totals};
use crate::import::error::ImportError;
use crate::import::recognise::read_small;
use crate::run::{Run, SourceKind};

/// Whether the beginning of a file may be such a text: a metric's line, or the lines that k6 prints while it runs.
pub(in crate::import) fn looks_like(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        (line.contains("http_req") && line.contains(".:"))
            || (line.starts_with("running (") && line.contains(" VUs, "))
            || line.starts_with("execution: local")
    })
}

pub(in crate::import) fn read(path: &Path) -> Result<Run, ImportError> {
    let totals = parse(&read_small(path)?).map_err(|(line, reason)| ImportError::malformed(path, line, &reason))?;
    totals::run(path, SourceKind::K6Text, &totals)
}

fn parse(text: &str) -> Result<Totals, (u64, String)> {
    let (mut totals, mut parent) = (Totals::default(), String::new());
    for (line, number) in text.lines().zip(1..) {
        let line = without_colours(line);
        let line = line.trim();
        if let Some(seconds) =
            line.strip_prefix("running (").and_then(|rest| rest.split(')').next()).and_then(milliseconds)
        {
            totals.seconds = Some(seconds / 1_000.0);
        }
        if totals.arrivals_per_second.is_none() && line.starts_with("* ") {
            totals.arrivals_per_second = arrivals(line);
        }
        let Some((name, rest)) = metric_line(line) else { continue };
        let full_name = if name.starts_with('{') {
            format!("{parent}{name}")
        } else {
            name.clone_into(&mut parent);
            parent.clone()
        };
        if let Some(figures) = figures(rest).map_err(|reason| (number, reason))? {
            totals.add(&full_name, figures);
        }
    }
    Ok(totals)
}

/// `name.....: figures`, without the sign of a threshold before it.
fn metric_line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(['✓', '✗', ' ']);
    let at = line.find(".:")?;
    let name = line[..at].trim_end_matches('.').trim();
    let plain = |name: &str| name.chars().all(|character| character.is_alphanumeric() || "_-{}:".contains(character));
    let named = !name.is_empty() && (plain(name) || (name.starts_with('{') && name.ends_with('}')));
    named.then(|| (name, line[at + 2..].trim()))
}

/// Figures of a trend, gauge, counter or rate; `None` for amounts of data, which are not used.
fn figures(text: &str) -> Result<Option<Figures>, String> {
    let mut figures = Figures::new();
    let words: Vec<&str> = text.split_whitespace().collect();
    for word in &words {
        if let Some((name, value)) = word.split_once('=') {
            // Amounts of data have no time and no count behind their sign.
            let value = milliseconds(value).ok_or_else(|| format!("`{word}` is no figure"))?;
            figures.insert(name.to_owned(), value);
        }
    }
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            figures.insert(name.to_owned(), value);
        }
    };
    match words.as_slice() {
        // 5.79% 12 out of 207
        [share, hits, "out", "of", total, ..] if share.ends_with('%') => {
            put("passes", number(hits));
            put("fails", number(total).zip(number(hits)).map(|(total, hits)| total - hits));
        }
        // 97.32% ✓ 255 ✗ 7
        [share, "✓", passes, "✗", fails, ..] if share.ends_with('%') => {
            put("passes", number(passes));
            put("fails", number(fails));
        }
        // 379269 222.04/s
        [count, rate, ..] if rate.ends_with("/s") => {
            put("count", number(count));
            put("rate", number(rate.trim_end_matches("/s")));
        }
        // 200 min=200 max=200
        [value, ..] if !value.contains('=') => put("value", number(value)),
        _ => {}
    }
    Ok((!figures.is_empty()).then_some(figures))
}

/// `* name: 20.00 iterations/s for 3s (…)`, `Up to 100.00 iterations/s …`.
fn arrivals(line: &str) -> Option<f64> {
    let before = line.split(" iterations/s").next().filter(|before| before.len() < line.len())?;
    number(before.rsplit(' ').next()?)
}

/// A number, with or without commas between thousands.
fn number(text: &str) -> Option<f64> {
    let groups: Vec<&str> = text.split(',').collect();
    let thousands = groups.len() > 1
        && groups[1..].iter().all(|group| group.split('.').next().is_some_and(|digits| digits.len() == 3));
    let text = if thousands { groups.concat() } else { text.to_owned() };
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// A time as Go writes it (`1m2.5s`, `852ms`, `6.5µs`), in milliseconds; a plain number stays as it is.
fn milliseconds(text: &str) -> Option<f64> {
    if let Some(plain) = number(text) {
        return Some(plain);
    }
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let unit_at =
            rest.find(|character: char| !character.is_ascii_digit() && character != '.' && character != ',')?;
        let value = number(&rest[..unit_at])?;
        let after = &rest[unit_at..];
        let unit_end = after.find(|character: char| character.is_ascii_digit()).unwrap_or(after.len());
        total += value
            * match &after[..unit_end] {
                "ns" => 1e-6,
                "us" | "µs" | "μs" => 1e-3,
                "ms" => 1.0,
                "s" => 1e3,
                "m" => 60e3,
                "h" => 3_600e3,
                _ => return None,
            };
        rest = &after[unit_end..];
    }
    (!text.is_empty()).then_some(total)
}

/// Without the escape sequences that colour a terminal (ECMA-48: CSI up to its final byte).
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            while characters.next().is_some_and(|next| !('\u{40}'..='\u{7e}').contains(&next)) {}
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_writes_them() {
        for (text, expected) in [
            ("75.28ms", 75.28),
            ("1.17s", 1_170.0),
            ("120µs", 0.12),
            ("6.5μs", 0.0065),
            ("800ns", 0.0008),
            ("1m2.5s", 62_500.0),
            ("1h0m1s", 3_601_000.0),
            ("0s", 0.0),
            ("3m00.2s", 180_200.0),
            ("12.5", 12.5),
        ] {
            let read = milliseconds(text).unwrap();
            assert!((read - expected).abs() < 1e-9 * expected.max(1.0), "{text}: {read}");
        }
        for text in ["", "ms", "5x", "5ms3", "abc", "-5ms", "NaN"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_may_have_thousands() {
        assert_eq!(number("379,269"), Some(379_269.0));
        assert_eq!(number("1,379,269.5"), Some(1_379_269.5));
        assert_eq!(number("37,92"), None);
        assert_eq!(number("222.04"), Some(222.04));
    }

    #[test]
    fn the_executor_says_its_rate() {
        assert_eq!(arrivals("* open: 20.00 iterations/s for 3s (maxVUs: 2-5, gracefulStop: 30s)"), Some(20.0));
        assert_eq!(arrivals("* x: Up to 100.50 iterations/s for 1m0s over 2 stages (maxVUs: 50)"), Some(100.5));
        assert_eq!(arrivals("* default: 200 looping VUs for 3m0s (gracefulStop: 30s)"), None);
    }

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(without_colours("\u{1b}[32m✓\u{1b}[0m http_reqs\u{1b}[2m...:\u{1b}[0m 5"), "✓ http_reqs...: 5");
    }
}
