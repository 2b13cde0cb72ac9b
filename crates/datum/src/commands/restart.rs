//! `datum restart`: replaces tasks one by one, as a rolling deployment does.

use std::process::ExitCode;

use stack::control::{self, Reply, Request};

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
    let mut failure = None;
    let asked = control::ask(&running.state_dir, Request::Restart { service: args.service }, |reply| match reply {
        Reply::Progress { text } => say(text),
        Reply::Failed { message } => failure = Some(message),
        Reply::Done | Reply::Status { .. } => {}
    });
    match (runtime.block_on(asked), failure) {
        (Err(error), _) => {
            failed(format_args!("the system in {} does not answer: {error}", running.state_dir.display()))
        }
        (Ok(()), Some(message)) => failed(message),
        (Ok(()), None) => {
            say("restarted");
            ExitCode::SUCCESS
        }
    }
}
