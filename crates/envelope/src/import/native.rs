//! Datum's own result folder.

use std::path::Path;

use super::assemble::{Merged, find_window, second};
use super::damage::{damage, end_of};
use super::error::ImportError;
use super::label;
use crate::as_float;
use crate::result::{Capsule, Completion, Phase, PhaseKind, read_capsule, read_intervals};
use crate::run::{Run, Second, Source, SourceKind, Window, WindowRule};

pub(super) fn read(folder: &Path) -> Result<Run, ImportError> {
    let capsule = read_capsule(folder)?;
    let series = series(folder)?;
    let recorded = end_of(&series);
    let measured: Vec<&Phase> = measured(&capsule).collect();
    let (window, warning) = match measured.as_slice() {
        // Ended before its measured phase: what came before is not taken for one.
        [] if capsule.completion != Completion::Whole => {
            (Window { from_second: recorded, until_second: recorded, found: WindowRule::WholePhase }, None)
        }
        [] => {
            let warning = "The run has no measured phase; its figures cover everything that was recorded.";
            (find_window(&series, 0, recorded), Some(warning.to_owned()))
        }
        [phase] => (find_window(&series, phase.from_second, phase.until_second.min(recorded)), None),
        [first, .., last] => {
            // The load changes between them, so that there is no one steady state to look for.
            let names: Vec<&str> = measured.iter().filter_map(|phase| phase.name.as_deref()).collect();
            let warning =
                format!("The run has several measured phases ({}); its figures cover all of them.", names.join(", "));
            let until_second = last.until_second.min(recorded);
            (Window { from_second: first.from_second, until_second, found: WindowRule::WholePhase }, Some(warning))
        }
    };
    let mut run = assemble(folder, capsule, series, window)?;
    run.warnings.extend(warning);
    Ok(run)
}

pub(super) fn read_phases(folder: &Path) -> Result<Vec<Run>, ImportError> {
    let capsule = read_capsule(folder)?;
    let series = series(folder)?;
    let recorded = end_of(&series);
    measured(&capsule)
        .enumerate()
        .filter(|(_, phase)| phase.from_second < recorded)
        .map(|(index, phase)| {
            let window = find_window(&series, phase.from_second, phase.until_second.min(recorded));
            let mut run = assemble(folder, capsule.clone(), series.clone(), window)?;
            run.label = phase.name.clone().unwrap_or_else(|| format!("{} #{}", run.label, index + 1));
            Ok(run)
        })
        .collect()
}

fn measured(capsule: &Capsule) -> impl Iterator<Item = &Phase> {
    capsule.phases.iter().filter(|phase| phase.kind == PhaseKind::Measure)
}

fn series(folder: &Path) -> Result<Vec<Second>, ImportError> {
    let mut series: Vec<Second> = Vec::new();
    for interval in read_intervals(folder)? {
        series.push(second(&interval?));
    }
    Ok(series)
}

fn assemble(folder: &Path, capsule: Capsule, series: Vec<Second>, window: Window) -> Result<Run, ImportError> {
    let mut merged = Merged::default();
    for interval in read_intervals(folder)? {
        let interval = interval?;
        if (window.from_second..window.until_second).contains(&interval.second) {
            merged.add(interval);
        }
    }
    let figures = merged.figures();
    let seconds = f64::from(window.until_second.saturating_sub(window.from_second));
    let warnings = capsule.warnings.clone();
    let mut void = capsule.void.clone();
    void.extend(damage(&series, &capsule));
    Ok(Run {
        label: label(folder),
        role: capsule.role.clone(),
        source: Source { kind: SourceKind::Native, path: Some(folder.to_owned()) },
        load: Some(capsule.load.clone()),
        tasks_per_service: tasks_per_service(&capsule),
        seconds: (seconds > 0.0).then_some(seconds),
        requests: figures.requests,
        throughput: (seconds > 0.0).then(|| as_float(figures.requests) / seconds),
        overall: figures.overall,
        endpoints: figures.endpoints,
        failures: figures.failures,
        series,
        window: Some(window),
        void,
        warnings,
        capsule: Some(capsule),
    })
}

/// The tasks of each service, where all have as many.
fn tasks_per_service(capsule: &Capsule) -> Option<u32> {
    let tasks = &capsule.target.stack.as_ref()?.tasks;
    let first = *tasks.values().next()?;
    tasks.values().all(|count| *count == first).then_some(first)
}
