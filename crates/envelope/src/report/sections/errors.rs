//! Errors by cause and owner, with the exact bound.

use crate::analysis::{CauseRow, error_table};
use crate::report::document::{Block, Table};
use crate::report::facts::Facts;
use crate::report::format;
use crate::result::Answerer;
use crate::statistics::ErrorRate;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let table = error_table(facts.runs);
    let mut blocks = vec![Block::Table(rates(facts, table.total))];
    if !table.causes.is_empty() {
        let mut causes = Table::new(
            "By cause, all runs",
            &["Endpoint", "Status", "Code", "Answered by", "Owner", "#Count", "#Share of requests"],
        );
        table.causes.iter().for_each(|cause| causes.push(cause_row(cause)));
        blocks.push(Block::Table(causes));
    }
    if let Some(reference) = facts.reference {
        let causes = reference.failures.iter().map(|(status, why)| format!("{status} ({why})"));
        blocks
            .push(Block::Text(format!("The reference's failures were {}.", format::list(&causes.collect::<Vec<_>>()))));
    }
    blocks
}

fn rates(facts: &Facts<'_>, total: ErrorRate) -> Table {
    let mut table = Table::new(
        "Failed requests, with the exact upper bound at 95 % confidence",
        &["Runs", "#Failed", "#Requests", "#Error rate", "#Below (95 %)"],
    );
    let mut row = |name: String, rate: ErrorRate| {
        table.push(vec![
            name,
            format::count(rate.errors),
            format::count(rate.requests),
            format::percent(rate.rate),
            format::percent(rate.upper_bound),
        ]);
    };
    if facts.runs.len() > 1 {
        row("all runs".to_owned(), total);
        for group in facts.groups.iter().filter(|_| facts.groups.len() > 1) {
            row(group.name.clone(), group.errors());
        }
    }
    for (run, name) in facts.runs_with_names() {
        row(name.to_owned(), ErrorRate::of(run.failed(), run.requests));
    }
    if let Some(reference) = facts.reference {
        let (errors, requests) = reference.errors;
        row(format!("{}: all runs", reference.name), ErrorRate::of(errors, requests));
    }
    table
}

fn cause_row(cause: &CauseRow) -> Vec<String> {
    let answerer = match cause.failure.answerer {
        Answerer::Task => "a task",
        Answerer::Balancer => "the balancer",
        Answerer::Nobody => "nobody",
        Answerer::Unknown => format::NOT_RECORDED,
    };
    vec![
        cause.endpoint.clone().unwrap_or_else(|| format::NOT_RECORDED.to_owned()),
        cause.failure.status.map_or_else(|| "none".to_owned(), |status| status.to_string()),
        cause.failure.code.clone(),
        answerer.to_owned(),
        cause.owner.to_string(),
        format::count(cause.rate.errors),
        format::percent(cause.rate.rate),
    ]
}
