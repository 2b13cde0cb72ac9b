//! The command line: `datum up` runs the whole system on one machine, `datum task` and its neighbours run one part of it,
//! as containers do.
//!
//! A command is a file in `commands`; `cli` says what they are called and take; `terminal` is how they speak. What they
//! do is done by the crates they call.

mod api_page;
mod bench;
mod cli;
mod cognito_users;
mod commands;
#[cfg(test)]
mod documented;
mod libpq;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use service_kit::config::EXIT_USAGE;

pub use api_page::{merged_openapi, router as api_page};

/// Runs the command of the process's arguments.
///
/// Exit codes: 0 done, 1 failed, 64 (`EX_USAGE`) the arguments or the configuration are wrong, 130 interrupted twice.
#[must_use]
pub fn main() -> ExitCode {
    match cli::Cli::try_parse() {
        Ok(cli) => {
            if cli.command.has_own_database()
                && let Err(error) = libpq::leave_behind()
            {
                terminal::complain(
                    format_args!("cannot start without the variables of other databases: {error}"),
                    None,
                );
                return ExitCode::FAILURE;
            }
            commands::run(cli.command)
        }
        Err(error) => {
            // Help and version are no errors. A closed pipe (`datum --help | head -1`) is none either.
            let _ = error.print();
            if error.use_stderr() { ExitCode::from(EXIT_USAGE) } else { ExitCode::SUCCESS }
        }
    }
}
