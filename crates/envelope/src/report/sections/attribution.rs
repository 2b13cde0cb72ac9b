//! Where the time went.

use super::anatomy;
use crate::report::attribution::{Breakdown, STAGES, UNATTRIBUTED, breakdown};
use crate::report::charts::{Chart, StageBar, StagePart, Stages};
use crate::report::document::{Block, Table};
use crate::report::facts::Facts;
use crate::report::format::{self, NOT_RECORDED};
use crate::report::group::Group;
use crate::run::LatencySummary;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for group in &facts.groups {
        let found: Vec<Breakdown> =
            group.endpoints().into_iter().filter_map(|endpoint| breakdown(&group.runs, endpoint)).collect();
        if found.is_empty() {
            let stages = format::list(&STAGES.iter().map(ToString::to_string).collect::<Vec<_>>());
            blocks.push(Block::Text(format!(
                "Of {}, {stages} and {UNATTRIBUTED} are {NOT_RECORDED}; the answers carried no Server-Timing, or the \
                 source does not keep it.",
                group.title
            )));
            continue;
        }
        blocks.push(Block::Chart(Chart::Stages(chart(group, &found))));
        blocks.push(Block::Table(table(group, &found)));
        blocks.extend(anatomy::table(group).map(Block::Table));
    }
    blocks
}

fn chart(group: &Group<'_>, found: &[Breakdown]) -> Stages {
    let bar = |found: &Breakdown| StageBar {
        endpoint: found.endpoint.clone(),
        mean_ms: found.mean_ms,
        parts: found.parts.iter().map(|part| StagePart { stage: part.stage.clone(), share: part.share }).collect(),
    };
    Stages {
        title: format!("Where the mean of each endpoint goes, {}", group.title),
        bars: found.iter().map(bar).collect(),
    }
}

fn table(group: &Group<'_>, found: &[Breakdown]) -> Table {
    let mut table = Table::new(
        format!(
            "Stages of {}: share of the mean, mean over all requests, and percentiles of those that passed the \
             stage, in milliseconds",
            group.title
        ),
        &["Endpoint", "Stage", "#Share", "#Mean", "#p50", "#p95", "#p99", "#Max"],
    );
    for found in found {
        for part in &found.parts {
            let mut row = vec![
                found.endpoint.clone(),
                part.stage.clone(),
                format::percent(part.share),
                format::plain_ms(part.mean_ms),
            ];
            let unknown = LatencySummary::default();
            let summary = part.summary.as_ref().unwrap_or(&unknown);
            row.extend(format::percentiles(summary, [50.0, 95.0, 99.0]));
            row.push(format::or_missing(summary.max.map(format::plain_ms)));
            table.push(row);
        }
        if !found.not_recorded.is_empty() {
            let stages: Vec<String> = found.not_recorded.iter().map(ToString::to_string).collect();
            table.push(vec![found.endpoint.clone(), stages.join(", "), NOT_RECORDED.to_owned()]);
        }
    }
    table
}
