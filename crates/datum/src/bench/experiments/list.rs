//! `datum bench --list`

use std::process::ExitCode;

use loadgen::scenario;

use crate::bench::error::BenchError;
use crate::terminal::say;

/// Prints every scenario with its model and its question.
pub(in crate::bench) fn list() -> ExitCode {
    for name in scenario::names() {
        match scenario::open(name) {
            Ok(scenario) => {
                let model = crate::bench::describe::load(&scenario.load());
                let length = crate::terminal::table::duration(scenario.schedule().length().as_secs());
                say(format_args!("{name:<14} {model}, {length}\n{:14} {}", "", scenario.question));
            }
            Err(error) => return BenchError::from(error).report(),
        }
    }
    ExitCode::SUCCESS
}
