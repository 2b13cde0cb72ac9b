//! k6 `--out json`: one JSON object a line, points and definitions of metrics.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::path::Path;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::point::{Ending, Metric, Point, Tags};
use crate::import::error::ImportError;
use crate::import::recognise::open;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    metric: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    data: Data,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Data {
    time: Option<String>,
    value: Option<f64>,
    tags: Option<Tags>,
}

/// The longest line that can be a point.
const MOST_LINE_BYTES: u64 = 1024 * 1024;

/// Gives each point of a metric that is used to `each`, until that returns `false`. What a truncated file has of its last
/// line is dropped.
pub(super) fn points(path: &Path, mut each: impl FnMut(Point) -> bool) -> Result<Ending, ImportError> {
    let mut reader = open(path)?;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        match io::Read::take(&mut reader, MOST_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Ending::Truncated),
            Err(source) => return Err(ImportError::io(path, source)),
        }
        let is_last = !line.ends_with(b"\n") && (line.len() as u64) < MOST_LINE_BYTES;
        match point(line.trim_ascii()) {
            Ok(Some(point)) => {
                if !each(point) {
                    break;
                }
            }
            Ok(None) => {}
            Err(unreadable) if is_last && unreadable.is_cut_off => return Ok(Ending::Truncated),
            Err(unreadable) => return Err(ImportError::malformed(path, number, &unreadable.reason)),
        }
    }
    Ok(Ending::Whole)
}

/// Why a line is none of k6's.
pub(super) struct Unreadable {
    reason: String,
    /// Whether it could be the beginning of one.
    is_cut_off: bool,
}

/// The point of a line; none where the line is empty, defines a metric, or is of a metric that is not used.
pub(super) fn point(line: &[u8]) -> Result<Option<Point>, Unreadable> {
    let unreadable = |reason: &dyn std::fmt::Display| Unreadable { reason: reason.to_string(), is_cut_off: false };
    if line.is_empty() {
        return Ok(None);
    }
    if is_unused(line) {
        return if line.ends_with(b"}") {
            Ok(None)
        } else {
            Err(Unreadable { reason: "the line is cut off".to_owned(), is_cut_off: true })
        };
    }
    let Line { metric, kind, data } = serde_json::from_slice(line)
        .map_err(|error| Unreadable { reason: error.to_string(), is_cut_off: error.is_eof() })?;
    let Some(metric) = Metric::named(&metric).filter(|_| kind == "Point") else { return Ok(None) };
    let (Some(time), Some(value)) = (data.time, data.value.filter(|value| value.is_finite())) else {
        return Err(unreadable(&"a point without `time` or `value`"));
    };
    let time = OffsetDateTime::parse(&time, &Rfc3339).map_err(|error| unreadable(&error))?;
    let unix_ms = i64::try_from(time.unix_timestamp_nanos() / 1_000_000).map_err(|error| unreadable(&error))?;
    Ok(Some(Point { metric, unix_ms, value, tags: data.tags.unwrap_or_default() }))
}

/// Most lines are of metrics that are not used. k6 writes a point's metric first, so that those need no parsing.
fn is_unused(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"{\"metric\":\"").and_then(|rest| rest.split(|byte| *byte == b'"').next());
    name.and_then(|name| std::str::from_utf8(name).ok()).is_some_and(|name| Metric::named(name).is_none())
}
