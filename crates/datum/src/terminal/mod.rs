//! How commands speak: plain lines anywhere, steps and a table that redraw themselves on a terminal.

pub(crate) mod log_lines;
pub(crate) mod own_log;
pub(crate) mod screen;
pub(crate) mod table;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Prints a line on standard output. That nobody reads it (`datum status | head -1`) is no error.
pub(crate) fn say(line: impl Display) {
    let _ = try_say(line);
}

/// The same for what goes on until nobody reads it any more.
pub(crate) fn try_say(line: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// Prints what went wrong, and what to do about it, on standard error.
pub(crate) fn complain(error: impl Display, advice: Option<&str>) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "error: {error}");
    if let Some(advice) = advice {
        let _ = writeln!(stderr, "  try: {advice}");
    }
}

/// Whether lines on standard output can be redrawn.
pub(crate) fn can_redraw() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
