//! `datum status`: the table of a running system.

use std::process::ExitCode;

use serde::Serialize;
use stack::control::{self, Reply, Request};
use stack::state_dir;
use stack::status::StackStatus;

use super::{failed, find, printed, small_runtime};
use crate::cli::StatusArgs;
use crate::terminal::table;

pub(super) fn run(args: &StatusArgs) -> ExitCode {
    let running = match find::running(&args.which) {
        Ok(running) => running,
        Err(nothing) => return failed(nothing),
    };
    let runtime = match small_runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    // While it starts or stops nobody answers, and the file says what was last known.
    let status = runtime.block_on(ask(&running)).or_else(|| state_dir::read_status(&running.state_dir));
    let Some(status) = status else {
        return failed(format_args!("the system in {} is still starting", running.state_dir.display()));
    };
    if !args.json {
        return printed(&format!("{}\n{}", summary(&status), table::render(&status)));
    }
    match serde_json::to_string_pretty(&Shown { state: word(&status), status: &status }) {
        Ok(text) => printed(&text),
        Err(error) => failed(error),
    }
}

/// The status with its state in a word, so that a script need not count tasks.
#[derive(Serialize)]
struct Shown<'a> {
    state: &'static str,
    #[serde(flatten)]
    status: &'a StackStatus,
}

fn word(status: &StackStatus) -> &'static str {
    match (status.ready, status.troubles().is_empty()) {
        (false, _) => "starting",
        (true, true) => "ready",
        (true, false) => "degraded",
    }
}

async fn ask(running: &find::Running) -> Option<StackStatus> {
    let mut answer = None;
    let asked = control::ask(&running.state_dir, Request::Status, |reply| {
        if let Reply::Status { status } = reply {
            answer = Some(*status);
        }
    });
    asked.await.ok()?;
    answer
}

fn summary(status: &StackStatus) -> String {
    let state = match word(status) {
        "degraded" => format!("degraded: {}", status.troubles().join(", ")),
        "starting" => "still starting".to_owned(),
        word => word.to_owned(),
    };
    let throttle = if status.throttle_off { ", login throttling is OFF" } else { "" };
    let quota = status.task_cpu_units.map(|units| format!(", {units} CPU units a task")).unwrap_or_default();
    let faults = match status.faults.join(", ") {
        none if none.is_empty() => none,
        faults => format!(", requests are SLOW on purpose: {faults}"),
    };
    let users = status.identity.describe().map(|identity| format!("\nusers: {identity}")).unwrap_or_default();
    format!("{} (process {}, {state}{quota}{throttle}{faults}){users}\n", status.base_url, status.pid)
}
