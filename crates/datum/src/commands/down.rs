//! `datum down`: stops a running system and waits until it has ended.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stack::state_dir;

use super::find::NotFound;
use super::{failed, find};
use crate::cli::WhichArgs;
use crate::terminal::{complain, say, screen::seconds};

/// Longer than everything that a stop waits for together.
const PATIENCE: Duration = Duration::from_mins(2);
/// For a process that has stopped everything to end itself.
const LAST_STEPS: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// Between two signs of life.
const REPORT: Duration = Duration::from_secs(5);

pub(super) fn run(which: &WhichArgs) -> ExitCode {
    let running = match find::running(which) {
        Ok(running) => running,
        Err(nothing @ NotFound::Nothing(_)) => {
            say(nothing);
            return ExitCode::SUCCESS;
        }
        Err(unclear) => return failed(unclear),
    };
    let place =
        state_dir::read_status(&running.state_dir).map_or_else(String::new, |status| format!(", {}", status.base_url));
    say(format_args!("stopping the system in {} (process {}{place})", running.state_dir.display(), running.pid));
    let Ok(raw_pid) = i32::try_from(running.pid) else { return failed("its lock names no process") };
    let pid = Pid::from_raw(raw_pid);
    match kill(pid, Signal::SIGTERM) {
        // It ended in this very moment.
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => return failed(format_args!("cannot stop process {pid}: {error}")),
    }
    let began = Instant::now();
    let mut reported = began;
    while state_dir::is_held(&running.state_dir) {
        if began.elapsed() > PATIENCE {
            let advice = format!("kill -9 {pid}; whatever it started then ends by itself");
            complain(format_args!("process {pid} has not ended after {}", seconds(PATIENCE)), Some(&advice));
            return ExitCode::FAILURE;
        }
        if reported.elapsed() > REPORT {
            reported = Instant::now();
            say(format_args!("waiting for requests in flight and the database ({})", seconds(began.elapsed())));
        }
        sleep(PAUSE);
    }
    // It lets go of its folder last of all, and then only has to end.
    let released = Instant::now();
    while is_running(pid) && released.elapsed() < LAST_STEPS {
        sleep(Duration::from_millis(5));
    }
    say(format_args!("stopped ({})", seconds(began.elapsed())));
    ExitCode::SUCCESS
}

/// Whether there is such a process; one that waits to be reaped by its parent does not count.
fn is_running(pid: Pid) -> bool {
    let reapable = std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    kill(pid, None).is_ok() && !reapable
}
