//! A system from its start to its end.

use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::{Home, eventually, is_alive, names_in, pids, task};

fn get(home: &Home, url: &str) -> Option<i32> {
    home.run(&["healthcheck", url]).code
}

#[test]
fn it_is_started_asked_restarted_and_stopped() {
    let home = Home::new();
    let up = home.up(&["--tasks", "auth=2"]);
    let port = up.url.rsplit_once(':').unwrap().1.to_owned();

    // What it answers itself, and through a task.
    for path in ["/live", "/docs/", "/openapi.json", "/.well-known/jwks.json"] {
        assert_eq!(get(&home, &format!("{}{path}", up.url)), Some(0), "{path}");
    }

    // Who runs.
    let status = home.status();
    assert_eq!(status["base_url"], up.url.as_str());
    assert_eq!((status["pid"].as_i64(), status["ready"].as_bool()), (Some(up.pid().into()), Some(true)));
    assert_eq!((&status["throttle_off"], &status["faults"]), (&false.into(), &serde_json::json!([])));
    assert_eq!(status["tasks"].as_array().unwrap().len(), 4);
    for task in status["tasks"].as_array().unwrap() {
        assert_eq!((task["health"].as_str(), task["restarts"].as_u64()), (Some("healthy"), Some(0)), "{task}");
    }
    let table = home.run(&["status", "--port", &port]).stdout;
    assert!(table.contains("SERVICE") && table.contains("postgres"), "{table}");

    // Its secrets are its own.
    let state = home.state();
    for file in ["secrets.json", "keys/signing.pem", "control.sock", "logs/auth-1.log"] {
        let mode = std::fs::metadata(state.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file} is open to others: {mode:o}");
    }

    // A second one is refused and disturbs nothing.
    let second = home.run(&["up", "--port", "0"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains(&format!("process {}", up.pid())), "{}", second.stderr);
    assert!(second.stderr.contains("datum down"), "{}", second.stderr);
    assert_eq!(without_what_moves(home.status()), without_what_moves(status.clone()));

    // A rolling restart gives every task of a service another process, and leaves the others alone.
    let restart = home.run(&["restart", "auth"]);
    assert_eq!(restart.code, Some(0), "{restart:?}");
    let after = home.status();
    for (service, number, same) in [("auth", 1, false), ("auth", 2, false), ("actor", 1, true), ("document", 1, true)] {
        let (before, after) = (task(&status, service, number), task(&after, service, number));
        assert_eq!(before["pid"] == after["pid"], same, "{service}-{number}");
        assert_eq!((after["health"].as_str(), after["restarts"].as_u64()), (Some("healthy"), Some(0)), "{after}");
    }

    // Logs.
    let logs = home.run(&["logs", "auth-1"]).stdout;
    assert!(logs.lines().all(|line| line.starts_with("auth-1 ")) && logs.contains("listening"), "{logs}");

    // The end.
    let processes = pids(&after);
    let down = home.run(&["down"]);
    assert_eq!(down.code, Some(0), "{down:?}");
    let (exit, output, errors) = up.end();
    assert_eq!((exit.code(), errors.as_str()), (Some(0), ""), "{output}");
    assert!(output.ends_with("Datum has stopped."), "{output}");
    for pid in processes {
        assert!(!is_alive(pid), "process {pid} is left");
    }
    assert!(!state.join("control.sock").exists() && !state.join("stack.json").exists());

    // What it kept is there, and what its tasks said can still be read.
    assert!(state.join("keys/signing.pem").exists());
    assert!(home.run(&["logs", "auth", "-n", "1000"]).stdout.contains("stopped"));
}

/// Memory and uptime go on changing while everything else stands still.
fn without_what_moves(mut status: Value) -> Value {
    for row in status["tasks"].as_array_mut().unwrap() {
        row["rss_bytes"].take();
        row["uptime_seconds"].take();
    }
    status
}

#[test]
fn an_ephemeral_system_shows_logs_and_leaves_nothing() {
    let home = Home::new();
    let faults =
        ["--set", "FAULT_STAGE_DELAY=app:5ms", "--set", "FAULT_FORWARD_DELAY=5ms", "--set", "DATUM_ALLOW_FAULTS=1"];
    let up = home.up(&[&["--ephemeral", "--logs", "--throttle", "off"][..], &faults].concat());
    for note in ["login throttling is OFF", "(FAULT_STAGE_DELAY=app:5ms)", "(FAULT_FORWARD_DELAY=5ms)"] {
        assert!(up.output().contains(note), "{note} is not in:\n{}", up.output());
    }
    up.wait_for_line("document-1 | ");
    let status = home.status();
    assert_eq!(status["throttle_off"], true, "found without naming it, as the only one that runs");
    assert_eq!(status["faults"], serde_json::json!(["FAULT_STAGE_DELAY=app:5ms", "FAULT_FORWARD_DELAY=5ms"]));
    assert!(home.run(&["status"]).stdout.contains("SLOW on purpose"));
    assert_eq!(names_in(&home.temporary()).len(), 1);

    let processes = pids(&home.status());
    up.signal(Signal::SIGINT);
    let (exit, output, errors) = up.end();
    assert_eq!((exit.code(), errors.as_str()), (Some(0), ""), "{output}");
    eventually("PostgreSQL's folder to be gone", || names_in(&home.temporary()).is_empty());
    for pid in processes {
        assert!(!is_alive(pid), "process {pid} is left");
    }
    assert!(names_in(&home.work()).is_empty(), "it wrote into the current folder");
}

#[test]
fn a_signal_while_it_starts_stops_what_was_started() {
    let home = Home::new();
    let up = home.start(&["--ephemeral"]);
    up.wait_for_line("state");
    up.signal(Signal::SIGTERM);
    let (exit, output, errors) = up.end();
    assert_eq!((exit.code(), errors.as_str()), (Some(0), ""), "{output}");
    assert!(output.ends_with("Datum has stopped before it was ready."), "{output}");
    eventually("its folder to be gone", || names_in(&home.temporary()).is_empty());
}
