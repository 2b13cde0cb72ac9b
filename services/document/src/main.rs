//! One task of the document service.

use std::process::ExitCode;

fn main() -> ExitCode {
    document::run()
}
