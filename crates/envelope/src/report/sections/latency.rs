//! Latency over all endpoints.

use crate::report::charts::{Chart, Distribution};
use crate::report::document::{Block, Table};
use crate::report::facts::Facts;
use crate::report::format::{self, NOT_RECORDED};
use crate::report::group::tasks_in_words;
use crate::run::LatencySummary;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let mut table = Table::new(
        "Latency of expected answers in milliseconds, all endpoints; percentiles of several runs from merged histograms",
        &["Runs", "#Requests", "#Min", "#Mean", "#p50", "#p90", "#p95", "#p99", "#p99.9", "#Max"],
    );
    for group in facts.groups.iter().filter(|group| group.runs.len() > 1 || facts.runs.len() == 1) {
        table.push(row(&group.title, &group.overall()));
    }
    if facts.runs.len() > 1 {
        for (run, name) in facts.runs_with_names() {
            table.push(row(name, &run.overall));
        }
    }
    for latency in facts.reference.iter().flat_map(|reference| reference.latency) {
        let name = format!("Reference: {}, {}", latency.name, tasks_in_words(latency.tasks_per_service));
        let known = LatencySummary {
            mean: Some(latency.mean),
            p50: Some(latency.p50),
            p95: Some(latency.p95),
            p99: Some(latency.p99),
            ..LatencySummary::default()
        };
        let published = row(&name, &known).into_iter();
        table.push(published.map(|cell| if cell == NOT_RECORDED { "-".to_owned() } else { cell }).collect());
    }
    let mut blocks = vec![Block::Table(table)];
    let curves = facts.runs_with_names().map(|(run, name)| (name.to_owned(), run.overall.histogram.as_ref()));
    blocks.extend(
        Distribution::of("Latency by percentile, all endpoints", curves).map(Chart::Distribution).map(Block::Chart),
    );
    blocks
}

fn row(name: &str, latency: &LatencySummary) -> Vec<String> {
    let requests = if latency.count == 0 { NOT_RECORDED.to_owned() } else { format::count(latency.count) };
    let plain = |value: Option<f64>| format::or_missing(value.map(format::plain_ms));
    let mut row = vec![name.to_owned(), requests, plain(latency.min), plain(latency.mean)];
    row.extend(format::percentiles(latency, [50.0, 90.0, 95.0, 99.0, 99.9]));
    row.push(plain(latency.max));
    row
}
