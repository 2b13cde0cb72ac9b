//! `datum restart`: replaces tasks one by one, as a rolling deployment does.

use std::io;
use std::process::ExitCode;

use stack::control::{self, Reply, Request};
use stack::state_dir;

use super::{failed, find, small_runtime};
use crate::cli::RestartArgs;
use crate::terminal::say;

pub(super) fn run(args: &RestartArgs) -> ExitCode {
    let running = match find::running(&args.which) {
        Ok(running) => running,
        Err(nothing) => return failed(nothing),
    };
    let runtime = match small_runtime() {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let request = Request::Restart { service: args.service, timeout_seconds: Some(args.timeout) };
    let mut failure = None;
    let asked = control::ask(&running.state_dir, request, |reply| match reply {
        Reply::Progress { text } => say(text),
        Reply::Failed { message } => failure = Some(message),
        Reply::Done | Reply::Status { .. } => {}
    });
    match (runtime.block_on(asked), failure) {
        (Err(error), _) => failed(unanswered(&running, &error)),
        (Ok(()), Some(message)) => failed(message),
        (Ok(()), None) => {
            say("restarted");
            ExitCode::SUCCESS
        }
    }
}

/// Why nobody has answered. Only a system that is ready listens; one that stops listens no more.
fn unanswered(running: &find::Running, error: &io::Error) -> String {
    let folder = running.state_dir.display();
    let nobody_listens = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
    match state_dir::read_status(&running.state_dir) {
        Some(status) if nobody_listens && status.ready => format!("the system in {folder} is stopping"),
        _ if nobody_listens => format!("the system in {folder} is still starting; try again when it is ready"),
        _ => format!("the system in {folder} does not answer: {error}"),
    }
}
