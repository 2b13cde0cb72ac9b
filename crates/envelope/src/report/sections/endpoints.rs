//! Latency and errors by endpoint.

use crate::report::charts::{Chart, Distribution};
use crate::report::document::{Block, Table};
use crate::report::facts::Facts;
use crate::report::format::{self, NOT_RECORDED};
use crate::report::group::Group;
use crate::report::reference::Reference;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for group in &facts.groups {
        if group.endpoints().is_empty() {
            blocks.push(Block::Text(format!("The endpoints of {} are {NOT_RECORDED}.", group.title)));
            continue;
        }
        let reference = facts.reference.filter(|_| group.counts);
        blocks.push(Block::Table(table(group, reference)));
        let latencies: Vec<_> = group
            .endpoints()
            .into_iter()
            .map(|name| (name.to_owned(), group.of_endpoint(name, |endpoint| Some(&endpoint.latency)).histogram))
            .collect();
        let curves = latencies.iter().map(|(name, histogram)| (name.clone(), histogram.as_ref()));
        let title = format!("Latency by percentile and endpoint, {}", group.title);
        blocks.extend(Distribution::of(title, curves).map(Chart::Distribution).map(Block::Chart));
    }
    blocks
}

fn table(group: &Group<'_>, reference: Option<&Reference>) -> Table {
    let mut table = Table::new(
        format!("Endpoints of {}, latency in milliseconds", group.title),
        &[
            "Endpoint",
            "#Requests",
            "#Share",
            "#Mean",
            "#p50",
            "#p95",
            "#p99",
            "#p99.9",
            "#Max",
            "#Failed",
            "#Error rate below (95 %)",
        ],
    );
    if reference.is_some() {
        for heading in ["Reference mean", "Reference p50", "Reference p95", "Reference p99"] {
            table.add_numeric_column(heading);
        }
    }
    let endpoints = group.endpoints();
    let all: u64 = endpoints.iter().map(|name| group.errors_of(name).requests).sum();
    for name in endpoints {
        let latency = group.of_endpoint(name, |endpoint| Some(&endpoint.latency));
        let errors = group.errors_of(name);
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
        let share = if all == 0 { 0.0 } else { errors.requests as f64 / all as f64 };
        let mut row = vec![name.to_owned(), format::count(errors.requests), format::percent(share)];
        let plain = |value: Option<f64>| format::or_missing(value.map(format::plain_ms));
        row.push(plain(latency.mean));
        row.extend(format::percentiles(&latency, [50.0, 95.0, 99.0, 99.9]));
        row.push(plain(latency.max));
        row.extend([format::count(errors.errors), format::percent(errors.upper_bound)]);
        if let Some(reference) = reference {
            let published = reference.endpoint(name);
            let or_dash = |value: Option<&str>| value.unwrap_or("-").to_owned();
            row.extend([
                or_dash(published.map(|it| it.mean)),
                or_dash(published.and_then(|it| it.p50)),
                or_dash(published.and_then(|it| it.p95)),
                or_dash(published.and_then(|it| it.p99)),
            ]);
        }
        table.push(row);
    }
    table
}
