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
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let malformed = |reason: &dyn std::fmt::Display| ImportError::malformed(path, number, reason);
        if is_unused(text) {
            if !text.ends_with(b"}") {
                if is_last {
                    return Ok(Ending::Truncated);
                }
                return Err(malformed(&"the line is cut off"));
            }
            continue;
        }
        let Line { metric, kind, data } = match serde_json::from_slice(text) {
            Ok(line) => line,
            Err(error) if is_last && error.is_eof() => return Ok(Ending::Truncated),
            Err(error) => return Err(malformed(&error)),
        };
        let Some(metric) = Metric::named(&metric).filter(|_| kind == "Point") else { continue };
        let (Some(time), Some(value)) = (data.time, data.value.filter(|value| value.is_finite())) else {
            return Err(malformed(&"a point without `time` or `value`"));
        };
        let time = OffsetDateTime::parse(&time, &Rfc3339).map_err(|error| malformed(&error))?;
        let unix_ms = i64::try_from(time.unix_timestamp_nanos() / 1_000_000).map_err(|error| malformed(&error))?;
        if !each(Point { metric, unix_ms, value, tags: data.tags.unwrap_or_default() }) {
            break;
        }
    }
    Ok(Ending::Whole)
}

/// Most lines are of metrics that are not used. k6 writes a point's metric first, so that those need no parsing.
fn is_unused(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"{\"metric\":\"").and_then(|rest| rest.split(|byte| *byte == b'"').next());
    name.and_then(|name| std::str::from_utf8(name).ok()).is_some_and(|name| Metric::named(name).is_none())
}
