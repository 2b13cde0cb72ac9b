//! `datum bench`: what a run leaves, how it ends early, what it refuses, and that it leaves nothing running.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use e2e::{Process, Running, Signal};
use serde_json::Value;
use tempfile::TempDir;
use test_support::{TestServer, eventually};

const DATUM: &str = env!("CARGO_BIN_EXE_e2e-datum");

fn workplace() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The only result in a folder.
fn result(out: &Path) -> PathBuf {
    let mut folders: Vec<_> = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

fn capsule(result: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(result.join("capsule.json")).unwrap()).unwrap()
}

fn intervals(result: &Path) -> Vec<Value> {
    let text = fs::read_to_string(result.join("intervals.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn all_end(processes: &[Process]) {
    eventually("nothing is left running", async || !processes.iter().any(Process::is_running)).await;
}

#[tokio::test]
async fn a_run_leaves_its_seconds_its_capsule_and_a_report_and_nothing_running() {
    let workplace = workplace();
    let arguments =
        ["bench", "smoke", "--vus", "3", "--ramp", "1", "--warm-up", "1", "--duration", "6", "--set", "LOG_LEVEL=warn"];
    let running = Running::start(DATUM, &arguments, workplace.path());
    running.wait_for_line(|line| line.starts_with("system "));
    let processes = running.process().descendants();
    assert!(processes.len() > 5, "the system is its child: {processes:?}");
    let ended = running.wait();
    assert!(ended.output.contains("login throttling OFF"), "{}", ended.output);
    assert!(ended.output.contains("with 95 % confidence"), "{}", ended.output);
    all_end(&processes).await;

    let result = result(&workplace.path().join("results"));
    let capsule = capsule(&result);
    // A machine that is busy with other things voids the run; that is then said, and is no failure of the command.
    let void = !capsule["void"].as_array().unwrap().is_empty();
    assert_eq!(ended.status.code(), Some(if void { 65 } else { 0 }), "{}", ended.output);
    assert_eq!(capsule["completion"], "whole");
    assert_eq!(capsule["scenario"], "smoke");
    assert_eq!(capsule["driver"]["name"], "native");
    assert_eq!(capsule["identities"], 3, "each virtual user is somebody else");
    let stack = &capsule["target"]["stack"];
    assert_eq!(stack["settings"]["AUTH_THROTTLE"], "off");
    assert_eq!(stack["settings"]["LOG_LEVEL"], "warn");
    assert_eq!((&stack["tasks"]["auth"], &stack["pools"]["actor"]["max"]), (&1.into(), &14.into()));
    assert!(capsule["verified"].as_object().unwrap().values().all(|outcome| outcome == "ok"), "{capsule}");
    assert!(capsule["command"].as_array().unwrap().contains(&"smoke".into()));
    assert!(capsule["stack_use"]["processes"]["auth-1"]["cpu_seconds"].is_number(), "{capsule}");
    assert!(intervals(&result).len() >= 8);
    let report = fs::read_to_string(result.join("report.md")).unwrap();
    assert!(report.contains("get-user"), "{report}");
    assert!(fs::read_to_string(result.join("report.html")).unwrap().contains("<svg"));
}

#[tokio::test]
async fn ctrl_c_ends_a_run_early_with_a_valid_result() {
    let workplace = workplace();
    let arguments = ["bench", "smoke", "--ramp", "0", "--warm-up", "0", "--duration", "1h", "--out", "kept"];
    let running = Running::start(DATUM, &arguments, workplace.path());
    running.wait_for_line(|line| line.contains("  measure "));
    let processes = running.process().descendants();
    running.signal(Signal::SIGINT);
    let ended = running.wait();
    assert_eq!(ended.status.code(), Some(130), "{}", ended.output);
    assert!(ended.output.contains("INTERRUPTED"), "{}", ended.output);
    all_end(&processes).await;

    let result = result(&workplace.path().join("kept"));
    let capsule = capsule(&result);
    assert_eq!(capsule["completion"], "interrupted");
    let last = capsule["phases"].as_array().unwrap().last().unwrap();
    assert_eq!(last["kind"], "measure");
    let until = last["until_second"].as_u64().unwrap();
    assert!((1..3_600).contains(&until), "the phase is as long as it really was: {until}");
    assert!(result.join("report.md").is_file());
}

#[tokio::test]
async fn when_it_is_killed_the_system_stops_by_itself() {
    let workplace = workplace();
    let running = Running::start(DATUM, &["bench", "smoke", "--duration", "1h"], workplace.path());
    running.wait_for_line(|line| line.starts_with("system "));
    let processes = running.process().descendants();
    assert!(processes.len() > 5, "{processes:?}");
    running.signal(Signal::SIGKILL);
    all_end(&processes).await;
}

#[tokio::test]
async fn a_target_that_does_not_answer_as_it_must_is_not_put_under_load() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let broken = TestServer::serve(Router::new().fallback(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready(StatusCode::INTERNAL_SERVER_ERROR)
    }))
    .await;
    let workplace = workplace();
    let url = broken.url();
    let running = Running::start(DATUM, &["bench", "smoke", "--target", &url], workplace.path());
    let ended = tokio::task::spawn_blocking(|| running.wait()).await.unwrap();
    assert_eq!(ended.status.code(), Some(69), "{}", ended.output);
    assert!(ended.output.contains("is not put under load"), "{}", ended.output);
    assert!(ended.output.contains("500"), "it says what was wrong: {}", ended.output);
    assert!(!workplace.path().join("results").exists(), "there is no result");
    assert!(requests.load(Ordering::Relaxed) < 50, "{requests:?} requests are a load");
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_started() {
    let workplace = workplace();
    for (arguments, said) in [
        (&["bench", "nothing-like-it"][..], "baseline-mix"),
        (&["bench", "baseline-mix", "--rate", "5"], "closed model"),
        (&["bench", "smoke", "--driver", "k6", "--k6", "/nowhere/k6"], "--k6"),
        (&["bench", "capacity", "--slo", "p95>1s"], "p95<250ms"),
        (&["bench", "capacity", "--scenario", "smoke", "--slo", "p95<1s"], "closed model"),
        (&["bench"], "SCENARIO"),
    ] {
        let ended = Running::start(DATUM, arguments, workplace.path()).wait();
        assert_eq!(ended.status.code(), Some(64), "{arguments:?}: {}", ended.output);
        assert!(ended.output.contains(said), "{arguments:?}: {}", ended.output);
    }
    assert!(!workplace.path().join("results").exists());
}
