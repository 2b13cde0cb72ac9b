//! One task of the actor service.

use std::process::ExitCode;

fn main() -> ExitCode {
    actor::run()
}
