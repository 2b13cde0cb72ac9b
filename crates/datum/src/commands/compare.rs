//! `datum compare`: whether two groups of results can be told apart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use envelope::analysis::{
    Comparison, ErrorVerdict, MetricComparison, NoiseFloor, Quantity, Verdict, compare, noise_floor,
};
use envelope::report::format;
use envelope::result::Load;
use envelope::run::Run;
use envelope::statistics::{ErrorRate, Interval};

use super::{failed, results};
use crate::cli::CompareArgs;
use crate::terminal::{complain, say};

const COLUMNS: [&str; 8] = ["METRIC", "A", "B", "DIFFERENCE", "95 % INTERVAL", "NOISE", "DETECTABLE", "VERDICT"];

pub(super) fn run(args: &CompareArgs) -> ExitCode {
    let read =
        || -> Result<_, String> { Ok((results::read(&args.a.0)?, results::read(&args.b.0)?, noise(&args.noise)?)) };
    let (a, b, noise) = match read() {
        Ok(all) => all,
        Err(error) => return failed(error),
    };
    for difference in differences(&a, &b) {
        say(format_args!("warning: {difference}"));
    }
    let comparison = compare(&a, &b, noise.as_ref());
    if comparison.metrics.is_empty() {
        return failed("the two groups have no figure in common that every run of them knows");
    }
    say(table(&comparison));
    say("");
    say(errors(&comparison));
    for line in explanation(&comparison, noise.as_ref()) {
        say(line);
    }
    for label in &comparison.void {
        complain(format_args!("{label} is void: nothing follows from comparing it"), None);
    }
    ExitCode::SUCCESS
}

/// What makes the two groups different experiments: then a difference in the figures is none between systems.
fn differences(a: &[Run], b: &[Run]) -> Vec<String> {
    type Fact = (&'static str, fn(&Run) -> Option<String>);
    let facts: [Fact; 3] = [
        ("scenario", |run| run.capsule.as_ref().map(|capsule| capsule.scenario.clone())),
        ("load", |run| run.load.as_ref().map(load)),
        ("driver", |run| run.capsule.as_ref().map(|capsule| capsule.driver.name.clone())),
    ];
    let mut found = Vec::new();
    for (name, of) in facts {
        let values = |runs: &[Run]| runs.iter().filter_map(of).collect::<BTreeSet<_>>();
        let (in_a, in_b) = (values(a), values(b));
        if !in_a.is_empty() && !in_b.is_empty() && in_a != in_b {
            let listed = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
            found.push(format!("A and B differ in their {name}: {} against {}", listed(in_a), listed(in_b)));
        }
    }
    let ids = |runs: &[Run]| {
        runs.iter().filter_map(|run| run.source.path.as_ref()?.canonicalize().ok()).collect::<BTreeSet<_>>()
    };
    if ids(a).intersection(&ids(b)).next().is_some() {
        found.push("a result stands on both sides".to_owned());
    }
    found
}

fn load(load: &Load) -> String {
    match load {
        Load::Closed { vus, think_time_mean_seconds } => {
            format!("{vus} virtual users who think for {think_time_mean_seconds} s")
        }
        Load::Open { arrivals_per_second } => format!("{arrivals_per_second} arrivals a second"),
    }
}

/// The noise floor of identical runs, or of a file that holds one.
fn noise(paths: &[PathBuf]) -> Result<Option<NoiseFloor>, String> {
    match paths {
        [] => Ok(None),
        [file] if is_json(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            match serde_json::from_str::<NoiseFloor>(&text) {
                Ok(floor) if floor.format == 1 => Ok(Some(floor)),
                Ok(floor) => Err(format!("{} has format {}; this Datum reads format 1", file.display(), floor.format)),
                Err(error) => Err(format!("{} is no noise floor: {error}", file.display())),
            }
        }
        runs => {
            let runs = results::read(runs)?;
            noise_floor(&runs).map(Some).ok_or_else(|| "a noise floor takes two or more identical runs".to_owned())
        }
    }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

fn table(comparison: &Comparison) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(COLUMNS);
    for metric in &comparison.metrics {
        table.add_row(row(metric));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if (1..=6).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn row(metric: &MetricComparison) -> [String; 8] {
    let figure = |value: f64| match metric.metric.quantity {
        Quantity::Throughput => format!("{}/s", format::rate(value)),
        _ => format::ms(value),
    };
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), format::percent);
    let interval =
        |Interval { low, high, .. }: Interval| format!("{} to {}", format::change(low), format::change(high));
    [
        metric.metric.to_string(),
        figure(metric.a),
        figure(metric.b),
        format::change(metric.difference),
        metric.interval.map_or_else(|| "-".to_owned(), interval),
        share(metric.noise),
        share(metric.minimum_detectable),
        match metric.verdict {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NotDistinguishable => "not distinguishable",
        }
        .to_owned(),
    ]
}

fn errors(comparison: &Comparison) -> String {
    let of = |rate: &ErrorRate| {
        format!(
            "{} of {} (below {})",
            format::count(rate.errors),
            format::count(rate.requests),
            format::percent(rate.upper_bound)
        )
    };
    let verdict = match comparison.errors.verdict {
        ErrorVerdict::Fewer => "fewer in B",
        ErrorVerdict::More => "more in B",
        ErrorVerdict::NotDistinguishable => "not distinguishable",
    };
    format!("errors  A {}, B {}: {verdict}", of(&comparison.errors.a), of(&comparison.errors.b))
}

/// What the columns mean, and what is missing to know more.
fn explanation(comparison: &Comparison, noise: Option<&NoiseFloor>) -> Vec<String> {
    let (a, b) = (comparison.a_runs, comparison.b_runs);
    let mut lines = vec![format!(
        "{} against {}. The interval is of the relative difference, by resampling runs. A difference counts only if the interval \
         excludes zero and the difference exceeds the noise; DETECTABLE is what so many runs find four times in five.",
        format::plural(a, "run", "runs"),
        format::plural(b, "run", "runs"),
    )];
    match noise {
        Some(floor) => lines.push(format!("The noise is that of {} identical runs.", floor.runs)),
        None if a < 2 || b < 2 => lines.push(
            "A single run cannot tell a difference from chance: repeat both, or give identical runs with --noise (`datum bench \
             aa`)."
                .to_owned(),
        ),
        None => lines.push("The noise is that of the runs themselves.".to_owned()),
    }
    lines
}

#[cfg(test)]
mod tests {
    use envelope::analysis::{ErrorComparison, Metric};

    use super::*;

    fn comparison() -> Comparison {
        let errors = ErrorRate::of(0, 1_000);
        Comparison {
            a_runs: 3,
            b_runs: 3,
            metrics: vec![MetricComparison {
                metric: Metric { endpoint: None, quantity: Quantity::Throughput },
                a: 190.0,
                b: 222.0,
                difference: 0.168,
                interval: Some(Interval { low: 0.16, high: 0.17, confidence: 0.95 }),
                noise: None,
                minimum_detectable: Some(0.012),
                verdict: Verdict::Faster,
            }],
            errors: ErrorComparison { a: errors, b: errors, verdict: ErrorVerdict::NotDistinguishable },
            void: vec![],
        }
    }

    #[test]
    fn a_row_a_metric_with_everything_about_its_difference() {
        let text = table(&comparison());
        let line = text.lines().nth(1).expect("a row");
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let expected = ["throughput", "190.00/s", "222.00/s", "+17 %", "+16 % to +17 %", "-", "1.2 %", "faster"];
        assert_eq!(cells, expected);
        assert_eq!(
            errors(&comparison()),
            "errors  A 0 of 1,000 (below 0.30 %), B 0 of 1,000 (below 0.30 %): not distinguishable"
        );
    }

    #[test]
    fn single_runs_are_told_what_they_need() {
        let single = Comparison { a_runs: 1, ..comparison() };
        assert!(explanation(&single, None)[1].contains("--noise"));
        assert!(explanation(&comparison(), None)[1].contains("the runs themselves"));
    }

    #[test]
    fn what_is_no_noise_floor_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("noise-floor.json");
        std::fs::write(&file, "{\"format\":2,\"runs\":3,\"metrics\":[]}").expect("written");
        assert!(noise(std::slice::from_ref(&file)).expect_err("refused").contains("has format 2"));
        std::fs::write(&file, "[]").expect("written");
        assert!(noise(std::slice::from_ref(&file)).expect_err("refused").contains("is no noise floor"));
        std::fs::write(&file, "{\"format\":1,\"runs\":3,\"metrics\":[]}").expect("written");
        assert_eq!(noise(&[file]).expect("read").map(|floor| floor.runs), Some(3));
        assert_eq!(noise(&[]), Ok(None));
    }
}
