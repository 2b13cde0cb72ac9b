//! k6 `--out json`: one JSON object a line, points and definitions of metrics.

use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::point::{Metric, Point, Tags};
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

/// Gives each point of a metric that is used to `each`, until that returns `false`.
pub(super) fn points(path: &Path, mut each: impl FnMut(Point) -> bool) -> Result<(), ImportError> {
    let mut reader = open(path)?;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = std::io::Read::take(&mut reader, MOST_LINE_BYTES).read_until(b'\n', &mut line);
        if read.map_err(|source| ImportError::io(path, source))? == 0 {
            break;
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let malformed = |reason: &dyn std::fmt::Display| ImportError::malformed(path, number, reason);
        if is_unused(text) {
            if !text.ends_with(b"}") {
                return Err(malformed(&"the line is cut off"));
            }
            continue;
        }
        let Line { metric, kind, data } = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
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
    Ok(())
}

/// Most lines are of metrics that are not used. k6 writes a point's metric first, so that those need no parsing.
fn is_unused(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"{\"metric\":\"").and_then(|rest| rest.split(|byte| *byte == b'"').next());
    name.and_then(|name| std::str::from_utf8(name).ok()).is_some_and(|name| Metric::named(name).is_none())
}
