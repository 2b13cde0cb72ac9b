//! One file a command.

mod compare;
mod down;
mod find;
mod healthcheck;
mod logs;
mod parts;
mod populate;
mod print;
mod report;
mod restart;
mod results;
mod status;
mod up;

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use stack::StackError;

use crate::bench;
use crate::cli::{Command, KeysCommand};
use crate::terminal::{complain, try_say};

/// Runs a command to its end.
pub(crate) fn run(command: Command) -> ExitCode {
    match command {
        Command::Up(args) => up::run(&args),
        Command::Down(which) => down::run(&which),
        Command::Status(args) => status::run(&args),
        Command::Restart(args) => restart::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Populate(args) => populate::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Task(args) => parts::task(&args),
        Command::Migrate(forwarded) => parts::migrate(&forwarded),
        Command::Balancer(forwarded) => parts::balancer(&forwarded),
        Command::CognitoDouble(forwarded) => parts::cognito_double(&forwarded),
        Command::ObjectStore(forwarded) => parts::object_store(&forwarded),
        Command::Healthcheck(args) => healthcheck::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Keys(KeysCommand::Generate { file }) => print::signing_key(file.as_deref()),
        Command::Openapi(args) => print::openapi(args.service),
    }
}

/// A runtime for a command that waits more than it works.
fn small_runtime() -> Result<tokio::runtime::Runtime, ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| failed(format_args!("cannot start: {error}")))
}

fn failed(error: impl Display) -> ExitCode {
    complain(error, None);
    ExitCode::FAILURE
}

/// Prints what was asked for. What goes into a file must not be cut short without a word, as on a full disk; that a reader has
/// had enough (`datum openapi | head`) is nobody's failure.
fn printed(text: &str) -> ExitCode {
    match try_say(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => failed(format_args!("cannot write: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

fn stack_failed(error: &StackError) -> ExitCode {
    complain(error, error.advice().as_deref());
    ExitCode::from(error.exit_code())
}
