//! Results read back, and the reports that are written from them.

use std::fs;
use std::path::{Path, PathBuf};

use envelope::import;
use envelope::report::reference::PHASE_4;
use envelope::report::{self, Document, Options};
use envelope::result::{Capsule, Latencies, PhaseKind, SET_UP, read_intervals};
use envelope::run::Run;
use service_kit::clock::{Clock, SystemClock};

use super::capsule;
use super::error::BenchError;

/// The report's files, as `datum report` calls them.
const MARKDOWN: &str = "report.md";
const HTML: &str = "report.html";

/// A report that is not written yet: where it cannot be, it can still be shown.
pub(super) struct Built {
    pub(super) runs: Vec<Run>,
    pub(super) document: Document,
}

/// Where a report was written.
pub(super) struct Written {
    pub(super) markdown: PathBuf,
    pub(super) html: PathBuf,
}

/// Reads a result as every report does.
pub(super) fn read(folder: &Path) -> Result<Run, BenchError> {
    import::read(folder).map_err(|error| BenchError::Analysis(error.to_string()))
}

/// A new folder for several results and what they say together.
pub(super) fn new_set(out: &Path, name: &str) -> Result<PathBuf, BenchError> {
    super::run::prove_writable(out)?;
    super::run::new_folder(out, &capsule::id(SystemClock.now(), name, None))
}

/// The expected answers of the measured phases, all of them.
pub(super) fn measured_latencies(folder: &Path, capsule: &Capsule) -> Result<Latencies, BenchError> {
    let measured: Vec<_> = capsule.phases.iter().filter(|phase| phase.kind == PhaseKind::Measure).collect();
    let mut latencies = Latencies::new();
    for interval in read_intervals(folder)? {
        let interval = interval?;
        if measured.iter().any(|phase| (phase.from_second..phase.until_second).contains(&interval.second)) {
            let of_mix = interval.endpoints.iter().filter(|(name, _)| *name != SET_UP);
            of_mix.for_each(|(_, endpoint)| latencies.merge(&endpoint.latency));
        }
    }
    Ok(latencies)
}

/// The report of these results.
pub(super) fn build(results: &[PathBuf]) -> Result<Built, BenchError> {
    build_with(results, &Options::default())
}

/// The same with the reference's figures beside them.
pub(super) fn build_beside_reference(results: &[PathBuf]) -> Result<Built, BenchError> {
    build_with(results, &Options { reference: Some(PHASE_4), ..Options::default() })
}

/// The same with anything that a report can have beside its runs.
pub(super) fn build_with(results: &[PathBuf], options: &Options) -> Result<Built, BenchError> {
    let runs = results.iter().map(|result| read(result)).collect::<Result<Vec<_>, _>>()?;
    let document = report::build(&runs, options);
    Ok(Built { runs, document })
}

impl Built {
    /// Writes it into a folder.
    pub(super) fn write(&self, into: &Path) -> Result<Written, BenchError> {
        fs::create_dir_all(into).map_err(BenchError::io(into))?;
        let (markdown, html) = (into.join(MARKDOWN), into.join(HTML));
        fs::write(&markdown, report::markdown(&self.document)).map_err(BenchError::io(&markdown))?;
        fs::write(&html, report::html(&self.document)).map_err(BenchError::io(&html))?;
        Ok(Written { markdown, html })
    }
}

/// The ids of the rules that spoke in the report of one result.
pub(super) fn rules_that_spoke(result: &Path) -> Result<Vec<&'static str>, BenchError> {
    let document = report::build(&[read(result)?], &Options::default());
    Ok(document.findings().map(|finding| finding.rule).collect())
}
