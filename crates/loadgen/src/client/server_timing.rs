//! `Server-Timing` (W3C Server Timing): what the server says about where the time went.

use http::HeaderMap;

/// The stages that are kept, and the total. Other names, which proxies may add, are ignored: what a server sends must not
/// decide how much memory a run takes.
pub(crate) const STAGES: [&str; 9] = ["admission", "pool", "db", "hash", "idp", "s3", "verify", "app", STAGE_TOTAL];

const STAGE_TOTAL: &str = "total";

/// The index of the total in [`STAGES`].
const TOTAL: usize = STAGES.len() - 1;

/// Longer than any request may take: a server that says so is not believed.
const MAX_MILLIS: f64 = 86_400_000.0;

/// Microseconds by stage, as in [`STAGES`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ServerTiming([Option<u64>; STAGES.len()]);

impl ServerTiming {
    /// Reads every such header. What is malformed is left out; of a name that comes twice the first counts.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut timing = Self::default();
        for value in headers.get_all("server-timing") {
            if let Ok(text) = value.to_str() {
                timing.read(text);
            }
        }
        timing
    }

    fn read(&mut self, text: &str) {
        for metric in split(text, b',') {
            let mut parts = split(metric, b';');
            let name = parts.next().unwrap_or_default().trim();
            let Some(stage) = STAGES.iter().position(|stage| *stage == name) else { continue };
            let duration = parts.find_map(|part| {
                let (key, value) = part.split_once('=')?;
                key.trim().eq_ignore_ascii_case("dur").then(|| micros(value.trim().trim_matches('"')))
            });
            if let Some(Some(micros)) = duration
                && self.0[stage].is_none()
            {
                self.0[stage] = Some(micros);
            }
        }
    }

    /// The server's whole time in microseconds.
    pub(crate) fn total(&self) -> Option<u64> {
        self.0[TOTAL]
    }

    /// What it said, by index of [`STAGES`].
    pub(crate) fn stages(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().enumerate().filter_map(|(stage, micros)| Some((stage, (*micros)?)))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within a day, and not negative")]
fn micros(text: &str) -> Option<u64> {
    let millis: f64 = text.parse().ok()?;
    // NaN is in no range.
    (0.0..=MAX_MILLIS).contains(&millis).then(|| (millis * 1_000.0).round() as u64)
}

/// Splits at a separator that is not within quotes.
fn split(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = current.bytes().position(|byte| {
            let is_end = byte == separator && !quoted;
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => {}
            }
            is_end
        });
        rest = end.map(|end| &current[end + 1..]);
        Some(end.map_or(current, |end| &current[..end]))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&str]) -> Vec<(&'static str, u64)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("server-timing", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        ServerTiming::of(&headers).stages().map(|(stage, micros)| (STAGES[stage], micros)).collect()
    }

    #[test]
    fn what_a_task_sends_is_read() {
        let stages = read(&["admission;dur=0.074, pool;dur=0.050, db;dur=4.269, app;dur=0.279, total;dur=319.774"]);
        let expected = [("admission", 74), ("pool", 50), ("db", 4_269), ("app", 279), ("total", 319_774)];
        assert_eq!(stages, expected);
    }

    #[test]
    fn quotes_spaces_other_parameters_and_other_names_do_not_disturb() {
        let stages = read(&[
            r#"cdn-cache; desc="HIT, db;dur=9 \" x"; dur=3, db ; desc=query ; DUR = "1.5""#,
            "total;dur=2;desc=\"a;b\"",
        ]);
        assert_eq!(stages, [("db", 1_500), ("total", 2_000)]);
    }

    #[test]
    fn of_a_name_that_comes_twice_the_first_counts() {
        assert_eq!(read(&["db;dur=1, db;dur=2", "db;dur=3"]), [("db", 1_000)]);
    }

    #[test]
    fn garbage_says_nothing() {
        for garbage in [
            "",
            ",",
            ";",
            "=",
            "total",
            "total;dur",
            "total;dur=",
            "total;dur=x",
            "total;dur=-1",
            "total;dur=NaN",
            "total;dur=inf",
            "total;dur=1e300",
            "total;desc=\"unterminated;dur=1",
            "dur=5",
            "total dur=1",
            "\u{e9}total;dur=1",
        ] {
            assert_eq!(read(&[garbage]), [], "{garbage:?}");
        }
    }
}
