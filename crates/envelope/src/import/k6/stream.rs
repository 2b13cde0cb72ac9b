//! A run from k6's outputs that have every sample.

use std::path::Path;

pub use super::intervals::K6Facts;
use super::intervals::{Collector, OTHER_ENDPOINTS, Telling};
use super::point::{Ending, Metric, Point};
use super::totals::dropped;
use super::{csv, json};
use crate::as_float;
use crate::import::assemble::{Merged, find_window, second};
use crate::import::error::ImportError;
use crate::import::label;
use crate::import::recognise::{Form, recognise};
use crate::result::{Interval, Load};
use crate::run::{Run, Second, Source, SourceKind};

/// Turns k6's `json` or `csv` output into intervals, in order and one at a time, as a native driver writes them: with a
/// capsule beside them they are a result folder. Second 0 is the second of the first sample outside `setup()`, its Unix time
/// is in the facts; seconds without any sample are left out. A file that breaks off is refused: what becomes a result folder
/// has no other sign of it. The driver's own condition is not in k6's outputs.
pub fn k6_intervals(path: &Path, mut sink: impl FnMut(Interval)) -> Result<K6Facts, ImportError> {
    let kind = match recognise(path)? {
        Form::K6Json => SourceKind::K6Json,
        Form::K6Csv => SourceKind::K6Csv,
        _ => {
            let reason = "it has no samples; k6's `--out json` and `--out csv` have".into();
            return Err(ImportError::Unrecognised { path: path.to_owned(), reason });
        }
    };
    let (origin_ms, telling) = scan(path, kind)?;
    match collect(path, kind, origin_ms, telling, &mut sink)? {
        (facts, Ending::Whole) => Ok(facts),
        (_, Ending::Truncated) => Err(ImportError::Truncated { path: path.to_owned() }),
    }
}

pub(in crate::import) fn read(path: &Path, kind: SourceKind) -> Result<Run, ImportError> {
    let (origin_ms, telling) = scan(path, kind)?;
    let mut series: Vec<Second> = Vec::new();
    let (facts, ending) = collect(path, kind, origin_ms, telling, &mut |interval| {
        // k6 does not say how it fared itself.
        series.push(Second { generator: None, ..second(&interval) });
    })?;
    if facts.requests == 0 && ending == Ending::Truncated {
        return Err(ImportError::Truncated { path: path.to_owned() });
    }
    if facts.requests == 0 {
        let reason = "it has no sample of http_req_duration outside setup()".into();
        return Err(ImportError::Empty { path: path.to_owned(), reason });
    }
    let (from, until) = measured(&facts, &series);
    let window = find_window(&series, from, until);
    let mut merged = Merged::default();
    collect(path, kind, origin_ms, telling, &mut |interval| {
        if (window.from_second..window.until_second).contains(&interval.second) {
            merged.add(interval);
        }
    })?;
    let figures = merged.figures();
    let seconds = f64::from(window.until_second - window.from_second);
    let (load, warnings) = load(&facts, &series);
    let truncated = format!(
        "The file is truncated: it breaks off {} s after its first sample. The figures are of what stands before; how the run \
         went on is not known",
        series.last().map_or(0, |second| second.second)
    );
    Ok(Run {
        label: label(path),
        role: None,
        source: Source { kind, path: Some(path.to_owned()) },
        capsule: None,
        load,
        tasks_per_service: None,
        seconds: Some(seconds),
        requests: figures.requests,
        throughput: Some(as_float(figures.requests) / seconds),
        overall: figures.overall,
        endpoints: figures.endpoints,
        failures: figures.failures,
        series,
        window: Some(window),
        void: if ending == Ending::Truncated { vec![truncated] } else { Vec::new() },
        warnings,
    })
}

fn points(path: &Path, kind: SourceKind, each: impl FnMut(Point) -> bool) -> Result<Ending, ImportError> {
    if kind == SourceKind::K6Csv { csv::points(path, each) } else { json::points(path, each) }
}

/// The beginning of second 0 (milliseconds since 1970), and how the script tells of its requests. Both must be known before the
/// first interval is written.
fn scan(path: &Path, kind: SourceKind) -> Result<(i64, Telling), ImportError> {
    let (mut origin_ms, mut telling) = (None, Telling::Plain);
    points(path, kind, |point| {
        if point.tags.is_outside_the_load() {
            return true;
        }
        if let Some(began_ms) = point.load_began_ms() {
            (origin_ms, telling) = (Some(began_ms), Telling::Datum);
            return false;
        }
        // A whole second of the clock, as k6's own summaries have it.
        origin_ms.get_or_insert(point.unix_ms.div_euclid(1_000) * 1_000);
        if point.metric == Metric::Failures {
            telling = Telling::WithFailures;
        }
        telling == Telling::Plain
    })?;
    let origin_ms = origin_ms.ok_or_else(|| {
        let reason = "it has no sample of a metric that k6 always writes (vus, iterations, http_req_duration)".into();
        ImportError::Empty { path: path.to_owned(), reason }
    })?;
    Ok((origin_ms, telling))
}

fn collect(
    path: &Path,
    kind: SourceKind,
    origin_ms: i64,
    telling: Telling,
    sink: &mut dyn FnMut(Interval),
) -> Result<(K6Facts, Ending), ImportError> {
    let mut collector = Collector::new(origin_ms, telling);
    let ending = points(path, kind, |point| {
        collector.add(&point, sink);
        true
    })?;
    Ok((collector.finish(sink), ending))
}

/// The seconds that may be measured: those that the script tagged `phase=measure`, else those with all virtual users if they
/// are at least half of all, else everything. The first and the last second are only partly of it, and are left out where
/// enough remains.
fn measured(facts: &K6Facts, series: &[Second]) -> (u32, u32) {
    const ENOUGH_SECONDS: u32 = 4;
    let last = series.last().map_or(0, |second| second.second);
    let mut full = series.iter().filter(|second| second.active_vus == facts.most_vus).map(|second| second.second);
    let plateau = full.next().map(|first| (first, full.next_back().unwrap_or(first)));
    let (from, to) = match (facts.phases.get("measure"), plateau) {
        (Some(phase), _) => *phase,
        (None, Some((first, to))) if facts.most_vus > 0 && (to - first) * 2 >= last => (first, to),
        _ => (0, last),
    };
    if to - from >= ENOUGH_SECONDS { (from + 1, to) } else { (from, to + 1) }
}

/// The load model as far as k6's samples give it away: only arrival-rate executors drop iterations. The think time is what
/// iterations lasted beyond their requests.
fn load(facts: &K6Facts, series: &[Second]) -> (Option<Load>, Vec<String>) {
    let mut warnings = Vec::new();
    if facts.late_points > 0 {
        warnings.push(format!("{} samples came so late that they are counted in a later second.", facts.late_points));
    }
    if facts.dropped_iterations > 0 {
        warnings.push(dropped(facts.dropped_iterations, facts.iterations));
    }
    if facts.misdated_points > 0 {
        warnings.push(format!("{} samples are dated a day and more off; they are not counted.", facts.misdated_points));
    }
    if facts.endpoints_merged {
        warnings.push(format!("There are too many request names to tell apart; the rest is `{OTHER_ENDPOINTS}`."));
    }
    let load = if facts.dropped_iterations > 0 {
        let seconds = f64::from(series.last().map_or(0, |second| second.second) + 1);
        let asked = as_float(facts.iterations + facts.dropped_iterations);
        Some(Load::Open { arrivals_per_second: asked / seconds })
    } else if facts.most_vus > 0 && facts.requests > 0 {
        warnings.push("k6's samples do not name the executor; its virtual users are taken as a closed model.".into());
        let thinking_ms = (facts.iteration_ms - facts.request_ms).max(0.0);
        let think_time_mean_seconds = thinking_ms / 1_000.0 / as_float(facts.requests);
        Some(Load::Closed { vus: facts.most_vus, think_time_mean_seconds })
    } else {
        None
    };
    (load, warnings)
}
