//! `datum compare`: whether two groups of results can be told apart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use envelope::analysis::{
    Compared, Comparison, ErrorVerdict, MetricComparison, NoiseFloor, Quantity, Undecidable, Verdict, compare,
    noise_floor,
};
use envelope::report::format;
use envelope::run::Run;
use envelope::statistics::{ErrorRate, Interval, Support};

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
    let comparison = compare(&a, &b, noise.as_ref());
    if comparison.metrics.is_empty() {
        return failed("the two groups have no figure in common that every run of them knows");
    }
    for line in conditions(&comparison.compared) {
        say(line);
    }
    if is_on_both_sides(&a, &b) {
        say("CAVEAT        a result stands on both sides");
    }
    say("");
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

/// Behind a verdict that is of no single condition.
const CONFOUNDED: char = '*';

/// What is compared, and whatever makes it less than that, before the figures.
fn conditions(compared: &Compared) -> Vec<String> {
    let mut lines = vec![match &compared.subject {
        Some(subject) => format!("compared      {subject}"),
        None if compared.is_confounded() => {
            format!("compared      no one thing: A and B differ in {} conditions at once", compared.beside.len())
        }
        None => "compared      runs of equal conditions, as far as is recorded".to_owned(),
    }];
    let also = if compared.subject.is_some() { "also differs" } else { "differs" };
    lines.extend(compared.beside.iter().map(|difference| format!("CAVEAT        {also}: {difference}")));
    if compared.is_confounded() {
        lines.push(format!(
            "CAVEAT        verdicts marked {CONFOUNDED} cannot be put down to any one condition: repeat with one difference"
        ));
    }
    for (side, within) in [("A", &compared.within_a), ("B", &compared.within_b)] {
        if !within.is_empty() {
            let within: Vec<String> = within.iter().map(ToString::to_string).collect();
            lines.push(format!(
                "CAVEAT        {side} holds runs of different conditions ({}): its figures are of no one system, and there is no \
                 verdict",
                within.join("; ")
            ));
        }
    }
    if !compared.unknown.is_empty() {
        let unknown: Vec<String> = compared.unknown.iter().map(ToString::to_string).collect();
        lines.push(format!("CAVEAT        recorded on one side only, so that it may differ: {}", unknown.join(", ")));
    }
    lines
}

fn is_on_both_sides(a: &[Run], b: &[Run]) -> bool {
    let ids = |runs: &[Run]| {
        runs.iter().filter_map(|run| run.source.path.as_ref()?.canonicalize().ok()).collect::<BTreeSet<_>>()
    };
    ids(a).intersection(&ids(b)).next().is_some()
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
        table.add_row(row(metric, comparison.compared.is_confounded()));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if (1..=6).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn row(metric: &MetricComparison, confounded: bool) -> [String; 8] {
    let figure = |value: f64, support: Support| match (metric.metric.quantity, support) {
        (_, Support::None) => format::TOO_FEW.to_owned(),
        (Quantity::Throughput, _) => format!("{}/s", format::rate(value)),
        (_, Support::Rough) => format!("{}{}", format::ROUGHLY, format::ms(value)),
        (_, Support::Good) => format::ms(value),
    };
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), format::percent);
    let interval =
        |Interval { low, high, .. }: Interval| format!("{} to {}", format::change(low), format::change(high));
    let (of_a, of_b) = metric.support;
    // From a figure that there is none of, nothing differs by anything.
    let is_known = of_a != Support::None && of_b != Support::None;
    let marked = |verdict: &str| if confounded { format!("{verdict} {CONFOUNDED}") } else { verdict.to_owned() };
    [
        metric.metric.to_string(),
        figure(metric.a, of_a),
        figure(metric.b, of_b),
        if is_known { format::change(metric.difference) } else { "-".to_owned() },
        metric.interval.filter(|_| is_known).map_or_else(|| "-".to_owned(), interval),
        share(metric.noise),
        share(metric.minimum_detectable),
        match metric.verdict {
            Verdict::Faster => marked("faster"),
            Verdict::Slower => marked("slower"),
            Verdict::NotDistinguishable => "not distinguishable".to_owned(),
            Verdict::NotDecidable(why) => format!("not decidable ({})", why_not(why)),
        },
    ]
}

const fn why_not(why: Undecidable) -> &'static str {
    match why {
        Undecidable::SingleRun => "1 run",
        Undecidable::FewRequests => "too few requests",
        Undecidable::MixedRuns => "mixed runs",
        Undecidable::SetByTheLoad => "set by the load",
    }
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
        ErrorVerdict::NotDecidable => "not decidable (mixed runs)",
    };
    let is_said = matches!(comparison.errors.verdict, ErrorVerdict::Fewer | ErrorVerdict::More);
    let mark = if comparison.compared.is_confounded() && is_said { format!(" {CONFOUNDED}") } else { String::new() };
    format!("errors  A {}, B {}: {verdict}{mark}", of(&comparison.errors.a), of(&comparison.errors.b))
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
    use envelope::analysis::{Aspect, Difference, ErrorComparison, Metric};

    use super::*;

    fn comparison() -> Comparison {
        let errors = ErrorRate::of(0, 1_000);
        Comparison {
            a_runs: 3,
            b_runs: 3,
            compared: Compared::default(),
            metrics: vec![MetricComparison {
                metric: Metric { endpoint: None, quantity: Quantity::Throughput },
                a: 190.0,
                b: 222.0,
                support: (Support::Good, Support::Good),
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

    fn verdict(comparison: &Comparison) -> String {
        let text = table(comparison);
        let line = text.lines().nth(1).expect("a row");
        line.rsplit("  ").next().expect("a cell").to_owned()
    }

    #[test]
    fn what_is_compared_stands_before_the_figures_and_what_differs_beside_it_is_a_caveat() {
        let of = |aspect, a: &str, b: &str| Difference { aspect, values: vec![a.into(), b.into()] };
        assert_eq!(conditions(&Compared::default()), ["compared      runs of equal conditions, as far as is recorded"]);
        let provider = of(Aspect::IdentityProvider, "own accounts", "Cognito double");
        let one = Compared { subject: Some(provider), ..Compared::default() };
        assert_eq!(conditions(&one), ["compared      identity provider: own accounts against Cognito double"]);
        let two = Compared { beside: vec![of(Aspect::Duration, "measured 60 s", "measured 30 s")], ..one };
        let lines = conditions(&two);
        assert_eq!(lines[1], "CAVEAT        also differs: measured time: measured 60 s against measured 30 s");
        assert!(lines[2].contains("marked *"), "{lines:?}");
        assert_eq!(verdict(&Comparison { compared: two, ..comparison() }), "faster *");
        let mixed = Compared { within_b: vec![of(Aspect::Tasks, "1", "2")], ..Compared::default() };
        assert!(conditions(&mixed)[1].starts_with("CAVEAT        B holds runs of different conditions (tasks: 1"));
    }

    #[test]
    fn what_cannot_be_decided_has_no_verdict_and_its_reason() {
        let with = |quantity, support, why| {
            let mut comparison = comparison();
            let metric = &mut comparison.metrics[0];
            (metric.metric.quantity, metric.support) = (quantity, support);
            metric.verdict = Verdict::NotDecidable(why);
            table(&comparison).lines().nth(1).expect("a row").to_owned()
        };
        let single = with(Quantity::Throughput, (Support::Good, Support::Good), Undecidable::SingleRun);
        assert!(single.ends_with("not decidable (1 run)"), "{single}");
        let few = with(Quantity::P99, (Support::Rough, Support::None), Undecidable::FewRequests);
        assert!(few.contains("≈190 ms") && few.contains("too few  "), "{few}");
        assert!(!few.contains("+17 %") && few.ends_with("not decidable (too few requests)"), "{few}");
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
