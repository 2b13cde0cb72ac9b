//! `datum bench` against a system that runs: what goes wrong on the way, and what is there afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::{Done, Home, finish, names_in};

/// The only result below a folder, and its capsule.
fn only_result(out: &Path) -> (PathBuf, Value) {
    let names = names_in(out);
    assert_eq!(names.len(), 1, "{names:?}");
    let folder = out.join(&names[0]);
    let capsule = std::fs::read(folder.join("capsule.json")).unwrap();
    (folder, serde_json::from_slice(&capsule).unwrap())
}

#[test]
fn a_record_that_cannot_be_written_any_more_ends_the_run_with_its_summary_and_a_marked_result() {
    let home = Home::new();
    let up = home.up(&["--ephemeral", "--throttle", "off"]);
    let load = ["--vus", "20", "--think-time", "0.05", "--ramp", "1", "--warm-up", "0", "--duration", "10m"];
    let arguments = [&["bench", "baseline-mix", "--target", &up.url, "--out", "results"][..], &load].concat();
    let bench = home.command(&arguments);
    // Files of some seconds' length, as on a disk that fills; without the signal that would end the process.
    let mut limited = Command::new("sh");
    limited
        .args(["-c", r#"trap "" XFSZ; ulimit -f 200; exec "$0" "$@""#])
        .arg(bench.get_program())
        .args(bench.get_args())
        .current_dir(home.work());
    for (name, value) in bench.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let Done { code, stdout, stderr } = finish(&mut limited);
    assert_eq!(code, Some(74), "{stdout}\n{stderr}");
    assert!(stderr.contains("intervals.jsonl: ") && stderr.contains("marked as failed"), "{stderr}");
    assert!(stdout.contains("\nFAILED ") && stdout.contains("\nENDPOINT "), "{stdout}");

    let (folder, capsule) = only_result(&home.work().join("results"));
    assert_eq!(capsule["completion"], "failed");
    assert!(capsule["void"][0].as_str().unwrap().contains("could not be written"), "{capsule}");
    // The line that was cut off is gone: what is there can be read.
    let report = home.run(&["report", folder.to_str().unwrap(), "--out", "report"]);
    assert_eq!(report.code, Some(0), "{report:?}");
}

#[test]
fn a_folder_that_takes_no_results_is_refused_before_anything_is_started() {
    let home = Home::new();
    for arguments in [&["smoke"][..], &["phase4", "--short"], &["selftest"], &["capacity", "--slo", "p95<250ms"]] {
        let done = home.run(&[&["bench"], arguments, &["--out", "/dev/null/results"]].concat());
        assert_eq!(done.code, Some(73), "{arguments:?}: {done:?}");
        assert!(done.stderr.contains("/dev/null/results") && done.stderr.contains("--out FOLDER"), "{done:?}");
        assert!(!done.stdout.contains("system ") && !done.stdout.contains("verified"), "{done:?}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_when_it_is_typed_and_no_password_is_repeated() {
    let home = Home::new();
    for (arguments, reason) in [
        (&["--target", "http://me:hunter2@example.com"][..], "no credentials"),
        (&["--target", "ftp://example.com"], "http or https"),
        (&["--target", "https://example.com", "--target-ca", "/dev/null"], "--target-ca: /dev/null"),
        (&["--pool-max", "3", "--pool-min", "9"], "DB_POOL_MIN must not be above DB_POOL_MAX"),
        (&["--vus", "50001"], "1..=50000"),
        (&["--duration", "99999999999"], "longer than a day"),
    ] {
        let done = home.run(&[&["bench", "smoke"], arguments].concat());
        assert_eq!(done.code, Some(64), "{done:?}");
        assert!(done.stderr.contains(reason), "{done:?}");
        assert!(!done.stderr.contains("hunter2") && done.stdout.is_empty(), "{done:?}");
    }
    assert!(names_in(&home.work()).is_empty());
}

#[test]
fn a_run_that_is_ended_in_its_ramp_is_a_marked_result_that_measured_nothing_and_says_so_once() {
    let home = Home::new();
    let up = home.up(&["--ephemeral", "--throttle", "off"]);
    let load = ["--vus", "4", "--think-time", "0.1", "--ramp", "10m"];
    let arguments = [&["bench", "baseline-mix", "--target", &up.url, "--out", "results"][..], &load].concat();
    let bench = Home::start_command(home.command(&arguments));
    bench.wait_for_line("     5s  ramp");
    bench.signal(Signal::SIGINT);
    let (status, stdout, stderr) = bench.end();
    assert_eq!(status.code(), Some(130), "{stdout}\n{stderr}");
    assert_eq!(stdout.matches("before anything was measured").count(), 1, "{stdout}");
    assert!(!stdout.contains("INTERRUPTED") && !stdout.contains("single identity"), "{stdout}");
    assert!(!stdout.contains("ENDPOINT"), "no figures: {stdout}");

    let (_, capsule) = only_result(&home.work().join("results"));
    assert_eq!(capsule["completion"], "interrupted");
    assert!(capsule["phases"].as_array().unwrap().iter().all(|phase| phase["kind"] == "ramp"), "{capsule}");
}
