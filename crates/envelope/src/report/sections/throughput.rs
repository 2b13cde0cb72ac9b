//! Requests a second: all runs, and those of the steady state.

use crate::report::charts::{Chart, RunBar, Runs, Timeline};
use crate::report::document::{Block, Table};
use crate::report::facts::Facts;
use crate::report::format;
use crate::report::group::Group;
use crate::report::reference::Reference;
use crate::run::Run;
use crate::statistics::Sample;

pub(super) fn blocks(facts: &Facts<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::Table(statistics(facts))];
    if facts.runs.len() > 1 {
        blocks.push(Block::Chart(Chart::Runs(side_by_side(facts))));
    }
    let mut timelines: Vec<Chart> = facts.runs_with_names().filter_map(|(run, name)| timeline(run, name)).collect();
    match timelines.len() {
        0 => {}
        1 => blocks.push(Block::Chart(timelines.remove(0))),
        _ => blocks.push(Block::Charts(timelines)),
    }
    blocks
}

fn timeline(run: &Run, name: &str) -> Option<Chart> {
    let chart = Timeline::of(run)?;
    let other_than_name = run.role.as_ref().filter(|role| role.as_str() != name);
    let role = other_than_name.map_or_else(String::new, |role| format!(" ({role})"));
    Some(Chart::Timeline(Timeline { title: format!("{name}{role}: throughput and latency over time"), ..chart }))
}

fn statistics(facts: &Facts<'_>) -> Table {
    let mut table = Table::new(
        "Requests that ended a second, over runs",
        &["Runs", "#Count", "#Mean", "#Min", "#Max", "#SD (population)", "#SD (sample)", "#CV", "#Spread"],
    );
    let some_failed = facts.runs.iter().any(|run| run.failed() > 0);
    if some_failed {
        table.add_numeric_column("Goodput, mean");
    }
    let mut row = |name: String, sample: Option<Sample>, goodput: Option<f64>| {
        let Some(sample) = sample else { return };
        // A single figure has no scatter, which is not the same as none.
        let of_several = |value: Option<String>| value.filter(|_| sample.count > 1).unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![
            name,
            sample.count.to_string(),
            format::rate(sample.mean),
            format::rate(sample.min),
            format::rate(sample.max),
            of_several(Some(format::rate(sample.population_deviation))),
            of_several(sample.sample_deviation.map(format::rate)),
            of_several(sample.coefficient_of_variation().map(format::percent)),
            of_several(sample.spread().map(format::percent)),
        ];
        if some_failed {
            cells.push(goodput.map_or_else(|| "-".to_owned(), format::rate));
        }
        table.push(cells);
    };
    let of_all = |of: fn(&Run) -> Option<f64>| Sample::of(&facts.runs.iter().filter_map(of).collect::<Vec<_>>());
    if facts.are_of_one_experiment() {
        let goodput = of_all(Run::goodput).map(|sample| sample.mean);
        row("all runs".to_owned(), of_all(|run| run.throughput), goodput);
    }
    // One group without a role is all runs.
    let named =
        facts.groups.iter().filter(|_| facts.groups.len() > 1 || facts.runs.iter().any(|run| run.role.is_some()));
    for group in named {
        row(group.name.clone(), group.throughput(), group.goodput().map(|sample| sample.mean));
    }
    if let Some(reference) = facts.reference {
        let name = reference.name;
        row(format!("{name}: all runs"), Sample::of(&reference.rates()), None);
        for tasks in reference.task_counts() {
            let role = crate::report::group::tasks_in_words(tasks);
            row(format!("{name}: {role}"), Sample::of(&reference.rates_with_tasks(tasks)), None);
        }
    }
    table
}

fn side_by_side(facts: &Facts<'_>) -> Runs {
    let group_of = |run: &Run| {
        let is_member = |group: &Group<'_>| group.runs.iter().any(|member| std::ptr::eq(*member, run));
        facts.groups.iter().enumerate().find(|(_, group)| is_member(group))
    };
    let bar = |(index, (run, name)): (usize, (&Run, &str))| {
        let (place, group) = group_of(run).map_or((0, ""), |(place, group)| (place, group.name.as_str()));
        RunBar {
            name: name.to_owned(),
            role: (group.to_owned(), place),
            void: !facts.is_usable(run),
            throughput: run.throughput,
            goodput: run.goodput(),
            requests: run.overall.count,
            reference: facts.reference.and_then(|reference| counterpart(reference, facts.runs, index)),
            p50_ms: run.overall.p50,
            p95_ms: run.overall.p95,
            p99_ms: run.overall.p99,
        }
    };
    Runs { title: "Runs side by side".to_owned(), bars: facts.runs_with_names().enumerate().map(bar).collect() }
}

/// The reference's run that stands beside the `index`-th: the one at the same place among those with as many tasks.
fn counterpart(reference: &Reference, runs: &[Run], index: usize) -> Option<f64> {
    let tasks = runs.get(index)?.tasks_per_service?;
    let place = runs[..index].iter().filter(|run| run.tasks_per_service == Some(tasks)).count();
    reference.rates_with_tasks(tasks).get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Options;
    use crate::report::reference::PHASE_4;
    use crate::report::testing::{figures, run, second};

    fn phase_4() -> Vec<Run> {
        let runs = [(1, 190.49), (1, 189.32), (2, 222.35), (2, 221.79), (2, 221.97)];
        let role = |tasks| if tasks == 1 { "exploratory" } else { "steady state" };
        runs.map(|(tasks, rate)| figures(&format!("r{rate}"), role(tasks), tasks, rate, 75.0)).to_vec()
    }

    #[test]
    fn all_runs_and_each_role_have_their_statistics_beside_the_references() {
        let (runs, options) = (phase_4(), Options { reference: Some(PHASE_4), ..Options::default() });
        let table = statistics(&Facts::new(&runs, &options));
        let expected = ["all runs", "5", "209.18", "189.32", "222.35", "15.75", "17.61", "7.5 %", "16 %"];
        assert_eq!(table.rows[0], expected);
        assert_eq!(table.rows[2][..3], ["steady state", "3", "222.04"]);
        assert_eq!(table.rows[2][8], "0.25 %");
        assert_eq!(table.rows[3][0], "Reference: all runs");
        assert_eq!(table.rows[3][1..], expected[1..]);
        assert_eq!(table.rows[5][..3], ["Reference: 2 tasks per service", "3", "222.04"]);
    }

    #[test]
    fn runs_of_different_experiments_have_no_statistics_together() {
        let mut runs = phase_4();
        runs[4].load = Some(crate::result::Load::Open { arrivals_per_second: 100.0 });
        let names: Vec<String> =
            statistics(&Facts::new(&runs, &Options::default())).rows.into_iter().map(|mut row| row.remove(0)).collect();
        let expected = [
            "exploratory",
            "steady state, 200 virtual users who think for 0.82 s",
            "steady state, 100 arrivals a second",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn where_requests_failed_the_goodput_stands_beside_the_rate() {
        let mut runs = phase_4();
        let failed = crate::report::testing::failure(Some(503), "busy", crate::result::Answerer::Task, 4_000);
        runs[0].failures = vec![failed];
        let options = Options::default();
        let facts = Facts::new(&runs, &options);
        let table = statistics(&facts);
        assert_eq!((table.columns[9].heading.as_str(), table.rows[1][9].as_str()), ("Goodput, mean", "180.38"));
        let beside = Chart::Runs(side_by_side(&facts)).table();
        let column = beside.columns.iter().position(|column| column.heading == "Goodput/s").unwrap();
        assert_eq!([&beside.rows[0][column], &beside.rows[2][column]], ["171.44", "222.35"]);
    }

    #[test]
    fn the_reference_stands_beside_the_run_in_the_same_place() {
        let runs = phase_4();
        let beside: Vec<Option<f64>> = (0..6).map(|index| counterpart(&PHASE_4, &runs, index)).collect();
        assert_eq!(beside, [Some(190.49), Some(189.32), Some(222.35), Some(221.79), Some(221.97), None]);
    }

    #[test]
    fn a_single_run_with_seconds_has_its_timeline_and_no_neighbours() {
        let with_series = Run { series: vec![second(0, 5, 1), second(1, 6, 1)], ..run("a", []) };
        let options = Options::default();
        let runs = [with_series];
        let blocks = blocks(&Facts::new(&runs, &options));
        assert!(matches!(&blocks[1..], [Block::Chart(Chart::Timeline(_))]), "{blocks:?}");
    }
}
