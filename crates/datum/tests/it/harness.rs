//! Runs `datum` with a private home for everything that it keeps.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use stack::status::StackStatus;

/// Far beyond what anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// Folders that belong to one test; removed at its end.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Where tests run as root, PostgreSQL runs as somebody who must be able to pass.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["run", "tmp", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// Where the command is run.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Its temporary folder.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// The user's folder for what lives no longer than a process.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// The state folder where none is named.
    pub(crate) fn state(&self) -> PathBuf {
        self.work().join(".datum")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_datum"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("XDG_RUNTIME_DIR", self.folder.path().join("run"))
            .env("TMPDIR", self.temporary())
            .env_remove("DATABASE_URL")
            .env_remove("AUTH_THROTTLE")
            .env_remove("PORT")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        finish(&mut self.command(arguments))
    }

    /// Starts `datum up` with `arguments`, and waits until it says that it is ready.
    pub(crate) fn up(&self, arguments: &[&str]) -> Up {
        let mut up = self.start(arguments);
        up.await_ready();
        up
    }

    /// Starts `datum up` with `arguments`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Up {
        let mut command = self.command(&["up", "--port", "0"]);
        command.args(arguments);
        Self::start_command(command)
    }

    /// Starts a `datum up` with a command that was prepared, and waits until it says that it is ready.
    pub(crate) fn up_command(command: Command) -> Up {
        let mut up = Self::start_command(command);
        up.await_ready();
        up
    }

    /// Starts a command that was prepared.
    pub(crate) fn start_command(mut command: Command) -> Up {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdout = {
            let output = Arc::clone(&output);
            std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| output.lock().unwrap().push(line)))
        };
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        Up { url: String::new(), child, output, readers: Some((stdout, stderr)) }
    }

    /// `datum status --json`
    pub(crate) fn status(&self) -> Value {
        let done = self.run(&["status", "--json"]);
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
    }

    /// The process of a task, while it has one.
    pub(crate) fn pid_of(&self, service: &str, number: u64) -> Option<i32> {
        task(&self.status(), service, number)["pid"].as_i64().map(|pid| i32::try_from(pid).unwrap())
    }
}

/// What a system without tasks writes about itself; its process is this one.
pub(crate) fn status(ready: bool) -> StackStatus {
    StackStatus {
        pid: std::process::id(),
        base_url: "http://127.0.0.1:1".into(),
        port: 1,
        started_at: time::OffsetDateTime::UNIX_EPOCH,
        ready,
        throttle_off: false,
        task_cpu_units: None,
        identity: stack::identity::IdentityStatus::Local,
        faults: Vec::new(),
        tasks: Vec::new(),
        postgres: None,
    }
}

/// A task in a status.
pub(crate) fn task(status: &Value, service: &str, number: u64) -> Value {
    let tasks = status["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["service"] == service && task["number"] == number).unwrap().clone()
}

/// Every process of a status: the tasks' and PostgreSQL's.
pub(crate) fn pids(status: &Value) -> Vec<i32> {
    let tasks = status["tasks"].as_array().unwrap().iter().map(|task| &task["pid"]);
    tasks.chain([&status["postgres"]["pid"]]).map(|pid| i32::try_from(pid.as_i64().unwrap()).unwrap()).collect()
}

pub(crate) fn finish(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    Done {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running `datum up`; killed when it is dropped.
pub(crate) struct Up {
    pub(crate) url: String,
    child: Child,
    output: Arc<Mutex<Vec<String>>>,
    readers: Option<(JoinHandle<()>, JoinHandle<String>)>,
}

impl Up {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// What it has printed so far.
    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap().join("\n")
    }

    /// Waits for a line that begins with `beginning`, and gives it back.
    pub(crate) fn wait_for_line(&self, beginning: &str) -> String {
        let mut found = None;
        eventually(&format!("a line `{beginning}…`"), || {
            found = self.output.lock().unwrap().iter().find(|line| line.starts_with(beginning)).cloned();
            let ended = self.readers.as_ref().is_some_and(|(stdout, _)| stdout.is_finished());
            assert!(found.is_some() || !ended, "it ended: {}", self.output());
            found.is_some()
        });
        found.unwrap()
    }

    fn await_ready(&mut self) {
        let line = self.wait_for_line("Datum is ready: ");
        line.split(' ').nth(3).unwrap().clone_into(&mut self.url);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Waits until it has ended.
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        let mut status = None;
        eventually("its end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let (stdout, stderr) = self.readers.take().unwrap();
        stdout.join().unwrap();
        (status.unwrap(), self.output(), stderr.join().unwrap())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again until it is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether there is such a process, other than one that only waits to be reaped.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    kill(Pid::from_raw(pid), None).is_ok() && !stat.contains(") Z ")
}

/// What is in a folder.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
