//! k6's summaries in JSON, of three shapes:
//!
//! - `--summary-export`: `metrics` by name with their figures beside one another,
//! - the data of `handleSummary` (v0, v1): `metrics` by name with the figures under `values`, times in milliseconds,
//! - the machine-readable summary (v1.5 with a flag, v2 always; schema 1.0.0): `results.metrics` is a list, counters have no
//!   rate, rates have `matches` and `total`, the length of the run stands in `config.duration` in seconds.

use std::path::Path;

use serde_json::{Map, Value};

use super::totals::{self, Figures, Totals};
use crate::import::error::ImportError;
use crate::import::recognise::read_small;
use crate::run::{Run, SourceKind};

pub(in crate::import) fn read(path: &Path) -> Result<Run, ImportError> {
    let text = read_small(path)?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| ImportError::malformed(path, error.line() as u64, &error))?;
    let mut totals = Totals::default();
    let kind = if let Some(metrics) = value.pointer("/results/metrics") {
        let list = metrics.as_array().ok_or_else(|| malformed(path, &text, "metrics", "is no list"))?;
        for metric in list {
            let name = metric["name"]
                .as_str()
                .ok_or_else(|| malformed(path, &text, "metrics", "has a metric without name"))?;
            let values = metric["values"].as_object().ok_or_else(|| malformed(path, &text, name, "has no values"))?;
            totals.add(name, figures(values));
        }
        totals.seconds = value.pointer("/config/duration").and_then(Value::as_f64);
        SourceKind::K6Summary
    } else {
        let metrics = value["metrics"].as_object().ok_or_else(|| malformed(path, &text, "metrics", "is no object"))?;
        let mut nested = false;
        for (name, metric) in metrics {
            let flat = metric.as_object().ok_or_else(|| malformed(path, &text, name, "is no object"))?;
            let values = flat.get("values").and_then(Value::as_object);
            nested |= values.is_some();
            totals.add(name, figures(values.unwrap_or(flat)));
        }
        let milliseconds = value.pointer("/state/testRunDurationMs").and_then(Value::as_f64);
        totals.seconds = milliseconds.map(|milliseconds| milliseconds / 1_000.0);
        if nested { SourceKind::K6Summary } else { SourceKind::K6SummaryExport }
    };
    totals::run(path, kind, &totals)
}

fn figures(values: &Map<String, Value>) -> Figures {
    let mut figures: Figures =
        values.iter().filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect();
    if let (Some(matches), Some(total)) = (figures.get("matches").copied(), figures.get("total").copied()) {
        figures.insert("passes".into(), matches);
        figures.insert("fails".into(), total - matches);
    }
    figures
}

/// The line is where the name first stands: the values themselves have no position any more.
fn malformed(path: &Path, text: &str, name: &str, what: &str) -> ImportError {
    let at = text.find(&format!("\"{name}\"")).unwrap_or(0);
    let line = text[..at].matches('\n').count() as u64 + 1;
    ImportError::malformed(path, line, &format!("`{name}` {what}"))
}
