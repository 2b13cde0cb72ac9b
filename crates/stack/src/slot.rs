//! One task's place: a process is kept running in it, restarted when it dies, and replaced on request.
//!
//! The order is ECS's: a new process gets requests when it is ready and the balancer finds it healthy; an old one is
//! deregistered, finishes its requests, and only then is told to stop. A dead one is deregistered at once.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use service_kit::config::EXIT_USAGE;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::backoff::Backoff;
use crate::board::{Board, Row};
use crate::error::StackError;
use crate::launcher::{Launcher, Process, STOP_PATIENCE};
use crate::probe;
use crate::service::TaskId;
use crate::status::Health;
use crate::targets::Targets;

/// How long a new process may take until the balancer sends it requests; ECS' `healthCheckGracePeriodSeconds` is meant
/// for the same. A restarted task is waited for without end: what it waits for (a database) may come back.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// How often a task may die while the stack starts. More than once, because somebody may take its port in between.
const FIRST_ATTEMPTS: u32 = 3;
/// Between two questions to a process that is not ready: at first, and at most. It logs each refusal.
const READY_PAUSE: Duration = Duration::from_millis(20);
const READY_PAUSE_MAX: Duration = Duration::from_millis(250);
/// How long one answer of `/ready` may take; it has its own, smaller budget for its checks.
const READY_TIMEOUT: Duration = Duration::from_secs(3);
/// Between two looks at the balancer's opinion of a process.
const HEALTH_PAUSE: Duration = Duration::from_millis(500);
/// The same while somebody waits for it to become good.
const HEALTH_PAUSE_NEW: Duration = Duration::from_millis(10);

/// What all slots share.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) launcher: Arc<Launcher>,
    pub(crate) board: Arc<Board>,
    /// Receives what the stack cannot go on with.
    pub(crate) fatal: mpsc::Sender<StackError>,
}

type ReplyTo = oneshot::Sender<Result<(), StackError>>;

/// The handle of one slot.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) task: TaskId,
    replacements: mpsc::Sender<ReplyTo>,
    stop: CancellationToken,
    running: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Slot {
    /// Starts to keep a process running. The receiver tells when the first one gets requests, or why it never will.
    pub(crate) fn start(
        task: TaskId,
        targets: Targets,
        surroundings: Surroundings,
    ) -> (Self, oneshot::Receiver<Result<(), StackError>>) {
        let (replacements, received) = mpsc::channel(1);
        let (first, ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let keeper = Keeper {
            task,
            targets,
            surroundings,
            replacements: received,
            stop: stop.clone(),
            backoff: Backoff::default(),
            first: Some(first),
            port: None,
            retiring: JoinSet::new(),
        };
        let running = Mutex::new(Some(AbortOnDropHandle::new(tokio::spawn(keeper.run()))));
        (Self { task, replacements, stop, running }, ready)
    }

    /// Starts a new process, waits until the balancer sends it requests, and retires the old one.
    pub(crate) async fn replace(&self) -> Result<(), StackError> {
        let (reply_to, reply) = oneshot::channel();
        if self.replacements.send(reply_to).await.is_err() {
            return Err(StackError::Interrupted);
        }
        reply.await.unwrap_or(Err(StackError::Interrupted))
    }

    /// Deregisters the process and stops it; ends when it has ended.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            let _ = running.await;
        }
    }
}

/// How attending to a process ended.
enum End {
    Stopped,
    Died { status: ExitStatus, healthy_for: Duration, last_words: String },
    NotReady { reason: String, last_words: String },
}

/// Why a process did not become ready.
enum Unready {
    Died(ExitStatus),
    Stopped,
    Late(String),
}

/// What runs in a slot after a replacement was asked for.
enum Replaced {
    /// A process that gets requests: the new one, or the old one when the new one failed.
    By(Process),
    /// The old one died meanwhile; the new one has its place and is not ready yet.
    ByUnready(Process),
}

struct Keeper {
    task: TaskId,
    targets: Targets,
    surroundings: Surroundings,
    replacements: mpsc::Receiver<ReplyTo>,
    stop: CancellationToken,
    backoff: Backoff,
    /// Whoever waits for the first process.
    first: Option<ReplyTo>,
    /// The last process's, which the next one keeps.
    port: Option<u16>,
    /// Replaced processes that finish their requests.
    retiring: JoinSet<()>,
}

impl Keeper {
    async fn run(mut self) {
        if let Err(error) = self.keep().await {
            self.show_stopped();
            self.report(error);
        }
        // Replaced processes may still be finishing their requests.
        while self.retiring.join_next().await.is_some() {}
        self.show_stopped();
    }

    /// Ends when the slot is stopped, or with what another start cannot help.
    async fn keep(&mut self) -> Result<(), StackError> {
        let task = self.task;
        let mut deaths = 0;
        loop {
            let healthy_for = match self.surroundings.launcher.start(task, self.port) {
                Ok(process) => match self.attend(process).await {
                    End::Stopped => return Ok(()),
                    End::NotReady { reason, last_words } => {
                        let seconds = READY_WITHIN.as_secs();
                        return Err(StackError::NotReady { task, seconds, reason, output: last_words });
                    }
                    End::Died { status, last_words, .. } if is_refusal(status) => {
                        return Err(StackError::TaskConfiguration { task, output: last_words });
                    }
                    End::Died { status, healthy_for, last_words } => {
                        deaths += 1;
                        if self.first.is_some() && deaths == FIRST_ATTEMPTS {
                            return Err(StackError::TaskDies { task, deaths, status, output: last_words });
                        }
                        self.notice(&format!("ended ({status})"));
                        healthy_for
                    }
                },
                // Without a first process there is no stack; later, memory or process slots may come back.
                Err(error) if self.first.is_some() => return Err(error),
                Err(error) => {
                    self.notice(&format!("does not start: {error}"));
                    Duration::ZERO
                }
            };
            let wait = self.backoff.after_death(healthy_for);
            self.update(|row| (row.health, row.pid) = (Health::Restarting, None));
            if self.stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return Ok(());
            }
            self.update(|row| row.restarts += 1);
        }
    }

    /// Watches processes of this slot until one dies or the slot is stopped.
    async fn attend(&mut self, mut process: Process) -> End {
        loop {
            match self.await_ready(&mut process).await {
                None => {}
                Some(Unready::Died(status)) => return self.died(&process, status, None),
                Some(Unready::Stopped) => return self.retire(process).await,
                Some(Unready::Late(reason)) => {
                    let last_words = process.last_words();
                    self.discard(process).await;
                    return End::NotReady { reason, last_words };
                }
            }
            self.targets.register(process.port);
            match self.watch(process).await {
                Ok(new) => process = new,
                Err(end) => return end,
            }
        }
    }

    /// Ends with nothing when the process is ready, else with why it never will be.
    async fn await_ready(&mut self, process: &mut Process) -> Option<Unready> {
        self.show(process, Health::Starting);
        let mut reason = String::new();
        let authority = process.authority();
        tokio::select! {
            status = process.exited() => Some(Unready::Died(status)),
            () = self.stop.cancelled() => Some(Unready::Stopped),
            () = until_ready(&authority, &mut reason) => None,
            () = tokio::time::sleep(READY_WITHIN), if self.first.is_some() => Some(Unready::Late(String::new())),
        }
        .map(|unready| if let Unready::Late(_) = unready { Unready::Late(reason) } else { unready })
    }

    /// Watches a process that is registered. A new process that takes its place unready is handed back.
    async fn watch(&mut self, mut process: Process) -> Result<Process, End> {
        let mut healthy_since = None;
        loop {
            let health = self.targets.health(process.port);
            self.update(|row| row.health = health);
            if health == Health::Healthy && healthy_since.is_none() {
                healthy_since = Some(Instant::now());
                if let Some(first) = self.first.take() {
                    let _ = first.send(Ok(()));
                }
            }
            let pause = if healthy_since.is_some() { HEALTH_PAUSE } else { HEALTH_PAUSE_NEW };
            tokio::select! {
                status = process.exited() => return Err(self.died(&process, status, healthy_since)),
                () = self.stop.cancelled() => return Err(self.retire(process).await),
                Some(reply_to) = self.replacements.recv() => match self.replace(process, reply_to).await {
                    Replaced::By(current) => {
                        process = current;
                        healthy_since = Some(Instant::now());
                    }
                    Replaced::ByUnready(new) => return Ok(new),
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Brings a new process up beside `old` and retires `old`.
    async fn replace(&mut self, mut old: Process, reply_to: ReplyTo) -> Replaced {
        let mut new = match self.surroundings.launcher.start(self.task, None) {
            Ok(new) => new,
            Err(error) => {
                let _ = reply_to.send(Err(error));
                return Replaced::By(old);
            }
        };
        let mut reason = String::new();
        let (authority, port) = (new.authority(), new.port);
        let failure = tokio::select! {
            status = new.exited() => Some(format!("it ended ({status})")),
            () = self.until_requests(&authority, port, &mut reason) => None,
            () = tokio::time::sleep(READY_WITHIN) => Some(String::new()),
            () = self.stop.cancelled() => Some("the stack is stopping".to_owned()),
            status = old.exited() => {
                self.died(&old, status, None);
                self.notice(&format!("ended ({status}) while it was being replaced"));
                self.update(|row| row.restarts += 1);
                let _ = reply_to.send(Ok(()));
                return Replaced::ByUnready(new);
            }
        };
        if let Some(failure) = failure {
            let error = StackError::NotReady {
                task: self.task,
                seconds: new.started.elapsed().as_secs(),
                reason: if failure.is_empty() { reason } else { failure },
                output: new.last_words(),
            };
            self.discard(new).await;
            let _ = reply_to.send(Err(error));
            return Replaced::By(old);
        }
        self.show(&new, Health::Healthy);
        // Beside the care for the new one: a long upload may keep the old one for its whole deregistration delay.
        let (targets, launcher) = (self.targets.clone(), Arc::clone(&self.surroundings.launcher));
        self.retiring.spawn(async move {
            let_go(&targets, &launcher, old).await;
            let _ = reply_to.send(Ok(()));
        });
        Replaced::By(new)
    }

    async fn until_requests(&self, authority: &str, port: u16, reason: &mut String) {
        until_ready(authority, reason).await;
        self.targets.register(port);
        "the balancer does not find it healthy".clone_into(reason);
        while self.targets.health(port) != Health::Healthy {
            tokio::time::sleep(HEALTH_PAUSE_NEW).await;
        }
    }

    /// Removes a process that never was the slot's.
    async fn discard(&self, process: Process) {
        let port = process.port;
        self.targets.remove(port);
        process.stop(STOP_PATIENCE).await;
        self.surroundings.launcher.release_port(port);
    }

    async fn retire(&self, process: Process) -> End {
        self.update(|row| row.health = Health::Draining);
        let_go(&self.targets, &self.surroundings.launcher, process).await;
        End::Stopped
    }

    fn died(&self, process: &Process, status: ExitStatus, healthy_since: Option<Instant>) -> End {
        self.targets.remove(process.port);
        self.surroundings.launcher.release_port(process.port);
        let healthy_for = healthy_since.map(|since| since.elapsed()).unwrap_or_default();
        End::Died { status, healthy_for, last_words: process.last_words() }
    }

    fn report(&mut self, error: StackError) {
        match self.first.take() {
            Some(first) => drop(first.send(Err(error))),
            // The first fatal error ends the stack; a second one adds nothing.
            None => drop(self.surroundings.fatal.try_send(error)),
        }
    }

    fn show(&mut self, process: &Process, health: Health) {
        self.port = Some(process.port);
        self.update(|row| {
            row.health = health;
            row.port = Some(process.port);
            row.pid = Some(process.pid);
            row.started = Some(process.started);
        });
    }

    fn show_stopped(&self) {
        self.update(|row| (row.health, row.pid) = (Health::Stopped, None));
    }

    fn update(&self, change: impl FnOnce(&mut Row)) {
        self.surroundings.board.update(self.task, change);
    }

    fn notice(&self, what: &str) {
        tracing::warn!(task = %self.task, "{what}");
        self.surroundings.board.notice(format!("{} {what}", self.task));
    }
}

/// Lets a process finish its requests, and stops it.
async fn let_go(targets: &Targets, launcher: &Launcher, process: Process) {
    let port = process.port;
    targets.deregister(port).await;
    process.stop(STOP_PATIENCE).await;
    launcher.release_port(port);
}

fn is_refusal(status: ExitStatus) -> bool {
    status.code() == Some(i32::from(EXIT_USAGE))
}

/// Asks until the answer is 200; `reason` holds the last other answer.
async fn until_ready(authority: &str, reason: &mut String) {
    let mut pause = READY_PAUSE;
    loop {
        match probe::get(authority, "/ready", READY_TIMEOUT).await {
            Ok(answer) if answer.status == StatusCode::OK => return,
            Ok(answer) => *reason = format!("/ready says {}: {}", answer.status, answer.body.trim()),
            Err(error) => *reason = error,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(READY_PAUSE_MAX);
    }
}
