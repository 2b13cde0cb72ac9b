//! What was asked, of what, by what load.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::analysis::Aspect;
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
    // Where runs differ, each value stands with the runs that have it.
    let distinct = |of: &dyn Fn(&Run) -> Option<String>| -> Vec<String> { labelled(facts, of) };
    let of_capsule = |of: &dyn Fn(&Capsule) -> Option<String>| -> Vec<String> {
        labelled(facts, &|run: &Run| run.capsule.as_ref().and_then(of))
    };

    row("Question", of_capsule(&|capsule| text_of(&capsule.scenario_definition, "question")));
    row("Scenario", of_capsule(&|capsule| Some(scenario(capsule))));
    row("Load", distinct(&load));
    row("Target", of_capsule(&|capsule| Some(target_in_words(capsule))));
    row("Stack", of_capsule(&stack));
    let condition = |aspect: Aspect| distinct(&|run: &Run| aspect.of(run).map(|condition| condition.to_string()));
    row("Identity provider", condition(Aspect::IdentityProvider));
    row("Settings other than default", condition(Aspect::Settings));
    row("Users in the database", of_capsule(&|capsule| Some(dataset(capsule))));
    row("Driver", of_capsule(&|capsule| Some(format!("{} {}", capsule.driver.name, capsule.driver.version))));
    row("Machine", of_capsule(&|capsule| Some(machine(capsule))));
    row("Datum", of_capsule(&|capsule| Some(capsule.datum.clone())));
    row("Verified before the load", of_capsule(&verified));

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

/// Different values, each with the names of its runs where there are several.
fn labelled(facts: &Facts<'_>, of: &dyn Fn(&Run) -> Option<String>) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in facts.runs.iter().filter_map(of) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    if let [_] = values[..] {
        return values;
    }
    let with_names = |value: String| {
        let names = facts.names_of(|run| of(run).as_ref() == Some(&value)).unwrap_or_default();
        format!("{names}: {value}")
    };
    values.into_iter().map(with_names).collect()
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
    Some(format!("own stack on this machine, PostgreSQL {}", stack.postgres))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Options;
    use crate::report::testing::{capsule, run};

    #[test]
    fn values_that_differ_stand_with_the_runs_that_have_them() {
        let with = |label: &str, provider: &str| {
            let mut capsule = capsule(10);
            let settings = &mut capsule.target.stack.as_mut().expect("a stack").settings;
            settings.insert("AUTH_IDENTITY_PROVIDER".into(), provider.into());
            Run { capsule: Some(capsule), ..run(label, []) }
        };
        let (runs, options) = ([with("a", "local"), with("b", "cognito"), with("c", "local")], Options::default());
        let Block::Table(table) = blocks(&Facts::new(&runs, &options)).remove(1) else { panic!("no table") };
        let row = |name: &str| table.rows.iter().find(|row| row[0] == name).unwrap()[1].clone();
        assert_eq!(row("Identity provider"), "a and c: own accounts; b: Cognito double (answers at once, no quotas)");
        assert_eq!(row("Stack"), "own stack on this machine, PostgreSQL 15", "what all share needs no names");
    }
}
