use std::collections::BTreeMap;
use std::fs;

use envelope::analysis::{Owner, error_table};
use envelope::import::{K6Points, k6_intervals, read};
use envelope::result::{Answerer, Interval, Load};
use envelope::run::{LatencySummary, Run, SourceKind, WindowRule};

use super::{fixture, unpacked};

fn close(left: f64, right: f64, tolerance: f64) {
    assert!((left - right).abs() <= tolerance * right.abs(), "{left} is not {right}");
}

/// All requests of a run whatever its window, from its seconds.
fn of_all_seconds(run: &Run) -> u64 {
    run.series.iter().map(|second| second.requests).sum()
}

fn errors(run: &Run) -> u64 {
    run.failures.iter().map(|found| found.count).sum()
}

fn stages(endpoint: &envelope::run::Endpoint) -> BTreeMap<&str, f64> {
    endpoint.stages.iter().map(|(name, stage)| (name.as_str(), stage.mean.expect("a mean"))).collect()
}

#[test]
fn each_kind_of_file_is_recognised() {
    for (name, kind) in [
        ("foreign.json.gz", SourceKind::K6Json),
        ("foreign.csv.gz", SourceKind::K6Csv),
        ("foreign-export.json", SourceKind::K6SummaryExport),
        ("foreign.txt", SourceKind::K6Text),
        ("foreign-legacy.txt", SourceKind::K6Text),
        ("tagged.json.gz", SourceKind::K6Json),
        ("tagged-data.json", SourceKind::K6Summary),
        ("tagged-full.txt", SourceKind::K6Text),
        ("open.csv.gz", SourceKind::K6Csv),
    ] {
        let run = read(&fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(run.source.kind, kind, "{name}");
        assert_eq!(run.label, name);
        assert!(run.requests > 50 && run.throughput.unwrap() > 5.0, "{name}: {run:?}");
    }
}

#[test]
fn a_file_need_not_be_compressed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["foreign.json.gz", "foreign.csv.gz"] {
        let plain = folder.path().join("renamed.dat");
        fs::write(&plain, unpacked(name)).unwrap();
        let (packed, plain) = (read(&fixture(name)).unwrap(), read(&plain).unwrap());
        assert_eq!((packed.requests, packed.overall, packed.series), (plain.requests, plain.overall, plain.series));
    }
}

#[test]
fn all_outputs_of_one_run_tell_the_same() {
    let (json, csv) = (read(&fixture("foreign.json.gz")).unwrap(), read(&fixture("foreign.csv.gz")).unwrap());
    let (export, text) = (read(&fixture("foreign-export.json")).unwrap(), read(&fixture("foreign.txt")).unwrap());

    assert_eq!(of_all_seconds(&json), export.requests);
    assert_eq!(of_all_seconds(&csv), export.requests);
    assert_eq!(text.requests, export.requests);
    assert_eq!(errors(&text), errors(&export));
    assert!(errors(&text) > 0);
    close(text.throughput.unwrap(), export.throughput.unwrap(), 1e-6);
    for of in [
        |latency: &LatencySummary| latency.mean,
        |latency: &LatencySummary| latency.p50,
        |latency: &LatencySummary| latency.p90,
        |latency: &LatencySummary| latency.p95,
        |latency: &LatencySummary| latency.max,
    ] {
        // The text is rounded to two digits behind the point.
        close(of(&text.overall).unwrap(), of(&export.overall).unwrap(), 0.005);
    }
    assert_eq!(export.overall.count, export.requests - errors(&export));
    assert_eq!(export.overall.p99, None, "what a source does not say is not made up");

    // The same requests, in the same window, by two formats of different resolution.
    assert_eq!(json.endpoints.keys().collect::<Vec<_>>(), csv.endpoints.keys().collect::<Vec<_>>());
    close(json.overall.mean.unwrap(), csv.overall.mean.unwrap(), 0.1);
}

#[test]
fn a_foreign_run_has_endpoints_causes_and_a_closed_load() {
    let run = read(&fixture("foreign.json.gz")).unwrap();
    assert_eq!(run.endpoints.keys().collect::<Vec<_>>(), ["GET /missing/{id}", "GET /v1/actors/me"]);
    let missing = &run.endpoints["GET /missing/{id}"];
    assert_eq!((missing.latency.count, missing.failures.len()), (0, 1));
    assert_eq!(missing.failures[0].failure.status, Some(404));
    assert_eq!(missing.failures[0].failure.code, "unknown");
    assert_eq!(missing.failed.count, missing.failures[0].count);

    let owners: Vec<_> = error_table(std::slice::from_ref(&run)).owners.iter().map(|row| row.owner).collect();
    assert_eq!(owners, [Owner::ClientExpected, Owner::Unknown], "404, and 503 of nobody known");

    let Some(Load::Closed { vus, think_time_mean_seconds }) = run.load else { panic!("{:?}", run.load) };
    assert_eq!(vus, 3);
    // It sleeps 250 ms an iteration, and an iteration has 1.2 requests.
    close(think_time_mean_seconds, 0.25 / 1.2, 0.1);

    let window = run.window.clone().unwrap();
    assert!(window.from_second >= 2 && window.until_second <= 17, "without ramps: {window:?}");
    assert!(!matches!(window.found, WindowRule::Unknown));
    assert_eq!(run.seconds, Some(f64::from(window.until_second - window.from_second)));
    let in_window =
        run.series.iter().filter(|second| (window.from_second..window.until_second).contains(&second.second));
    assert_eq!(run.requests, in_window.map(|second| second.requests).sum::<u64>());
    close(run.throughput.unwrap(), 3.0 / (think_time_mean_seconds + run.overall.mean.unwrap() / 1_000.0), 0.1);
}

#[test]
fn a_tagged_run_has_stages_and_counted_causes() {
    let run = read(&fixture("tagged.json.gz")).unwrap();
    assert_eq!(run.endpoints.keys().collect::<Vec<_>>(), ["get-user", "login"], "set-up is no endpoint");
    for endpoint in run.endpoints.values() {
        let stages = stages(endpoint);
        assert_eq!(stages.keys().copied().collect::<Vec<_>>(), ["db", "total"]);
        close(stages["db"] * 2.0, stages["total"], 0.01);
        close(stages["total"] + endpoint.unattributed.mean.unwrap(), endpoint.latency.mean.unwrap(), 0.02);
        assert_eq!(endpoint.stages["total"].count, endpoint.latency.count);
    }
    let causes: Vec<_> = run.failures.iter().map(|found| &found.failure).collect();
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!(
        (causes[0].status, causes[0].code.as_str(), causes[0].answerer),
        (Some(503), "hashing_busy", Answerer::Task)
    );
    assert_eq!(error_table(std::slice::from_ref(&run)).owners[0].owner, Owner::Shed);
    let window = run.window.unwrap();
    assert!(window.from_second >= 2, "the ramp is tagged: {window:?}");
}

#[test]
fn both_summaries_of_a_tagged_run_have_its_endpoints() {
    let (data, export) = (read(&fixture("tagged-data.json")).unwrap(), read(&fixture("tagged-export.json")).unwrap());
    assert_eq!(data.endpoints, export.endpoints);
    assert_eq!((data.overall.clone(), data.failures.clone()), (export.overall, export.failures));
    assert_eq!(data.endpoints.keys().collect::<Vec<_>>(), ["get-user", "login"]);
    let login = &data.endpoints["login"];
    assert!(login.latency.p999.is_some() && login.latency.count > 0);
    close(stages(login)["db"] + login.unattributed.mean.unwrap(), login.latency.mean.unwrap() / 2.0 + 1.0, 0.5);
    assert!(data.failures.iter().all(|found| found.failure.code == "hashing_busy"), "{:?}", data.failures);

    // The samples of the same run, the requests of setup() left out, which the summary counts.
    let json = read(&fixture("tagged.json.gz")).unwrap();
    assert_eq!(of_all_seconds(&json) + 1, data.requests);
    let seen: u64 = login.latency.count + login.failed.count;
    let mut of_login = 0;
    k6_intervals(&fixture("tagged.json.gz"), |interval| {
        let login = interval.endpoints.get("login");
        of_login += login.map_or(0, |login| login.latency.count() + login.failed_latency.count());
    })
    .unwrap();
    assert_eq!(of_login, seen);
}

#[test]
fn the_full_text_is_read_once_though_it_says_everything_twice() {
    let run = read(&fixture("tagged-full.txt")).unwrap();
    assert_eq!(run.endpoints.keys().collect::<Vec<_>>(), ["get-user", "login"]);
    let of_endpoints: u64 = run.endpoints.values().map(|endpoint| endpoint.latency.count + endpoint.failed.count).sum();
    assert_eq!(of_endpoints + 1, run.requests, "the request of setup() belongs to none");
    assert!(run.endpoints["login"].stages.contains_key("db"));
    assert!(run.overall.p99.is_some() && run.overall.p999.is_some());
    assert!(matches!(run.load, Some(Load::Closed { vus: 3, .. })), "{:?}", run.load);
    close(run.seconds.unwrap(), 16.0, 0.05);
    assert!(errors(&run) > 0);
}

#[test]
fn an_open_run_says_what_it_was_asked_for_and_what_it_dropped() {
    let (csv, text) = (read(&fixture("open.csv.gz")).unwrap(), read(&fixture("open.txt")).unwrap());
    let arrivals = |run: &Run| match run.load {
        Some(Load::Open { arrivals_per_second }) => arrivals_per_second,
        ref other => panic!("{other:?}"),
    };
    close(arrivals(&text), 40.0, 1e-9);
    close(arrivals(&csv), 40.0, 0.1);
    for run in [&csv, &text] {
        assert!(run.warnings.iter().any(|warning| warning.contains("dropped")), "{:?}", run.warnings);
    }
    let dropped: u64 = csv.series.iter().map(|second| second.work.dropped).sum();
    assert!(dropped > 0 && csv.series.iter().all(|second| second.work.offered >= second.work.started));
    assert_eq!(csv.endpoints.keys().collect::<Vec<_>>(), ["get-user"]);
}

#[test]
fn intervals_of_a_k6_run_can_be_kept_as_a_native_driver_keeps_them() {
    let mut intervals: Vec<Interval> = Vec::new();
    let facts = k6_intervals(&fixture("tagged.json.gz"), |interval| intervals.push(interval)).unwrap();
    assert!(intervals.is_sorted_by(|left, right| left.second < right.second));
    assert_eq!(facts.most_vus, 3);
    let (ramp, measure) = (facts.phases["ramp"], facts.phases["measure"]);
    assert!(ramp.0 == 0 && ramp.1 <= measure.0 && measure.1 > 10, "{facts:?}");
    for endpoint in intervals.iter().flat_map(|interval| interval.endpoints.values()) {
        let failures: u64 = endpoint.failures.iter().map(|found| found.count).sum();
        assert_eq!(failures, endpoint.failed_latency.count());
    }
    let error = k6_intervals(&fixture("foreign.txt"), |_| {}).unwrap_err().to_string();
    assert!(error.contains("has no samples"), "{error}");
}

/// What v0.49 prints, with the figures of a run of five minutes at 200 users.
const V0_TEXT: &str = "
     data_received..................: 95 MB  316 kB/s
     data_sent......................: 31 MB  103 kB/s
     http_req_blocked...............: avg=12.51µs  min=1.1µs    med=4.2µs    max=102.3ms  p(90)=6.1µs    p(95)=7.2µs
   ✓ http_req_duration..............: avg=75.28ms  min=1.93ms   med=6.5ms    max=7.31s    p(90)=212.4ms  p(95)=364.1ms  p(99)=852ms
       { expected_response:true }...: avg=75.29ms  min=1.93ms   med=6.5ms    max=7.31s    p(90)=212.4ms  p(95)=364.2ms  p(99)=852.1ms
     ✗ { name:login }...............: avg=551.2ms  min=101.2ms  med=420ms    max=1m2.5s   p(90)=1.1s     p(95)=1.42s    p(99)=2.3s
     http_req_failed................: 0.01%  ✓ 9        ✗ 66,603
       { name:login }...............: 0.08%  ✓ 4        ✗ 4996
     http_reqs......................: 66,612 222.036513/s
       { name:login }...............: 5000   16.666/s
     iteration_duration.............: avg=900.7ms  min=102.1ms  med=640.1ms  max=9.1s     p(90)=1.9s     p(95)=2.4s
     iterations.....................: 66612  222.036513/s
     vus............................: 3      min=1      max=200
     vus_max........................: 200    min=200    max=200
";

#[test]
fn the_text_of_version_0_is_read_with_its_signs_units_and_thousands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v49-200vu-load5m-raw.txt");
    fs::write(&path, V0_TEXT).unwrap();
    let run = read(&path).unwrap();

    assert_eq!((run.requests, errors(&run)), (66_612, 9));
    close(run.throughput.unwrap(), 222.036_513, 1e-9);
    close(run.seconds.unwrap(), 300.0, 1e-3);
    assert_eq!((run.overall.mean, run.overall.p50, run.overall.p99), (Some(75.29), Some(6.5), Some(852.1)));
    assert_eq!((run.overall.max, run.overall.count), (Some(7_310.0), 66_603));
    let login = &run.endpoints["login"];
    assert_eq!((login.latency.max, login.latency.count), (Some(62_500.0), 4_996));
    assert_eq!((login.failed.count, login.failures[0].failure.code.as_str()), (4, "unknown"));
    let Some(Load::Closed { vus, think_time_mean_seconds }) = run.load else { panic!("{:?}", run.load) };
    assert_eq!(vus, 200);
    close(think_time_mean_seconds, 0.9007 - 0.075_28, 1e-6);
}

/// The machine-readable summary by its schema 1.0.0, which v1.1 does not write yet.
const MACHINE_READABLE: &str = r#"{
  "version": "1.0.0",
  "config": { "duration": 180.5, "execution": "local", "script": "main.js" },
  "metadata": { "k6Version": "2.0.0", "generatedAt": "2026-06-12T10:00:00Z" },
  "results": {
    "checks": { "metrics": [], "results": [ { "name": "email is own", "passes": 10, "fails": 0 } ] },
    "metrics": [
      { "name": "http_reqs", "type": "counter", "contains": "default", "values": { "count": 36100 } },
      { "name": "http_req_failed", "type": "rate", "contains": "default", "values": { "matches": 3, "rate": 0.0000831, "total": 36100 } },
      { "name": "http_req_duration", "type": "trend", "contains": "time", "values": { "avg": 80.5, "max": 900, "med": 60, "min": 1, "p(90)": 150, "p(95)": 210 } },
      { "name": "http_req_duration{endpoint:login}", "type": "trend", "contains": "time", "values": { "avg": 300, "med": 290, "p(95)": 400 } },
      { "name": "iteration_duration", "type": "trend", "contains": "time", "values": { "avg": 1000 } },
      { "name": "iterations", "type": "counter", "contains": "default", "values": { "count": 36100 } },
      { "name": "vus", "type": "gauge", "contains": "default", "values": { "max": 200, "min": 0, "value": 12 } }
    ]
  }
}"#;

#[test]
fn the_machine_readable_summary_gives_rates_from_its_duration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    for text in [MACHINE_READABLE.to_owned(), MACHINE_READABLE.replace('\n', "")] {
        fs::write(&path, text).unwrap();
        let run = read(&path).unwrap();
        assert_eq!(run.source.kind, SourceKind::K6Summary);
        assert_eq!((run.requests, errors(&run), run.seconds), (36_100, 3, Some(180.5)));
        close(run.throughput.unwrap(), 200.0, 1e-12);
        assert_eq!((run.overall.p95, run.overall.p99), (Some(210.0), None));
        assert_eq!(run.endpoints["login"].latency.mean, Some(300.0));
        assert!(
            matches!(run.load, Some(Load::Closed { vus: 200, think_time_mean_seconds }) if (think_time_mean_seconds - 0.9195).abs() < 1e-9)
        );
    }
}

/// Points of twelve seconds as Datum's scripts write them: two endpoints, failures with their causes, stages, a second without
/// anything, points a little out of order, and one that comes too late for its second.
fn points_of_datums_scripts() -> Vec<String> {
    let point = |metric: &str, millis: u64, value: f64, tags: &str| {
        format!(
            r#"{{"metric":"{metric}","type":"Point","data":{{"time":"2026-01-01T00:00:{:02}.{:03}Z","value":{value},"tags":{{{tags}}}}}}}"#,
            millis / 1_000,
            millis % 1_000
        )
    };
    let mut lines = vec![point("load_began", 20, 1_767_225_600_000.0, r#""phase":"ramp""#)];
    for step in 0..400_u64 {
        // Neighbours change places, and second 5 is empty.
        let millis = 100 + (step ^ 3) * 28;
        if (5_000..6_000).contains(&millis) {
            continue;
        }
        let phase = if millis < 3_000 { "ramp" } else { "measure" };
        let endpoint = if step % 7 == 0 { "login" } else { "get-user" };
        let tags = format!(r#""endpoint":"{endpoint}","phase":"{phase}","status":"200""#);
        let millis_of = |value: u64| f64::from(u32::try_from(value).expect("a few hundred")) / 10.0;
        lines.push(point("latency", millis, millis_of(10 + step % 90), &tags));
        lines.push(point("stage_db", millis, millis_of(1 + step % 9), &tags));
        lines.push(point("unattributed", millis, millis_of(1 + step % 5), &tags));
        if step % 50 == 0 {
            let refused = format!(
                r#""endpoint":"{endpoint}","phase":"{phase}","status":"503","code":"hashing_busy","answerer":"task""#
            );
            lines.push(point("failures", millis, 1.0, &refused));
            lines.push(point("failed_latency", millis, 4.5, &refused));
        }
        if step % 35 == 0 {
            lines.push(point("vus", millis, millis_of(step), ""));
            lines.push(point("dropped_iterations", millis, 1.0, ""));
            lines.push(point("identities", millis, 1.0, ""));
        }
    }
    lines.push(point("latency", 1_000, 9.0, r#""endpoint":"login","phase":"ramp","status":"200""#));
    lines
}

#[test]
fn points_become_the_same_seconds_while_k6_writes_them_and_from_its_file() {
    let lines = points_of_datums_scripts();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("points.json");
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let mut from_file: Vec<Interval> = Vec::new();
    let facts_of_file = k6_intervals(&file, |interval| from_file.push(interval)).unwrap();

    let mut points = K6Points::default();
    let mut live: Vec<Interval> = lines.iter().flat_map(|line| points.take(line)).collect();
    live.extend(points.finish());
    assert_eq!(live.iter().map(|interval| interval.second).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
    // A file's seconds without any sample are left out.
    live.retain(|interval| interval.second != 5);
    assert_eq!(live, from_file);
    assert_eq!(points.facts(), facts_of_file);
    assert_eq!((facts_of_file.late_points, facts_of_file.phases.len()), (1, 2), "{facts_of_file:?}");
}
