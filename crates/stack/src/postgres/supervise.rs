//! Keeps the server's life inside ours: however this process ends, PostgreSQL is shut down.
//!
//! A small shell holds one end of a pipe whose other end only we have. The kernel closes ours when this process ends,
//! `kill -9` included; the shell then reads end-of-file and stops PostgreSQL. No signal handler and no unsafe code.

use std::{
    fs::File,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;

use super::{
    account::Account,
    error::{Doing, PostgresError},
};

/// `$1`: folder to remove at the end, or nothing. The rest: the server's command.
///
/// End-of-file asks for a fast shutdown (SIGINT: sessions are ended, everything is written), after 10 s for an immediate
/// one (SIGQUIT), after 10 s more the postmaster is killed. SIGCONT first: a stopped server could not obey. The watcher
/// outlives this shell, so that even its death does not free the server.
const SCRIPT: &str = r#"
exec 3<&0 </dev/null
remove=$1; shift
"$@" 3<&- &
server=$!
(
    read -r _ <&3
    for signal in CONT INT QUIT KILL; do
        kill -"$signal" "$server" 2>/dev/null || break
        [ "$signal" = CONT ] && continue
        tenths=0
        while [ "$tenths" -lt 100 ] && kill -0 "$server" 2>/dev/null; do
            sleep 0.1
            tenths=$((tenths + 1))
        done
    done
) &
watcher=$!
exec 3<&-
wait "$server"
status=$?
kill "$watcher" 2>/dev/null
[ -n "$remove" ] && rm -rf -- "$remove"
exit "$status"
"#;

/// The end of the pipe that keeps the server running; taken out to end it.
type Lifeline = Arc<Mutex<Option<ChildStdin>>>;

/// A running server and the pipe that keeps it running.
#[derive(Debug)]
pub(super) struct Supervised {
    lifeline: Lifeline,
    exited: watch::Receiver<Option<ExitStatus>>,
}

impl Supervised {
    /// Starts the server as `account`, its output appended to `log`.
    pub(super) fn start(
        account: &Account,
        server: &Path,
        cluster: &Path,
        log: &Path,
        remove_when_stopped: Option<&PathBuf>,
    ) -> Result<Self, PostgresError> {
        let open_log = || File::options().create(true).append(true).open(log);
        let output = open_log().doing(|| format!("opening {}", log.display()))?;
        let errors = output.try_clone().doing(|| format!("opening {}", log.display()))?;
        let mut command = account.command("/bin/sh");
        command.args(["-c", SCRIPT, "datum-postgres"]);
        command.arg(remove_when_stopped.map_or(Path::new(""), PathBuf::as_path));
        command.arg(server).arg("-D").arg(cluster);
        // A group of its own: Ctrl-C in the terminal must not stop the database before the tasks have drained.
        command.process_group(0).stdin(Stdio::piped()).stdout(output).stderr(errors);
        let mut child = command.spawn().doing(|| "starting PostgreSQL".to_owned())?;
        let lifeline = Arc::new(Mutex::new(child.stdin.take()));
        let exited = report_exit(child, Arc::clone(&lifeline))?;
        Ok(Self { lifeline, exited })
    }

    /// Ends when the server has ended, with how it ended.
    pub(super) async fn exited(&self) -> ExitStatus {
        let mut exited = self.exited.clone();
        match exited.wait_for(Option::is_some).await {
            Ok(status) => status.unwrap_or_default(),
            // The waiting thread cannot end without a status; were it to, the server is of no use either.
            Err(_) => ExitStatus::default(),
        }
    }

    /// The status, when the server has ended.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        *self.exited.borrow()
    }

    /// Closes the pipe: the shell shuts the server down.
    pub(super) fn release(&self) {
        release(&self.lifeline);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.release();
    }
}

fn release(lifeline: &Lifeline) {
    drop(lifeline.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Waits for the child in a thread, not in a runtime: the server may outlive the runtime that started it.
fn report_exit(mut child: Child, lifeline: Lifeline) -> Result<watch::Receiver<Option<ExitStatus>>, PostgresError> {
    let (report, exited) = watch::channel(None);
    std::thread::Builder::new()
        .name("postgres-exit".to_owned())
        .spawn(move || {
            let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(1 << 8));
            // Were the shell killed alone, its watcher would still be there to stop the server.
            release(&lifeline);
            report.send_replace(Some(status));
        })
        .doing(|| "starting the thread that waits for PostgreSQL".to_owned())?;
    Ok(exited)
}
