//! Every run with its role and everything that it was run with.

use std::collections::BTreeMap;

use time::format_description::well_known::Rfc3339;

use crate::analysis::Aspect;
use crate::report::document::{Block, Table};
use crate::report::facts::{Facts, offered_rate};
use crate::report::format::{self, NOT_RECORDED};
use crate::report::group::tasks_in_words;
use crate::result::{Capsule, Completion, Load, PhaseKind, StackFacts};
use crate::run::{Run, SourceKind, Window, WindowRule};

/// With more runs than this a row is a run; with fewer, a column is, which reads better.
const MOST_COLUMNS: usize = 6;

/// What a run says of itself; `None` where its source does not.
type Attribute = fn(&Run) -> Option<String>;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let attributes: Vec<(&str, Attribute)> = vec![
        ("Role", |run| run.role.clone()),
        ("Source", |run| Some(kind_in_words(run.source.kind).to_owned())),
        ("Label", |run| run.capsule.as_ref().map(|capsule| capsule.label().unwrap_or("none given").to_owned())),
        ("Result", |run| Some(run.label.clone())),
        ("Scenario", |run| run.capsule.as_ref().map(|capsule| capsule.scenario.clone())),
        ("Started (UTC)", |run| started(run.capsule.as_ref()?)),
        ("Ended", |run| Some(completion(run.capsule.as_ref()?).to_owned())),
        ("Target", |run| in_words(Aspect::Target, run)),
        ("Identity provider", |run| in_words(Aspect::IdentityProvider, run)),
        ("Settings other than default", |run| in_words(Aspect::Settings, run)),
        ("Tasks", tasks),
        ("Pool, min/max per task", |run| by_service(&stack(run)?.pools, |pool| format!("{}/{}", pool.min, pool.max))),
        ("CPU quota per task", |run| quota(run.capsule.as_ref()?)),
        ("Virtual users", vus),
        ("Arrivals a second", arrivals),
        ("Think time, mean", think_time),
        ("Ramp", |run| phase(run, PhaseKind::Ramp)),
        ("Warm-up", |run| phase(run, PhaseKind::WarmUp)),
        ("Measured phase", |run| phase(run, PhaseKind::Measure)),
        ("Measured", |run| run.seconds.map(format::seconds)),
        ("Steady state", |run| run.window.as_ref().map(window)),
        ("Requests", |run| Some(format::count(run.requests))),
        ("Identities", |run| run.capsule.as_ref().map(|capsule| format::count(capsule.identities))),
        ("Seed", |run| run.capsule.as_ref().map(|capsule| capsule.seed.to_string())),
        ("Driver", |run| {
            run.capsule.as_ref().map(|capsule| format!("{} {}", capsule.driver.name, capsule.driver.version))
        }),
        ("Revision", |run| run.capsule.as_ref().map(|capsule| capsule.datum.clone())),
        ("Command", |run| run.capsule.as_ref().map(|capsule| capsule.command.join(" "))),
        ("Void as a whole", |run| Some(void(run))),
    ];
    let cell = |run: &Run, of: Attribute| of(run).unwrap_or_else(|| NOT_RECORDED.to_owned());
    let caption = "How each run was made";
    let table = if facts.runs.len() <= MOST_COLUMNS {
        let headings: Vec<&str> = std::iter::once("Fact").chain(facts.names.iter().map(String::as_str)).collect();
        let mut table = Table::new(caption, &headings);
        for (name, of) in attributes {
            let cells = facts.runs.iter().map(|run| cell(run, of));
            table.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
        table
    } else {
        let headings: Vec<&str> = std::iter::once("Run").chain(attributes.iter().map(|(name, _)| *name)).collect();
        let mut table = Table::new(caption, &headings);
        for (run, name) in facts.runs_with_names() {
            let cells = attributes.iter().map(|(_, of)| cell(run, *of));
            table.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
        table
    };
    vec![Block::Table(table)]
}

/// What kind of file a run was read from.
pub(super) const fn kind_in_words(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Native => "Datum's result folder",
        SourceKind::K6Json => "k6 JSON output",
        SourceKind::K6Csv => "k6 CSV output",
        SourceKind::K6SummaryExport => "k6 summary export",
        SourceKind::K6Summary => "k6 summary",
        SourceKind::K6Text => "k6 end-of-test text",
        SourceKind::Figures => "published figures",
    }
}

fn started(capsule: &Capsule) -> Option<String> {
    let whole_seconds = capsule.started_at.replace_nanosecond(0).ok()?;
    whole_seconds.format(&Rfc3339).ok().map(|text| text.replace('T', " ").replace('Z', ""))
}

const fn completion(capsule: &Capsule) -> &'static str {
    match capsule.completion {
        Completion::Whole => "as planned",
        Completion::Interrupted => "early, by the operator",
        Completion::Failed => "broken",
    }
}

/// A condition as groups are told apart by it.
fn in_words(aspect: Aspect, run: &Run) -> Option<String> {
    aspect.of(run).map(|condition| condition.to_string())
}

/// How long the phases of a kind were, as they were run.
fn phase(run: &Run, kind: PhaseKind) -> Option<String> {
    let phases = run.capsule.as_ref()?.phases.iter().filter(|phase| phase.kind == kind);
    let seconds: u32 = phases.map(|phase| phase.until_second.saturating_sub(phase.from_second)).sum();
    Some(if seconds == 0 { "none".to_owned() } else { format::seconds(f64::from(seconds)) })
}

fn stack(run: &Run) -> Option<&StackFacts> {
    run.capsule.as_ref()?.target.stack.as_ref()
}

fn tasks(run: &Run) -> Option<String> {
    let of_stack = stack(run).and_then(|stack| by_service(&stack.tasks, ToString::to_string));
    of_stack.or_else(|| run.tasks_per_service.map(tasks_in_words))
}

/// One value if all services have the same, else each with its service.
fn by_service<T>(values: &BTreeMap<String, T>, show: impl Fn(&T) -> String) -> Option<String> {
    let shown: Vec<(&String, String)> = values.iter().map(|(service, value)| (service, show(value))).collect();
    let (_, first) = shown.first()?;
    if shown.iter().all(|(_, value)| value == first) {
        return Some(format!("{first} each"));
    }
    Some(shown.iter().map(|(service, value)| format!("{service} {value}")).collect::<Vec<_>>().join(", "))
}

fn quota(capsule: &Capsule) -> Option<String> {
    let stack = capsule.target.stack.as_ref()?;
    let units = |units: &u32| format!("{units} units ({} vCPU)", format::decimals(f64::from(*units) / 1024.0, 2));
    Some(by_service(&stack.task_cpu_units, units).unwrap_or_else(|| "none: the whole machine".to_owned()))
}

fn vus(run: &Run) -> Option<String> {
    match run.load.as_ref()? {
        Load::Closed { vus, .. } => Some(vus.to_string()),
        Load::Open { .. } => Some("as many as needed".to_owned()),
    }
}

fn arrivals(run: &Run) -> Option<String> {
    match run.load.as_ref()? {
        Load::Closed { .. } => Some("none: closed".to_owned()),
        Load::Open { arrivals_per_second } => {
            let stated = format::rate(*arrivals_per_second);
            let offered = offered_rate(run).map(|rate| format!("{stated} stated, {} offered", format::rate(rate)));
            Some(offered.unwrap_or(stated))
        }
    }
}

/// A source other than Datum's says nothing about think time, and then stands 0.
fn think_time(run: &Run) -> Option<String> {
    match run.load.as_ref()? {
        Load::Open { .. } => Some("none: open".to_owned()),
        Load::Closed { think_time_mean_seconds, .. } if *think_time_mean_seconds > 0.0 => {
            Some(format::seconds(*think_time_mean_seconds))
        }
        Load::Closed { .. } => run.capsule.as_ref().map(|_| "none".to_owned()),
    }
}

fn window(window: &Window) -> String {
    let span = format!("seconds {} to {}", window.from_second, window.until_second);
    match &window.found {
        WindowRule::WholePhase => format!("{span}, from its beginning"),
        WindowRule::Truncated { seconds } => format!("{span}, after {seconds} s cut off"),
        WindowRule::NeverReached { .. } => format!("never reached; {span}"),
        WindowRule::Unknown => NOT_RECORDED.to_owned(),
    }
}

fn void(run: &Run) -> String {
    if run.void.is_empty() {
        "no".to_owned()
    } else {
        format!("yes, {}", format::plural(run.void.len(), "reason", "reasons"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Options;
    use crate::report::testing::{capsule, figures, run, second};

    fn table(runs: &[Run]) -> Table {
        match blocks(&Facts::new(runs, &Options::default())).remove(0) {
            Block::Table(table) => table,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn few_runs_are_columns_and_many_are_rows() {
        let few = table(&[run("a", []), run("b", [])]);
        assert_eq!((few.columns.len(), few.rows[0][0].as_str()), (3, "Role"));
        let many: Vec<Run> = (0..7).map(|index| run(&format!("r{index}"), [])).collect();
        let many = table(&many);
        assert_eq!((many.rows.len(), many.columns[1].heading.as_str()), (7, "Role"));
    }

    #[test]
    fn what_is_known_is_shown_and_the_rest_is_said_not_to_be() {
        let native = Run { capsule: Some(capsule(10)), ..run("a", []) };
        let table = table(&[native, figures("b", "steady state", 2, 222.0, 75.0)]);
        let row = |name: &str| table.rows.iter().find(|row| row[0] == name).unwrap()[1..].to_vec();
        assert_eq!(row("Tasks"), ["auth 2, document 1", "2 tasks per service"]);
        assert_eq!(row("Pool, min/max per task"), ["5/14 each", NOT_RECORDED]);
        assert_eq!(row("CPU quota per task"), ["256 units (0.25 vCPU) each", NOT_RECORDED]);
        assert_eq!(row("Started (UTC)"), ["2026-11-30 21:00:00", NOT_RECORDED]);
        assert_eq!(row("Identities"), ["10", NOT_RECORDED]);
        assert_eq!(row("Think time, mean"), ["none", "0.820 s"]);
        assert_eq!(row("Identity provider"), ["own accounts", NOT_RECORDED]);
        assert_eq!(row("Settings other than default"), ["AUTH_THROTTLE=off", NOT_RECORDED]);
        assert_eq!(
            [row("Ramp"), row("Warm-up"), row("Measured phase")].map(|row| row[0].clone()),
            ["none", "none", "60.0 s"]
        );
    }

    #[test]
    fn the_label_is_the_runs_and_the_result_is_the_folders_name() {
        let mut named = capsule(10);
        named.id = "20261130T210000Z-baseline-mix-2-tuned".into();
        let runs = [named, capsule(10)].map(|capsule| Run {
            label: capsule.id.clone(),
            capsule: Some(capsule),
            ..run("a", [])
        });
        let table = table(&runs);
        let row = |name: &str| table.rows.iter().find(|row| row[0] == name).unwrap()[1..].to_vec();
        assert_eq!(row("Label"), ["2-tuned", "none given"]);
        assert_eq!(row("Result"), ["20261130T210000Z-baseline-mix-2-tuned", "20261130T210000Z-baseline-mix"]);
    }

    #[test]
    fn what_was_offered_in_the_window_stands_beside_what_was_stated() {
        let at = |at: u32, offered: u64| crate::run::Second {
            work: crate::result::Work { offered, ..crate::result::Work::default() },
            ..second(at, 0, 1)
        };
        let window = Window { from_second: 1, until_second: 3, found: WindowRule::WholePhase };
        let series = vec![at(0, 100), at(1, 190), at(2, 210), at(3, 100)];
        let load = Some(Load::Open { arrivals_per_second: 100.0 });
        let phase = Run { window: Some(window), series, load, ..run("2x", []) };
        let table = table(&[phase]);
        let row = table.rows.iter().find(|row| row[0] == "Arrivals a second").unwrap();
        assert_eq!(row[1], "100.00 stated, 200.00 offered");
    }
}
