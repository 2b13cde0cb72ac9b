//! The one-off task that runs before a rollout.

use std::process::ExitCode;

fn main() -> ExitCode {
    migrator::main()
}
