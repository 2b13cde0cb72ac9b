//! What was asked, of what, by what load.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::report::build::target_in_words;
use crate::report::document::{Block, Table};
use crate::report::facts::Facts;
use crate::report::format::{self, NOT_RECORDED};
use crate::result::{Capsule, Load};
use crate::run::Run;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let mut table = Table::new("What all runs share, and where they differ", &["Fact", "Value"]);
    let mut row = |name: &str, values: Vec<String>| {
        let value = if values.is_empty() { NOT_RECORDED.to_owned() } else { values.join("; ") };
        table.push(vec![name.to_owned(), value]);
    };
    let distinct =
        |of: &dyn Fn(&Capsule) -> Option<String>| -> Vec<String> { facts.distinct(of).into_iter().collect() };

    row("Question", distinct(&|capsule| text_of(&capsule.scenario_definition, "question")));
    row("Scenario", distinct(&|capsule| Some(scenario(capsule))));
    row("Load", loads(facts));
    row("Target", distinct(&|capsule| Some(target_in_words(capsule))));
    row("Stack", distinct(&stack));
    row("Users in the database", distinct(&|capsule| Some(dataset(capsule))));
    row("Driver", distinct(&|capsule| Some(format!("{} {}", capsule.driver.name, capsule.driver.version))));
    row("Machine", distinct(&|capsule| Some(machine(capsule))));
    row("Datum", distinct(&|capsule| Some(capsule.datum.clone())));
    row("Verified before the load", distinct(&verified));

    let mut blocks = vec![Block::Text(summary(facts)), Block::Table(table)];
    if let Some(reference) = facts.reference {
        blocks.push(Block::Text(reference.source.to_owned()));
    }
    blocks
}

/// How many runs, of which sources, over what time.
fn summary(facts: &Facts<'_>) -> String {
    let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for run in facts.runs {
        *by_kind.entry(super::provenance::kind_in_words(run.source.kind)).or_default() += 1;
    }
    let kinds: Vec<String> = by_kind.iter().map(|(kind, count)| format!("{count} from {kind}")).collect();
    let seconds: Option<f64> = facts.runs.iter().map(|run| run.seconds).sum();
    let requests: u64 = facts.runs.iter().map(|run| run.requests).sum();
    let time = seconds.map_or_else(String::new, |seconds| format!(" in {} of measuring", format::seconds(seconds)));
    format!(
        "This report is made from {} ({}): {} requests{time}. It follows from the result files alone.",
        format::plural(facts.runs.len(), "run", "runs"),
        format::list(&kinds),
        format::count(requests),
    )
}

fn scenario(capsule: &Capsule) -> String {
    let description = text_of(&capsule.scenario_definition, "description");
    description.map_or_else(|| capsule.scenario.clone(), |text| format!("{}: {text}", capsule.scenario))
}

fn text_of(definition: &Value, field: &str) -> Option<String> {
    definition.get(field)?.as_str().map(str::to_owned)
}

fn loads(facts: &Facts<'_>) -> Vec<String> {
    let mut loads: Vec<String> = Vec::new();
    for load in facts.runs.iter().filter_map(load) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads
}

/// The load model in words.
fn load(run: &Run) -> Option<String> {
    Some(match run.load.as_ref()? {
        Load::Closed { vus, think_time_mean_seconds } if *think_time_mean_seconds > 0.0 => format!(
            "closed: {vus} virtual users, each thinks for {} on average between answer and next request",
            format::seconds(*think_time_mean_seconds)
        ),
        Load::Closed { vus, .. } if run.capsule.is_some() => format!("closed: {vus} virtual users without think time"),
        Load::Closed { vus, .. } => format!("closed: {vus} virtual users, think time {NOT_RECORDED}"),
        Load::Open { arrivals_per_second } => {
            format!(
                "open: {} arrivals a second, whether or not earlier ones were answered",
                format::rate(*arrivals_per_second)
            )
        }
    })
}

fn stack(capsule: &Capsule) -> Option<String> {
    let stack = capsule.target.stack.as_ref()?;
    let settings: Vec<String> = stack.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let settings = if settings.is_empty() { String::new() } else { format!(", {}", settings.join(", ")) };
    Some(format!("own stack on this machine, PostgreSQL {}{settings}", stack.postgres))
}

fn dataset(capsule: &Capsule) -> String {
    let Some(dataset) = &capsule.dataset else {
        return "none populated before: the users registered themselves".to_owned();
    };
    format!(
        "{} (seed {}, {} distinct password hashes)",
        format::count(dataset.users),
        dataset.seed,
        dataset.distinct_hashes
    )
}

fn machine(capsule: &Capsule) -> String {
    let machine = &capsule.machine;
    let memory = format::bytes(machine.memory_bytes);
    format!("{}, {} CPUs, {memory}, {}", machine.cpu_model, machine.cpus, machine.kernel)
}

fn verified(capsule: &Capsule) -> Option<String> {
    if capsule.verified.is_empty() {
        return None;
    }
    let right = capsule.verified.values().filter(|outcome| *outcome == "ok").count();
    let names: Vec<String> = capsule.verified.keys().cloned().collect();
    Some(format!("{right} of {} checks passed: {}", capsule.verified.len(), names.join(", ")))
}
