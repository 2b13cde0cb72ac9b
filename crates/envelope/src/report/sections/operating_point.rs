//! The trials of searches for capacity, and the operating points that were tried.

use crate::analysis::{Capacity, Purpose, Trial, TrialOutcome};
use crate::report::document::{Block, Table};
use crate::report::facts::Facts;
use crate::report::format;
use crate::report::group::tasks_in_words;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    facts.capacities.iter().flat_map(|(tasks, capacity)| tables(*tasks, capacity)).map(Block::Table).collect()
}

fn tables(tasks: u32, capacity: &Capacity) -> Vec<Table> {
    let with = tasks_in_words(tasks);
    let mut points =
        Table::new(format!("Operating points with {with}"), &["#Share of capacity", "#Arrivals a second", "Outcome"]);
    for point in &capacity.operating_points {
        points.push(vec![format!("{} %", point.percent), format::rate(point.rate), outcome(&point.outcome)]);
    }
    let mut trials =
        Table::new(format!("Trials of the search with {with}"), &["#Trial", "#Arrivals a second", "Why", "Outcome"]);
    for (number, Trial { rate, purpose, outcome: what }) in (1..).zip(&capacity.trials) {
        trials.push(vec![i32::to_string(&number), format::rate(*rate), why(*purpose), outcome(what)]);
    }
    [points, trials].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn outcome(outcome: &TrialOutcome) -> String {
    match outcome {
        TrialOutcome::Passed => "the objectives held".to_owned(),
        TrialOutcome::Failed(reason) => format!("missed: {reason}"),
        TrialOutcome::Void(reason) => format!("void: {reason}"),
    }
}

fn why(purpose: Purpose) -> String {
    match purpose {
        Purpose::Bracket => "bracket".to_owned(),
        Purpose::Bisect => "bisect".to_owned(),
        Purpose::Confirm(number) => format!("confirmation {number}"),
        Purpose::OperatingPoint(percent) => format!("{percent} % of the capacity"),
    }
}
