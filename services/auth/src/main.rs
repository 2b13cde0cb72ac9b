//! One task of the auth service.

use std::process::ExitCode;

fn main() -> ExitCode {
    auth::run()
}
