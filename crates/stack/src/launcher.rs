//! Starts the processes of tasks, and ends them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::Instant;

use crate::cpu_quota::{Group, Quotas};
use crate::environment::{self, Chosen, Wiring};
use crate::error::StackError;
use crate::logs;
use crate::options::Executable;
use crate::ports;
use crate::service::TaskId;
use crate::state_dir;

/// What a task may take to end after SIGTERM before it is killed: ECS' default `stopTimeout`.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// How many of its last lines are quoted when a task fails.
const LAST_WORDS: usize = 12;

/// What all processes of a stack have in common.
#[derive(Debug)]
pub(crate) struct Launcher {
    executable: Program,
    wiring: Wiring,
    chosen: Chosen,
    quotas: Option<Quotas>,
    state_dir: PathBuf,
    ports: Mutex<BTreeSet<u16>>,
}

impl Launcher {
    pub(crate) fn new(
        executable: &Executable,
        wiring: Wiring,
        chosen: Chosen,
        quotas: Option<Quotas>,
        state_dir: PathBuf,
    ) -> Self {
        Self { executable: Program::new(executable), wiring, chosen, quotas, state_dir, ports: Mutex::default() }
    }

    /// The log file of a task.
    pub(crate) fn log_file(&self, task: TaskId) -> PathBuf {
        state_dir::log_file(&self.state_dir, task)
    }

    /// Starts a process for a task, on `port` where that is free, else on another.
    ///
    /// It ends when its standard input does, which the kernel closes when this process is gone, whatever way.
    pub(crate) fn start(&self, task: TaskId, port: Option<u16>) -> Result<Process, StackError> {
        let program = self.executable.path();
        let failed = |source| StackError::Spawn { task, executable: program.clone(), source };
        let port = self.claim_port(port).map_err(failed)?;
        let claim = |result: Result<Process, StackError>| result.inspect_err(|_| self.release_port(port));
        let quota = self.quotas.as_ref().map(|quotas| quotas.group(task)).transpose();
        let quota = match quota {
            Ok(quota) => quota,
            Err(error) => return claim(Err(error.into())),
        };
        claim(self.spawn(task, port, quota, &program))
    }

    fn spawn(&self, task: TaskId, port: u16, quota: Option<Group>, program: &Path) -> Result<Process, StackError> {
        let failed = |source| StackError::Spawn { task, executable: program.to_owned(), source };
        let log = self.log_file(task);
        let log_offset = logs::length(&log);
        let output =
            logs::open(&log).map_err(|source| StackError::State { action: "write", path: log.clone(), source })?;
        let errors = output.try_clone().map_err(failed)?;
        let procs = quota.as_ref().map(Group::procs);
        let mut command = Command::new(program);
        command
            .arg0("datum")
            .args(["task", task.service.name()])
            .env_clear()
            .envs(environment::of_task(&self.wiring, &self.chosen, task, port, procs.as_deref()))
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C in the terminal is for the stack, which stops its tasks in order.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        Ok(Process {
            task,
            pid: child.id().unwrap_or_default(),
            port,
            started: Instant::now(),
            lifeline: child.stdin.take(),
            child,
            _quota: quota,
            log,
            log_offset,
        })
    }

    fn claim_port(&self, wanted: Option<u16>) -> std::io::Result<u16> {
        let mut taken = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let port = match wanted {
            Some(port) if ports::is_free(port) && !taken.contains(&port) => port,
            _ => ports::free_port(&taken)?,
        };
        taken.insert(port);
        Ok(port)
    }

    /// Gives the port of an ended process back.
    pub(crate) fn release_port(&self, port: u16) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).remove(&port);
    }
}

/// The program that runs tasks.
#[derive(Debug)]
enum Program {
    /// This program: its file when the stack started, and which file that was.
    Current {
        path: PathBuf,
        identity: Option<(u64, u64)>,
    },
    At(PathBuf),
}

/// The running program's own file, also after it was unlinked. Linux only.
const OWN_IMAGE: &str = "/proc/self/exe";

impl Program {
    fn new(executable: &Executable) -> Self {
        match executable {
            Executable::At(path) => Self::At(path.clone()),
            Executable::Current => Self::Current {
                path: std::env::current_exe().unwrap_or_else(|_| OWN_IMAGE.into()),
                identity: identity(Path::new(OWN_IMAGE)),
            },
        }
    }

    /// What to execute. After a rebuild under a running stack, its tasks go on being what they were.
    fn path(&self) -> PathBuf {
        match self {
            Self::At(path) => path.clone(),
            Self::Current { path, identity: own } if own.is_none() || identity(path) == *own => path.clone(),
            Self::Current { .. } => OWN_IMAGE.into(),
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// One running process of a task. Dropping it kills it; [`Process::stop`] asks first.
#[derive(Debug)]
pub(crate) struct Process {
    task: TaskId,
    pub(crate) pid: u32,
    pub(crate) port: u16,
    pub(crate) started: Instant,
    child: Child,
    #[allow(dead_code, reason = "held, not used: the process ends when it is closed")]
    lifeline: Option<ChildStdin>,
    log: PathBuf,
    log_offset: u64,
    /// After the child: a group can be removed when nothing is in it.
    _quota: Option<Group>,
}

impl Process {
    /// Ends when the process has ended.
    pub(crate) async fn exited(&mut self) -> ExitStatus {
        // An error would mean that somebody else has reaped it: gone as well.
        self.child.wait().await.unwrap_or_default()
    }

    /// Where `/ready` is.
    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The last lines this very process wrote.
    pub(crate) fn last_words(&self) -> String {
        logs::last_words(&self.log, self.log_offset, LAST_WORDS)
    }

    /// SIGTERM, and SIGKILL to its whole group when it has not ended after `patience`.
    pub(crate) async fn stop(mut self, patience: Duration) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        // A stopped process (SIGSTOP) could not obey.
        self.signal(Signal::SIGCONT);
        if let Ok(status) = tokio::time::timeout(patience, self.exited()).await {
            return status;
        }
        tracing::warn!(task = %self.task, "does not end: killed");
        self.kill();
        self.exited().await
    }

    fn signal(&self, signal: Signal) {
        // `id` is none once the process was reaped: its number may be somebody else's by then.
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// SIGKILL to its whole group.
    pub(crate) fn kill(&self) {
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// Lets go of the lifeline without ending the process: what the death of the stack looks like to it.
    #[cfg(test)]
    fn cut_lifeline(&mut self) {
        self.lifeline = None;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    use service_kit::config::Secret;

    use super::*;
    use crate::environment::{ObjectStoreAccess, Variables};
    use crate::service::Service;

    const TASK: TaskId = TaskId::new(Service::Actor, 1);

    /// A launcher whose program is a shell script.
    fn launcher(script: &str) -> (tempfile::TempDir, Launcher) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("logs")).expect("made");
        let program = folder.path().join("program");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
        let wiring = Wiring {
            base_url: "http://127.0.0.1:1".into(),
            database_urls: std::collections::BTreeMap::default(),
            object_store: ObjectStoreAccess {
                endpoint: String::new(),
                bucket: String::new(),
                access_key_id: String::new(),
                secret_access_key: Secret::new(String::new()),
            },
            identity: crate::identity::IdentityWiring::Local,
            signing_key: PathBuf::new(),
            task_cpu: None,
        };
        let chosen = Chosen::new(&Variables::new(), &Variables::new()).expect("valid");
        let launcher = Launcher::new(&Executable::At(program), wiring, chosen, None, folder.path().to_owned());
        (folder, launcher)
    }

    #[tokio::test]
    async fn arguments_environment_and_output_are_the_tasks() {
        let (_folder, launcher) = launcher("echo \"$1 $2 on $PORT\"; echo oops >&2; env | grep -c ^HOME=; exit 64");
        let mut process = launcher.start(TASK, None).expect("started");
        assert_eq!(process.exited().await.code(), Some(64));
        assert_eq!(process.last_words(), format!("task actor on {}\noops\n0", process.port));
    }

    #[tokio::test]
    async fn a_task_ends_with_its_lifeline() {
        let (_folder, launcher) = launcher("cat >/dev/null; exit 7");
        let mut process = launcher.start(TASK, None).expect("started");
        process.cut_lifeline();
        assert_eq!(process.exited().await.code(), Some(7));
    }

    #[tokio::test]
    async fn what_does_not_obey_is_killed_with_its_group() {
        let (_folder, launcher) = launcher("trap '' TERM; sleep 1000 & echo $! ; wait; wait");
        let process = launcher.start(TASK, None).expect("started");
        let log = launcher.log_file(TASK);
        let grandchild = loop {
            if let Ok(pid) = fs::read_to_string(&log).unwrap_or_default().trim().parse::<i32>() {
                break Pid::from_raw(pid);
            }
            tokio::task::yield_now().await;
        };
        let status = process.stop(Duration::from_millis(100)).await;
        assert_eq!(status.signal(), Some(9));
        // The kernel has its signal; whoever inherits it may not have reaped it yet.
        let is_gone = || {
            let state = fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
            kill(grandchild, None).is_err() || state.contains(") Z ") || state.contains(") X ")
        };
        let gone = async {
            while !is_gone() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), gone).await.expect("it has outlived its group");
    }

    #[tokio::test]
    async fn a_port_is_kept_unless_it_is_taken() {
        let (_folder, launcher) = launcher("exit 0");
        let mut first = launcher.start(TASK, None).expect("started");
        first.exited().await;
        assert_ne!(
            launcher.start(TASK, Some(first.port)).expect("started").port,
            first.port,
            "claimed by the first still"
        );
        launcher.release_port(first.port);
        assert_eq!(launcher.start(TASK, Some(first.port)).expect("started").port, first.port);
        launcher.release_port(first.port);
        let _somebody = std::net::TcpListener::bind(("127.0.0.1", first.port)).expect("bound");
        assert_ne!(launcher.start(TASK, Some(first.port)).expect("started").port, first.port);
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let (folder, launcher) = launcher("exit 0");
        fs::remove_file(folder.path().join("program")).expect("removed");
        let error = launcher.start(TASK, None).expect_err("nothing to execute");
        assert!(error.to_string().contains("actor-1") && error.to_string().contains("program"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_own_program_is_executed_even_after_its_file_was_replaced() {
        let current = Program::new(&Executable::Current);
        assert_eq!(current.path(), std::env::current_exe().expect("a path"));
        let replaced = Program::Current { path: "/bin/sh".into(), identity: identity(Path::new(OWN_IMAGE)) };
        assert_eq!(replaced.path(), Path::new(OWN_IMAGE));
    }
}
