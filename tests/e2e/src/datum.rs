//! `datum up` as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use test_support::Caller;

use crate::processes::Process;

/// Longest wait for a start or a stop: far above what the slowest machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// What a user's shell would give that matters here. Everything else is left out, so that no setting of the machine's own
/// changes what is tested.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "DATUM_POSTGRES_BIN"];

/// What `datum up` prints when everything answers.
const READY: &str = "Datum is ready: ";

/// A running system. Dropping it stops it as Ctrl-C does, and by force when that takes too long.
#[derive(Debug)]
pub struct Datum {
    program: &'static str,
    child: Child,
    process: Process,
    output: Output,
    base_url: String,
    workplace: Arc<TempDir>,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// Everything that it printed, on both outputs.
    pub output: String,
}

/// One task, as `datum status` shows it.
#[derive(Debug, Clone)]
pub struct Task {
    /// `auth`, `actor` or `document`.
    pub service: String,
    /// From 1.
    pub number: u64,
    /// `healthy` when the balancer sends it requests.
    pub health: String,
    /// How often it was started again after a death.
    pub restarts: u64,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    /// Its process.
    pub process: Option<Process>,
}

impl Datum {
    /// Starts `program up` with further arguments, on a free port unless they name one, in a temporary folder of its own, and waits until it says
    /// that it is ready.
    ///
    /// # Panics
    /// With everything that it printed, when it ends or does not become ready.
    #[must_use]
    pub fn up(program: &'static str, arguments: &[&str]) -> Self {
        let workplace = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        Self::up_in(program, arguments, workplace)
    }

    /// The same in a given folder, where an earlier one may have left its state.
    #[must_use]
    pub fn up_in(program: &'static str, arguments: &[&str], workplace: Arc<TempDir>) -> Self {
        let (child, output, ready) = spawn(program, arguments, workplace.path());
        let process = Process::of(child.id()).expect("a process that was just started");
        let mut datum = Self { program, child, process, output, base_url: String::new(), workplace };
        match ready.recv_timeout(PATIENCE) {
            Ok(base_url) => datum.base_url = base_url,
            Err(reason) => panic!("`datum up` is not ready ({reason}):\n{}", datum.output.text()),
        }
        datum
    }

    /// Runs `program up` where it must refuse, and waits for its end.
    ///
    /// # Panics
    /// When it becomes ready, or does not end.
    #[must_use]
    pub fn refused(program: &'static str, arguments: &[&str], workplace: &TempDir) -> Ended {
        let (mut child, output, ready) = spawn(program, arguments, workplace.path());
        let became_ready = ready.recv_timeout(PATIENCE).is_ok();
        if became_ready {
            let _ = child.kill();
        }
        let status = child.wait().expect("the child's end");
        assert!(!became_ready, "`datum up` was not refused:\n{}", output.text());
        Ended { status, output: output.whole() }
    }

    /// The balancer: `http://127.0.0.1:port`, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The balancer's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.base_url.strip_prefix("http://").and_then(|address| address.parse().ok()).expect("http://address:port")
    }

    /// Somebody without a token, with a connection pool of their own, at the balancer.
    #[must_use]
    pub fn anyone(&self) -> Caller {
        Caller::at(&self.base_url)
    }

    /// The process that was started.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// It and everything that it started: tasks, PostgreSQL and its workers, and whatever watches over them.
    #[must_use]
    pub fn all_processes(&self) -> Vec<Process> {
        std::iter::once(self.process.clone()).chain(self.process.descendants()).collect()
    }

    /// The folder that it runs in; state goes to `.datum` there by default.
    #[must_use]
    pub fn workplace(&self) -> Arc<TempDir> {
        Arc::clone(&self.workplace)
    }

    /// Where its state is, unless an option says otherwise.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.workplace.path().join(".datum")
    }

    /// Everything that was printed so far.
    #[must_use]
    pub fn printed(&self) -> String {
        self.output.text()
    }

    /// Runs another command of the same program in the same folder, to its end.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Ended {
        let output = command(self.program, arguments, self.workplace.path()).output().expect("the program runs");
        let both = [output.stdout, output.stderr].concat();
        Ended { status: output.status, output: String::from_utf8_lossy(&both).into_owned() }
    }

    /// What `datum status --json` says.
    #[must_use]
    pub fn status(&self) -> Value {
        let status = self.run(&["status", "--json", "--port", &self.address().port().to_string()]);
        assert!(status.status.success(), "{status:?}");
        serde_json::from_str(&status.output).expect("`datum status --json` prints JSON")
    }

    /// The tasks of a service, by number.
    #[must_use]
    pub fn tasks(&self, service: &str) -> Vec<Task> {
        let status = self.status();
        let rows = status["tasks"].as_array().expect("tasks").iter();
        rows.filter(|row| row["service"] == service).map(Task::from_row).collect()
    }

    /// Sends a signal to the process that was started.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Stops it as Ctrl-C does, and waits for its end.
    #[must_use]
    pub fn stop(self) -> Ended {
        self.signal(Signal::SIGINT);
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn wait(mut self) -> Ended {
        match end_within(&mut self.child, PATIENCE) {
            Some(status) => Ended { status, output: self.output.whole() },
            None => panic!("`datum up` does not end:\n{}", self.output.text()),
        }
    }
}

impl Drop for Datum {
    fn drop(&mut self) {
        self.signal(Signal::SIGINT);
        if end_within(&mut self.child, PATIENCE).is_none() {
            // Its tasks notice.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            eprintln!("--- what `datum up` printed ---\n{}", self.output.text());
        }
    }
}

impl Task {
    fn from_row(row: &Value) -> Self {
        let number = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("no `{name}` in {row}"));
        let text = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {row}")).to_owned();
        Self {
            service: text("service"),
            number: number("number"),
            health: text("health"),
            restarts: number("restarts"),
            port: row["port"].as_u64().and_then(|port| port.try_into().ok()).unwrap_or_default(),
            process: row["pid"].as_u64().and_then(|pid| Process::of(pid.try_into().ok()?)),
        }
    }
}

/// What a child has printed so far, on both outputs.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    text: Arc<Mutex<String>>,
    /// Closed when both outputs have ended.
    readers: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Output {
    /// `readers` is closed when both outputs have ended.
    pub(crate) fn new(readers: mpsc::Receiver<()>) -> Self {
        Self { text: Arc::default(), readers: Arc::new(Mutex::new(readers)) }
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything that a child printed which has ended: its last line may still be on its way through the pipe.
    pub(crate) fn whole(&self) -> String {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = readers.recv_timeout(PATIENCE);
        assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "somebody still holds the child's outputs");
        self.text()
    }

    pub(crate) fn push(&self, line: &str) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(line);
        text.push('\n');
    }
}

pub(crate) fn command(program: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    let inherited = INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.args(arguments).env_clear().envs(inherited).current_dir(folder).stdin(Stdio::null());
    command
}

/// Starts it. The receiver gets the base URL once it is ready, and is closed when standard output ends.
fn spawn(program: &str, arguments: &[&str], folder: &Path) -> (Child, Output, mpsc::Receiver<String>) {
    let port: &[&str] = if arguments.contains(&"--port") { &[] } else { &["--port", "0"] };
    let mut command = command(program, &[&["up"], port, arguments].concat(), folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let ((sender, ready), (alive, readers)) = (mpsc::channel(), mpsc::channel());
    let output = Output::new(readers);
    let printed = output.clone();
    collect(child.stdout.take().expect("piped"), alive.clone(), move |line| {
        printed.push(line);
        if let Some(url) = line.strip_prefix(READY).and_then(|rest| rest.split(' ').next()) {
            let _ = sender.send(url.to_owned());
        }
    });
    let printed = output.clone();
    collect(child.stderr.take().expect("piped"), alive, move |line| printed.push(line));
    (child, output, ready)
}

/// Reads lines in a thread, which holds `alive` until the last one: a pipe that nobody reads would stop the writer.
pub(crate) fn collect(
    from: impl Read + Send + 'static,
    alive: mpsc::Sender<()>,
    mut take: impl FnMut(&str) + Send + 'static,
) {
    thread::spawn(move || {
        BufReader::new(from).lines().map_while(Result::ok).for_each(|line| take(&line));
        drop(alive);
    });
}

pub(crate) fn end_within(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        match child.try_wait().expect("the child's state") {
            Some(status) => return Some(status),
            None if began.elapsed() > patience => return None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}
