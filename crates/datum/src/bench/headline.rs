//! What a run ends with on the terminal: the figures that one looks for first, and where the rest is.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use envelope::report::document::{Standing, Verdict};
use envelope::report::format::{ROUGHLY, TOO_FEW};
use envelope::result::{Completion, PhaseKind, StackUse};
use envelope::run::{LatencySummary, Run};
use envelope::statistics::{ErrorRate, Support, support};

use super::describe::percent;
use super::error::BenchError;
use super::progress::millis;
use super::report::{self, Built, Written};
use super::run::Finished;
use crate::terminal::say;

/// The report's rule about a run that was ended early.
const INTERRUPTED_RULE: &str = "run-interrupted";

/// Everything about one run.
pub(super) fn show(finished: &Finished, built: &Built) {
    // That it was ended early, or broke, may be one of the verdict's reasons; where worse is said, it is not.
    if built.document.verdict.reasons.iter().any(|reason| reason.rule == INTERRUPTED_RULE) {
        say("");
    } else {
        show_completion(finished);
    }
    for run in &built.runs {
        show_figures(run);
    }
    show_quotas(finished);
    show_verdict(&built.document.verdict);
    for warning in &finished.capsule.warnings {
        say(format_args!("warning       {warning}"));
    }
    say(format_args!("result        {}", finished.folder.display()));
}

/// The figures alone, of one run among several.
pub(super) fn show_briefly(finished: &Finished) -> Result<(), BenchError> {
    show_completion(finished);
    for reason in &finished.capsule.void {
        say(format_args!("VOID          {reason}"));
    }
    show_figures(&report::read(&finished.folder)?);
    show_quotas(finished);
    Ok(())
}

fn show_completion(finished: &Finished) {
    say("");
    let measured = finished.capsule.phases.iter().any(|phase| phase.kind == PhaseKind::Measure);
    match finished.capsule.completion {
        Completion::Interrupted if measured => say("INTERRUPTED   the figures are of what was measured until then"),
        // Where nothing was measured it is void, and why is said there.
        Completion::Whole | Completion::Interrupted => {}
        Completion::Failed => say("FAILED        the run did not come to its end"),
    }
}

fn show_figures(run: &Run) {
    if run.requests == 0 {
        return;
    }
    say(figures(run));
    say(errors(run));
}

/// How much of its CPU quota each task used, and what the quota did; nothing where none has one.
fn show_quotas(finished: &Finished) {
    if let Some(lines) = finished.capsule.stack_use.as_ref().and_then(quotas) {
        say(lines);
    }
}

fn quotas(used: &StackUse) -> Option<String> {
    let limited = used.processes.iter().filter_map(|(name, process)| Some((name, process, process.quota_cores?)));
    let rows: Vec<Vec<String>> = limited
        .map(|(name, process, quota)| {
            let cores = process.cpu_seconds / used.seconds;
            let throttled = process.throttled.map(|it| {
                #[expect(clippy::cast_precision_loss, reason = "ten periods a second")]
                let share = it.throttled_periods as f64 / it.periods.max(1) as f64;
                [percent(share), format!("{:.1} s", it.seconds)]
            });
            let [share, seconds] = throttled.unwrap_or_else(|| ["-", "-"].map(ToOwned::to_owned));
            vec![name.clone(), format!("{cores:.2}"), format!("{quota:.2}"), percent(cores / quota), share, seconds]
        })
        .collect();
    let header = ["TASK", "CPU", "QUOTA", "USED", "PERIODS THROTTLED", "HELD BACK"];
    (!rows.is_empty()).then(|| table(header, rows))
}

/// What several runs say together.
pub(super) fn show_together(built: &Built) {
    let rows = built.runs.iter().map(|run| {
        vec![
            run.label.clone(),
            run.role.clone().unwrap_or_default(),
            run.tasks_per_service.map_or_else(|| "-".to_owned(), |tasks| tasks.to_string()),
            run.throughput.map_or_else(|| "-".to_owned(), |throughput| format!("{throughput:.2}")),
            percentile(&run.overall, 50.0),
            percentile(&run.overall, 95.0),
            percentile(&run.overall, 99.0),
            failed(run).to_string(),
        ]
    });
    say(table(["RUN", "ROLE", "TASKS", "REQ/S", "P50", "P95", "P99", "ERRORS"], rows));
    show_verdict(&built.document.verdict);
}

fn show_verdict(verdict: &Verdict) {
    let standing = match verdict.standing {
        Standing::Void => "VOID",
        Standing::Qualified => "qualified",
        Standing::Sound => "sound",
    };
    // What voids comes first, and the headline after it.
    for reason in &verdict.reasons {
        say(format_args!("{:<13} {} [{}]", reason.severity.word(), reason.sentence, reason.rule));
    }
    say(format_args!("verdict       {standing}: {}", verdict.headline));
}

/// Where the report is.
pub(super) fn show_paths(written: &Written) {
    say(format_args!("report        {}\n              {}", written.markdown.display(), written.html.display()));
}

fn figures(run: &Run) -> String {
    let row = |name: &str, requests: u64, latency: &LatencySummary, failed: u64| {
        let rate = run.seconds.filter(|seconds| *seconds > 0.0).map(|seconds| per_second(requests, seconds));
        vec![
            name.to_owned(),
            requests.to_string(),
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}")),
            percentile(latency, 50.0),
            percentile(latency, 95.0),
            percentile(latency, 99.0),
            ms(latency.max),
            failed.to_string(),
        ]
    };
    let endpoints = run.endpoints.iter().map(|(name, endpoint)| {
        let failed = endpoint.failures.iter().map(|it| it.count).sum();
        row(name, endpoint.latency.count + failed, &endpoint.latency, failed)
    });
    let all = row("all", run.requests, &run.overall, failed(run));
    table(["ENDPOINT", "REQUESTS", "REQ/S", "P50", "P95", "P99", "MAX", "ERRORS"], endpoints.chain([all]))
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn per_second(requests: u64, seconds: f64) -> f64 {
    requests as f64 / seconds
}

fn failed(run: &Run) -> u64 {
    run.failures.iter().map(|failure| failure.count).sum()
}

/// Zero errors are a bound, not a zero.
fn errors(run: &Run) -> String {
    let rate = ErrorRate::of(failed(run), run.requests);
    format!(
        "errors        {} of {} ({}), at most {} with 95 % confidence",
        rate.errors,
        rate.requests,
        percent(rate.rate),
        percent(rate.upper_bound)
    )
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), millis)
}

/// A percentile, marked as in the report where few requests lie beyond it.
pub(super) fn percentile(latency: &LatencySummary, percent: f64) -> String {
    let value = latency.percentile(percent);
    match support(percent, latency.count) {
        Support::Good => ms(value),
        Support::Rough => value.map_or_else(|| ms(None), |value| format!("{ROUGHLY}{}", millis(value))),
        Support::None => TOO_FEW.to_owned(),
    }
}

/// A table: the first column to the left, figures to the right.
pub(super) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use envelope::result::{ProcessUse, Throttled};

    use super::*;

    #[test]
    fn a_quota_is_shown_with_what_it_did_and_processes_without_one_are_not() {
        let throttled = Some(Throttled { periods: 100, throttled_periods: 81, seconds: 3.25 });
        let limited = ProcessUse { cpu_seconds: 4.8, quota_cores: Some(0.5), throttled };
        let free = ProcessUse { cpu_seconds: 9.0, ..ProcessUse::default() };
        let used = |processes: &[(&str, ProcessUse)]| {
            let processes = processes.iter().map(|(name, process)| ((*name).to_owned(), *process)).collect();
            StackUse { seconds: 10.0, processes }
        };
        let shown = quotas(&used(&[("auth-1", limited), ("postgres", free)])).expect("a table");
        let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["auth-1", "0.48", "0.50", "96.0", "%", "81.0", "%", "3.2", "s"], "{shown}");
        assert_eq!(rows.len(), 2, "{shown}");
        assert_eq!(quotas(&used(&[("postgres", free)])), None);
    }

    #[test]
    fn percentiles_of_few_requests_are_marked_as_the_report_marks_them() {
        let of = |count| LatencySummary { count, p50: Some(1.0), p99: Some(250.0), ..LatencySummary::default() };
        let both = |count| [percentile(&of(count), 50.0), percentile(&of(count), 99.0)];
        assert_eq!(both(1_000), ["1.00 ms", "250 ms"]);
        assert_eq!(both(999), ["1.00 ms", "≈250 ms"]);
        assert_eq!(both(19), ["≈1.00 ms", "too few"]);
        assert_eq!(percentile(&LatencySummary::default(), 99.0), "-");
    }

    #[test]
    fn figures_stand_to_the_right_below_their_names() {
        let shown =
            table(["NAME", "P50"], [vec!["login".into(), "1.00 ms".into()], vec!["all".into(), "250 ms".into()]]);
        assert_eq!(shown, "NAME       P50\nlogin  1.00 ms\nall     250 ms");
    }
}
