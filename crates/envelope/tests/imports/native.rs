use std::fs;
use std::path::Path;

use envelope::import::{read, read_phases};
use envelope::result::{
    Anatomy, Answerer, Capsule, Completion, EndpointInterval, Failure, FailureCount, Interval, IntervalWriter,
    Latencies, Load, Phase, PhaseKind, SET_UP, Work, write_capsule,
};
use envelope::run::{SourceKind, WindowRule};
use time::{Duration, OffsetDateTime};

pub(crate) fn capsule(phases: Vec<Phase>) -> Capsule {
    let tasks = serde_json::json!({ "auth": 2, "actor": 2, "document": 2 });
    let stack =
        serde_json::json!({ "tasks": tasks, "pools": {}, "task_cpu_units": {}, "settings": {}, "postgres": "15" });
    let capsule = serde_json::json!({
        "format": 1,
        "id": "20261130T210000-baseline-mix",
        "role": "steady state",
        "started_at": "2026-11-30T21:00:00Z",
        "ended_at": "2026-11-30T21:04:00Z",
        "completion": "whole",
        "void": [],
        "warnings": [],
        "datum": "0.1.0",
        "driver": { "name": "native", "version": "0.1.0" },
        "scenario": "baseline-mix",
        "scenario_definition": {},
        "load": { "model": "closed", "vus": 200, "think_time_mean_seconds": 0.82 },
        "seed": 1,
        "identities": 200,
        "dataset": null,
        "target": { "url": "http://127.0.0.1:8080", "stack": stack },
        "phases": [],
        "verified": {},
        "generator": { "cpu_seconds": 1.0, "peak_memory_bytes": null, "threads": 1 },
        "machine": { "kernel": "Linux", "cpu_model": "x", "cpus": 2, "memory_bytes": 1 },
        "command": ["datum", "bench", "baseline-mix"],
    });
    Capsule { phases, ..serde_json::from_value(capsule).expect("a capsule") }
}

pub(crate) fn phase(kind: PhaseKind, from_second: u32, until_second: u32) -> Phase {
    Phase { kind, name: None, from_second, until_second }
}

/// A second with `requests` answers of `ms` each, a tenth of it in the database, and one failure.
pub(crate) fn interval(second: u32, requests: u64, ms: u64) -> Interval {
    let record = |count: u64, micros: u64| {
        let mut latencies = Latencies::new();
        (0..count).for_each(|_| latencies.record_micros(micros));
        latencies
    };
    let failure = Failure { status: Some(502), code: "bad_gateway".into(), answerer: Answerer::Balancer };
    let endpoint = EndpointInterval {
        latency: record(requests, ms * 1_000),
        failed_latency: record(1, 500),
        failures: vec![FailureCount { failure, count: 1 }],
        stages: [("db".to_owned(), record(requests, ms * 100)), ("total".to_owned(), record(requests, ms * 900))]
            .into(),
        unattributed: record(requests, ms * 100),
        anatomy: Anatomy::default(),
    };
    Interval {
        second,
        work: Work { offered: requests, started: requests, completed: requests, dropped: 0 },
        active_vus: 200,
        endpoints: [("login".to_owned(), endpoint)].into(),
        ..Interval::default()
    }
}

fn write(folder: &Path, capsule: &Capsule, intervals: impl IntoIterator<Item = Interval>) {
    let mut writer = IntervalWriter::create(folder).expect("a new file");
    for interval in intervals {
        writer.append(&interval).expect("a line");
    }
    write_capsule(folder, capsule).expect("a capsule");
}

#[test]
fn seconds_that_are_missing_or_there_twice_void_the_run() {
    let void = |seconds: Vec<u32>| {
        let folder = tempfile::tempdir().unwrap();
        let intervals = seconds.into_iter().map(|second| interval(second, 99, 50));
        write(folder.path(), &capsule(vec![phase(PhaseKind::Measure, 0, 60)]), intervals);
        read(folder.path()).unwrap().void
    };
    assert_eq!(void((0..60).collect()), [""; 0]);
    assert_eq!(void((0..65).rev().collect()), [""; 0], "the order of the lines is no matter");
    assert!(void((0..60).filter(|second| *second != 7).collect())[0].contains("1 of its seconds are missing"));
    assert!(void((0..60).chain(3..5).collect())[0].contains("2 seconds are there more than once"));
    assert!(void((0..30).collect())[0].contains("ends after 30 s, and the run measured until 60 s"));
    assert!(void((0..59).chain([u32::MAX]).collect())[0].contains("missing"));
}

#[test]
fn times_that_cannot_be_void_the_run() {
    let void = |change: &dyn Fn(&mut Capsule)| {
        let folder = tempfile::tempdir().unwrap();
        let mut capsule = capsule(vec![phase(PhaseKind::Measure, 0, 60)]);
        change(&mut capsule);
        write(folder.path(), &capsule, (0..60).map(|second| interval(second, 99, 50)));
        read(folder.path()).unwrap().void
    };
    let lasting =
        |seconds| move |capsule: &mut Capsule| capsule.ended_at = capsule.started_at + Duration::seconds(seconds);
    assert_eq!(void(&|_| {}), [""; 0]);
    assert_eq!(void(&lasting(59)), [""; 0], "parts of seconds, and clocks that are set");
    assert!(void(&lasting(-1))[0].contains("ended 1.0 s before it began"));
    assert!(void(&lasting(30))[0].contains("60 s were recorded, and the run lasted 30.0 s"));
    assert!(void(&lasting(400 * 86_400))[0].contains("400 days"));
    let lost_clock = |capsule: &mut Capsule| {
        capsule.started_at = OffsetDateTime::UNIX_EPOCH;
        capsule.ended_at = capsule.started_at + Duration::seconds(60);
    };
    assert!(void(&lost_clock)[0].contains("began in 1970"));
    assert!(void(&|capsule| capsule.generator.cpu_seconds = Some(-1.0))[0].contains("-1 s of CPU"));
    let think = |seconds| {
        move |capsule: &mut Capsule| {
            capsule.load = Load::Closed { vus: 200, think_time_mean_seconds: seconds };
        }
    };
    assert!(void(&think(-0.5))[0].contains("think for -0.5 s"));
    assert!(void(&|capsule| capsule.phases.push(phase(PhaseKind::Ramp, 9, 3)))[0].contains("ends at second 3"));
}

#[test]
fn what_is_no_regular_file_is_refused_and_never_waited_for() {
    for name in ["capsule.json", "intervals.jsonl"] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &capsule(vec![]), [interval(0, 1, 1)]);
        fs::remove_file(folder.path().join(name)).unwrap();
        nix::unistd::mkfifo(&folder.path().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("it is a pipe"), "{error}");
    }
    assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("it is a device"));
}

#[test]
fn what_was_sent_outside_the_mix_has_a_row_and_is_in_no_total() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = (0..60).map(|second| {
        let mut interval = interval(second, 99, 50);
        let renewals = self::interval(second, 7, 3_000).endpoints.remove("login").unwrap();
        interval.endpoints.insert(SET_UP.to_owned(), renewals);
        interval
    });
    write(folder.path(), &capsule(vec![phase(PhaseKind::Measure, 0, 60)]), seconds);

    let run = read(folder.path()).unwrap();
    assert_eq!((run.requests, run.overall.count), (60 * 100, 60 * 99));
    assert_eq!(run.failures.iter().map(|it| it.count).sum::<u64>(), 60);
    assert_eq!(run.endpoints[SET_UP].latency.count, 60 * 7);
    assert!(run.series.iter().all(|second| second.requests == 100 && second.failed == 1));
    assert!(run.overall.max.unwrap() < 100.0);
}

#[test]
fn a_folder_gives_its_figures_of_the_measured_window_alone() {
    let folder = tempfile::tempdir().unwrap();
    let phases =
        vec![phase(PhaseKind::Ramp, 0, 10), phase(PhaseKind::WarmUp, 10, 20), phase(PhaseKind::Measure, 20, 80)];
    // Slow while it warms up, and after the measured phase.
    let seconds = (0..90)
        .map(|second| if (20..80).contains(&second) { interval(second, 99, 50) } else { interval(second, 9, 900) });
    write(folder.path(), &capsule(phases), seconds);

    let run = read(folder.path()).unwrap();
    assert_eq!(run.source.kind, SourceKind::Native);
    let window = run.window.unwrap();
    assert_eq!((window.from_second, window.until_second, window.found), (20, 80, WindowRule::WholePhase));
    assert_eq!((run.requests, run.seconds, run.throughput), (6_000, Some(60.0), Some(100.0)));
    assert_eq!((run.overall.count, run.tasks_per_service), (5_940, Some(2)));
    assert!((run.overall.p99.unwrap() / 50.0 - 1.0).abs() < 0.001);
    assert!(run.overall.max.unwrap() < 51.0, "nothing from outside the window");
    assert_eq!((run.failures.len(), run.failures[0].count), (1, 60));
    let login = &run.endpoints["login"];
    assert!((login.stages["db"].mean.unwrap() - 5.0).abs() < 0.01);
    assert!((login.unattributed.mean.unwrap() - 5.0).abs() < 0.01);
    assert_eq!(login.failed.count, 60);
    assert_eq!(run.series.len(), 90, "the series has everything");
    assert_eq!((run.series[0].requests, run.series[0].failed), (10, 1));
    assert!(run.warnings.is_empty() && run.void.is_empty());
}

#[test]
fn percentiles_of_the_window_are_those_of_all_its_requests() {
    let folder = tempfile::tempdir().unwrap();
    // 90 seconds with 10 fast answers, 10 seconds with 90 slow ones: half of all requests are slow, and no mean of the
    // seconds' medians is.
    let seconds =
        (0..100).map(|second| if second % 10 == 9 { interval(second, 90, 400) } else { interval(second, 10, 4) });
    let single =
        vec![Phase { name: Some("1x".into()), ..phase(PhaseKind::Measure, 0, 50) }, phase(PhaseKind::Measure, 50, 100)];
    write(folder.path(), &capsule(single), seconds);
    let run = read(folder.path()).unwrap();
    assert!((run.overall.p50.unwrap() - 4.0).abs() < 0.1, "900 of 1800 are no slower than 4 ms");
    assert!(run.overall.p90.unwrap() > 399.0);
    assert!(run.warnings.iter().any(|warning| warning.contains("several measured phases")), "{:?}", run.warnings);
}

#[test]
fn a_warm_up_that_was_planned_too_short_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let seconds =
        (0..120).map(|second| if second < 30 { interval(second, 20, 500) } else { interval(second, 100, 50) });
    write(folder.path(), &capsule(vec![phase(PhaseKind::Measure, 0, 120)]), seconds);
    let run = read(folder.path()).unwrap();
    let window = run.window.unwrap();
    assert_eq!((window.from_second, window.found), (30, WindowRule::Truncated { seconds: 30 }));
    assert_eq!(run.requests, 90 * 101);
}

#[test]
fn a_run_without_steady_state_says_so_and_keeps_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = (0..100).map(|second| interval(second, u64::from(10 + 2 * second), 50));
    write(folder.path(), &capsule(vec![phase(PhaseKind::Measure, 0, 100)]), seconds);
    let run = read(folder.path()).unwrap();
    let window = run.window.unwrap();
    assert!(matches!(window.found, WindowRule::NeverReached { .. }), "{window:?}");
    assert_eq!((window.from_second, window.until_second), (0, 100));
}

#[test]
fn an_interrupted_run_ends_where_its_seconds_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut capsule = capsule(vec![phase(PhaseKind::Measure, 0, 180)]);
    capsule.completion = Completion::Interrupted;
    capsule.void.push("the driver was late".into());
    write(folder.path(), &capsule, (0..40).map(|second| interval(second, 99, 50)));
    let run = read(folder.path()).unwrap();
    assert_eq!((run.seconds, run.throughput), (Some(40.0), Some(100.0)));
    assert_eq!(run.void, ["the driver was late"]);
    assert_eq!(run.warnings, [""; 0], "what the capsule says of its end is said once, by the report");
}

#[test]
fn phases_can_be_read_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str, from, until| Phase { name: Some(name.into()), ..phase(PhaseKind::Measure, from, until) };
    let phases = vec![named("1x", 0, 20), phase(PhaseKind::Ramp, 20, 25), named("2x", 25, 45), named("3x", 45, 65)];
    write(
        folder.path(),
        &capsule(phases),
        (0..45).map(|second| interval(second, if second < 25 { 49 } else { 99 }, 50)),
    );
    let runs = read_phases(folder.path()).unwrap();
    let figures: Vec<_> = runs.iter().map(|run| (run.label.as_str(), run.throughput.unwrap())).collect();
    assert_eq!(figures, [("1x", 50.0), ("2x", 100.0)], "3x was never begun");
}

#[test]
fn a_folder_that_is_no_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("no capsule.json"), "{error}");

    write(folder.path(), &capsule(vec![]), [interval(0, 1, 1)]);
    let path = folder.path().join("intervals.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{}", &text[..text.len() / 2])).unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("intervals.jsonl, line 2"), "{error}");
}
