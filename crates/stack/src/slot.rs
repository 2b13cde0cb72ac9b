//! One task's place: a process is kept running in it, restarted when it dies, and replaced on request.
//!
//! The order is ECS's: a new process gets requests when it is ready and the balancer finds it healthy; an old one is
//! deregistered, finishes its requests, and only then is told to stop. A dead one is deregistered at once.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use service_kit::config::EXIT_USAGE;
use tokio::sync::{mpsc, oneshot, watch};
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

/// How long a new process may take until the balancer sends it requests, where nobody says otherwise; ECS'
/// `healthCheckGracePeriodSeconds` is meant for the same. A task that died and was started again is waited for without end:
/// what it waits for (a database) may come back.
pub const READY_WITHIN: Duration = Duration::from_mins(1);
/// After how long a start tells what a first process waits for. Not more often: every task has something to say.
const STILL_WAITING: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// Between two words to whoever waits for a replacement.
const REPORT_PAUSE: Duration = Duration::from_secs(2);
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

/// Somebody wants another process in the slot, and waits for it.
struct Replacement {
    reply_to: ReplyTo,
    deadline: Instant,
    /// What is being waited for, in words.
    waiting_for: watch::Sender<String>,
}

/// The handle of one slot.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) task: TaskId,
    replacements: mpsc::Sender<Replacement>,
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

    /// Starts a new process, waits until the balancer sends it requests, which it must within `ready_within`, and retires the
    /// old one. While that takes its time, `report` is told what it waits for.
    pub(crate) async fn replace(&self, ready_within: Duration, report: impl Fn(String)) -> Result<(), StackError> {
        let began = Instant::now();
        let (reply_to, mut reply) = oneshot::channel();
        let waiting_for = watch::Sender::new("the new process has not been started yet".to_owned());
        let said = waiting_for.subscribe();
        let replacement = Replacement { reply_to, deadline: began + ready_within, waiting_for };
        if self.replacements.send(replacement).await.is_err() {
            return Err(StackError::Interrupted);
        }
        let mut tick = tokio::time::interval_at(began + REPORT_PAUSE, REPORT_PAUSE);
        loop {
            tokio::select! {
                biased;
                _ = tick.tick() => {
                    report(format!("{}: waiting for {} s: {}", self.task, began.elapsed().as_secs(), *said.borrow()));
                }
                outcome = &mut reply => return outcome.unwrap_or(Err(StackError::Interrupted)),
            }
        }
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

/// What became of a process that was not ready yet.
enum Awaited {
    Ready,
    Died(ExitStatus),
    Stopped,
    Late(String),
    Unwanted(Replacement),
}

/// What runs in a slot after a replacement was asked for.
enum Replaced {
    /// The new process, which gets requests.
    By(Process),
    /// The old one goes on as it was: the new one failed.
    Not(Process),
    /// The old one died meanwhile; the new one has its place and is not ready yet.
    ByUnready(Process),
}

struct Keeper {
    task: TaskId,
    targets: Targets,
    surroundings: Surroundings,
    replacements: mpsc::Receiver<Replacement>,
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
            let replaced = match self.await_ready(&mut process).await {
                Awaited::Ready => {
                    self.targets.register(process.port);
                    Replaced::By(process)
                }
                Awaited::Unwanted(replacement) => self.replace(process, replacement).await,
                Awaited::Died(status) => return self.died(&process, status, None),
                Awaited::Stopped => return self.retire(process).await,
                Awaited::Late(reason) => {
                    let last_words = process.last_words();
                    self.discard(process).await;
                    return End::NotReady { reason, last_words };
                }
            };
            process = match replaced {
                Replaced::By(serving) => match self.watch(serving).await {
                    Ok(unready) => unready,
                    Err(end) => return end,
                },
                Replaced::Not(unready) | Replaced::ByUnready(unready) => unready,
            };
        }
    }

    async fn await_ready(&mut self, process: &mut Process) -> Awaited {
        self.show(process, Health::Starting);
        let waiting_for = watch::Sender::default();
        let authority = process.authority();
        let (task, board) = (self.task, Arc::clone(&self.surroundings.board));
        let tell = async {
            let began = Instant::now();
            for after in STILL_WAITING {
                tokio::time::sleep_until(began + after).await;
                let seconds = after.as_secs();
                notice(&board, task, &format!("is not ready after {seconds} s: {}", *waiting_for.borrow()));
            }
            std::future::pending::<Awaited>().await
        };
        tokio::select! {
            status = process.exited() => Awaited::Died(status),
            never = tell, if self.first.is_some() => never,
            () = self.stop.cancelled() => Awaited::Stopped,
            () = until_ready(&authority, &waiting_for) => Awaited::Ready,
            Some(replacement) = self.replacements.recv() => Awaited::Unwanted(replacement),
            () = tokio::time::sleep(READY_WITHIN), if self.first.is_some() => Awaited::Late(waiting_for.borrow().clone()),
        }
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
                Some(replacement) = self.replacements.recv() => match self.replace(process, replacement).await {
                    Replaced::By(new) => {
                        process = new;
                        healthy_since = Some(Instant::now());
                    }
                    Replaced::Not(old) => process = old,
                    Replaced::ByUnready(new) => return Ok(new),
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Brings a new process up beside `old` and retires `old`, which may be unready itself.
    async fn replace(&mut self, old: Process, replacement: Replacement) -> Replaced {
        let Replacement { reply_to, deadline, waiting_for } = replacement;
        let mut new = match self.surroundings.launcher.start(self.task, None) {
            Ok(new) => new,
            Err(error) => {
                let _ = reply_to.send(Err(error));
                return Replaced::Not(old);
            }
        };
        let mut old = Some(old);
        let requests = until_requests(self.targets.clone(), new.authority(), new.port, &waiting_for);
        tokio::pin!(requests);
        let failure = loop {
            tokio::select! {
                status = new.exited() => break Some(format!("it ended ({status})")),
                () = &mut requests => break None,
                () = tokio::time::sleep_until(deadline) => break Some(waiting_for.borrow().clone()),
                () = self.stop.cancelled() => break Some("the stack is stopping".to_owned()),
                status = exited(&mut old) => {
                    if let Some(old) = old.take() {
                        self.died(&old, status, None);
                    }
                    self.notice(&format!("ended ({status}) while it was being replaced"));
                    self.update(|row| row.restarts += 1);
                    self.show(&new, Health::Starting);
                }
            }
        };
        let Some(reason) = failure else {
            self.show(&new, Health::Healthy);
            let Some(old) = old else {
                let _ = reply_to.send(Ok(()));
                return Replaced::By(new);
            };
            waiting_for.send_replace("the old process finishes its requests".to_owned());
            // Beside the care for the new one: a long upload may keep the old one for its whole deregistration delay.
            let (targets, launcher) = (self.targets.clone(), Arc::clone(&self.surroundings.launcher));
            self.retiring.spawn(async move {
                let_go(&targets, &launcher, old).await;
                let _ = reply_to.send(Ok(()));
            });
            return Replaced::By(new);
        };
        let error = StackError::NotReplaced {
            task: self.task,
            seconds: new.started.elapsed().as_secs(),
            reason,
            output: new.last_words(),
            old_stays: old.is_some(),
        };
        let outcome = match old {
            Some(old) => {
                self.discard(new).await;
                Replaced::Not(old)
            }
            // Nothing else is left: it is cared for as any process that was started again.
            None => Replaced::ByUnready(new),
        };
        let _ = reply_to.send(Err(error));
        outcome
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
        notice(&self.surroundings.board, self.task, what);
    }
}

fn notice(board: &Board, task: TaskId, what: &str) {
    tracing::warn!(%task, "{what}");
    board.notice(format!("{task} {what}"));
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

/// Ends when a process has ended; never where there is none.
async fn exited(process: &mut Option<Process>) -> ExitStatus {
    match process {
        Some(process) => process.exited().await,
        None => std::future::pending().await,
    }
}

/// Ends when the balancer sends the process requests.
async fn until_requests(targets: Targets, authority: String, port: u16, waiting_for: &watch::Sender<String>) {
    until_ready(&authority, waiting_for).await;
    targets.register(port);
    waiting_for.send_replace("the balancer does not find it healthy".to_owned());
    while targets.health(port) != Health::Healthy {
        tokio::time::sleep(HEALTH_PAUSE_NEW).await;
    }
}

/// Asks until the answer is 200; `waiting_for` holds what the last other answer said.
async fn until_ready(authority: &str, waiting_for: &watch::Sender<String>) {
    let mut pause = READY_PAUSE;
    loop {
        let reason = match probe::get(authority, "/ready", READY_TIMEOUT).await {
            Ok(answer) if answer.status == StatusCode::OK => return,
            Ok(answer) => format!("/ready says {}: {}", answer.status, detail(&answer.body)),
            Err(error) => error,
        };
        waiting_for.send_replace(reason);
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(READY_PAUSE_MAX);
    }
}

/// The sentence of a problem (RFC 9457) without its full stop, else all of it.
fn detail(body: &str) -> String {
    let problem = serde_json::from_str::<serde_json::Value>(body).ok();
    let detail = problem.as_ref().and_then(|problem| problem.get("detail")?.as_str());
    detail.map_or(body, |detail| detail.trim_end_matches('.')).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_problem_only_its_sentence_is_said() {
        assert_eq!(
            detail(r#"{"code":"not_ready","detail":"Not ready: database: no connection."}"#),
            "Not ready: database: no connection"
        );
        for other in ["nginx says no\n", "{\"code\":1}", "{\"detail\":1}", ""] {
            assert_eq!(detail(other), other.trim());
        }
    }
}
