//! Reading results, wherever they come from, into a [`Run`].
//!
//! | Source | Recognised by | Knows |
//! |---|---|---|
//! | Datum's result folder | `capsule.json` | everything |
//! | k6 `--out json` (also gzipped) | a first line with `type` and `metric` | every second, endpoints by tag |
//! | k6 `--out csv` (also gzipped) | a header that begins with `metric_name,` | the same |
//! | k6 `--summary-export`, `handleSummary` data, machine-readable summary | an object with `metrics` or `results` | totals and a few percentiles of the whole run |
//! | k6's end-of-test text | lines such as `http_reqs....: 10 1/s` | the same |
//!
//! Large files are streamed, twice where the measured window must be found first: memory does not grow with their length.

mod assemble;
mod damage;
mod error;
mod k6;
mod native;
mod recognise;

use std::path::Path;

pub use error::ImportError;
pub use k6::live::K6Points;
pub use k6::stream::{K6Facts, k6_intervals};

use crate::run::{Run, SourceKind};
use recognise::{Form, recognise};

/// Reads one result: a result folder, or a file of k6's.
pub fn read(path: &Path) -> Result<Run, ImportError> {
    match recognise(path)? {
        Form::Folder => native::read(path),
        Form::K6Json => k6::stream::read(path, SourceKind::K6Json),
        Form::K6Csv => k6::stream::read(path, SourceKind::K6Csv),
        Form::K6Summary => k6::summary::read(path),
        Form::K6Text => k6::text::read(path),
    }
}

/// Reads each measured phase of a result folder as a run of its own, in order and named after the phase: an overload run
/// has `1x`, `2x`, `3x` and `back`.
pub fn read_phases(folder: &Path) -> Result<Vec<Run>, ImportError> {
    native::read_phases(folder)
}

/// The last part of a path, as a label.
fn label(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
