//! k6 `--out csv`: a header, then one sample a row. Tags without a column of their own stand in `extra_tags` as
//! `name=value&name=value`.

use std::io::{self, BufRead};
use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder, StringRecord};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::point::{Ending, Metric, Point, Tags};
use crate::import::error::ImportError;
use crate::import::recognise::open;

/// Gives each point of a metric that is used to `each`, until that returns `false`. What a truncated file has of its last row
/// is dropped.
pub(super) fn points(path: &Path, mut each: impl FnMut(Point) -> bool) -> Result<Ending, ImportError> {
    let mut reader = ReaderBuilder::new().flexible(false).from_reader(open(path)?);
    let broken = |error: ::csv::Error| {
        let line = error.position().map_or(1, ::csv::Position::line);
        match error.into_kind() {
            ::csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                ImportError::Truncated { path: path.to_owned() }
            }
            ::csv::ErrorKind::Io(source) => ImportError::io(path, source),
            kind => ImportError::malformed(path, line, &Described(kind)),
        }
    };
    let header = reader.headers().map_err(broken)?.clone();
    let column = |name: &str| {
        let missing = || ImportError::malformed(path, 1, &format!("the header has no column `{name}`"));
        header.iter().position(|column| column == name).ok_or_else(missing)
    };
    let (metric_at, time_at, value_at) = (column("metric_name")?, column("timestamp")?, column("metric_value")?);

    let mut record = ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if is_cut_off(&error) && ends_here(&mut reader) => return Ok(Ending::Truncated),
            Err(error) => return Err(broken(error)),
        }
        let line = record.position().map_or(1, ::csv::Position::line);
        let malformed = |reason: String| ImportError::malformed(path, line, &reason);
        let text = |at: usize| std::str::from_utf8(record.get(at).unwrap_or_default());
        let read = |at: usize| text(at).map_err(|error| malformed(error.to_string()));
        let Some(metric) = Metric::named(read(metric_at)?) else { continue };
        let value = read(value_at)?;
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        let value = number.ok_or_else(|| malformed(format!("`{value}` is no number")))?;
        let time = read(time_at)?;
        let unix_ms = unix_ms(time).ok_or_else(|| malformed(format!("`{time}` is no time")))?;
        let tags = tags(&header, &record).map_err(|error| malformed(error.to_string()))?;
        if !each(Point { metric, unix_ms, value, tags }) {
            break;
        }
    }
    Ok(Ending::Whole)
}

/// Whether a row may be the beginning of one: compressed data broke off, or fields are missing.
fn is_cut_off(error: &::csv::Error) -> bool {
    match error.kind() {
        ::csv::ErrorKind::Io(source) => source.kind() == io::ErrorKind::UnexpectedEof,
        ::csv::ErrorKind::UnequalLengths { expected_len, len, .. } => len < expected_len,
        _ => false,
    }
}

/// Whether nothing comes any more.
fn ends_here(reader: &mut ::csv::Reader<Box<dyn BufRead>>) -> bool {
    match reader.read_byte_record(&mut ByteRecord::new()) {
        Ok(another) => !another,
        Err(error) => {
            matches!(error.kind(), ::csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof)
        }
    }
}

/// The kinds of error as the crate describes them, without the position that is said already.
struct Described(::csv::ErrorKind);

impl std::fmt::Display for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            ::csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                write!(f, "the row has {len} fields instead of {expected_len}")
            }
            ::csv::ErrorKind::Utf8 { err, .. } => write!(f, "it is no UTF-8: {err}"),
            _ => f.write_str("it is no CSV"),
        }
    }
}

fn tags(header: &StringRecord, record: &ByteRecord) -> Result<Tags, std::str::Utf8Error> {
    let mut tags = Tags::default();
    for (name, value) in header.iter().zip(record) {
        let value = std::str::from_utf8(value)?;
        if name == "extra_tags" {
            value.split('&').filter_map(|tag| tag.split_once('=')).for_each(|(name, value)| tags.set(name, value));
        } else {
            tags.set(name, value);
        }
    }
    Ok(tags)
}

/// k6 writes seconds, or with `timeFormat` milli-, micro- or nanoseconds or RFC 3339.
fn unix_ms(text: &str) -> Option<i64> {
    let Ok(number) = text.parse::<i64>() else {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        return i64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok();
    };
    // Told apart by size: each range covers the years from 1973 to 5138.
    Some(match number {
        0..100_000_000_000 => number * 1_000,
        100_000_000_000..100_000_000_000_000 => number,
        100_000_000_000_000..100_000_000_000_000_000 => number / 1_000,
        100_000_000_000_000_000.. => number / 1_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_units() {
        let expected = Some(1_796_073_900_000);
        assert_eq!(unix_ms("1796073900"), expected);
        assert_eq!(unix_ms("1796073900000"), expected);
        assert_eq!(unix_ms("1796073900000000"), expected);
        assert_eq!(unix_ms("1796073900000000000"), expected);
        assert_eq!(unix_ms("2026-11-30T21:25:00Z"), expected);
        assert_eq!(unix_ms("-5"), None);
        assert_eq!(unix_ms("yesterday"), None);
    }
}
