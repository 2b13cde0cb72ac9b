//! A stack that runs: its parts, what can be asked of it, and how it stops.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use service_kit::config::Secret;
use time::OffsetDateTime;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::board::Board;
use crate::cognito::CognitoDouble;
use crate::control::{Call, ControlSocket, Reply, Request};
use crate::database::ClaimedRoles;
use crate::error::StackError;
use crate::identity::IdentityStatus;
use crate::logs;
use crate::object_store::ObjectStore;
use crate::observer::{Event, Observer, Step};
use crate::options::StackOptions;
use crate::postgres_keeper::PostgresKeeper;
use crate::registry::Registration;
use crate::service::{Service, TaskId};
use crate::slot::{READY_WITHIN, Slot};
use crate::start;
use crate::state_dir::{self, StateDir};
use crate::status::{StackStatus, TaskStatus};
use crate::targets::LoadBalancer;

/// Between two looks at the sizes of log files.
const ROTATION_PAUSE: Duration = Duration::from_secs(5);
/// The shortest time between two writings of the status file.
const STATUS_PAUSE: Duration = Duration::from_millis(200);

/// What is the same from the start to the end, and what it is known by.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) base_url: String,
    pub(crate) port: u16,
    pub(crate) started_at: OffsetDateTime,
    pub(crate) throttle_off: bool,
    pub(crate) task_cpu_units: Option<u32>,
    pub(crate) provider: IdentityStatus,
    pub(crate) faults: Vec<String>,
}

impl Identity {
    pub(crate) fn status(&self, board: &Board, ready: bool) -> StackStatus {
        StackStatus {
            pid: std::process::id(),
            base_url: self.base_url.clone(),
            port: self.port,
            started_at: self.started_at,
            ready,
            throttle_off: self.throttle_off,
            task_cpu_units: self.task_cpu_units,
            identity: self.provider.clone(),
            faults: self.faults.clone(),
            tasks: board.tasks(),
            postgres: board.postgres(),
        }
    }
}

/// Everything that has been started so far, in the order of starting. What is there can be stopped at any moment.
pub(crate) struct Parts {
    pub(crate) state: StateDir,
    pub(crate) registration: Option<Registration>,
    pub(crate) postgres: Option<PostgresKeeper>,
    /// The roles of a given database's server, which others may have afterwards.
    pub(crate) roles: Option<ClaimedRoles>,
    pub(crate) object_store: Option<ObjectStore>,
    pub(crate) cognito: Option<CognitoDouble>,
    pub(crate) balancer: Option<LoadBalancer>,
    pub(crate) slots: Vec<Arc<Slot>>,
}

impl Parts {
    pub(crate) const fn new(state: StateDir) -> Self {
        Self {
            state,
            registration: None,
            postgres: None,
            roles: None,
            object_store: None,
            cognito: None,
            balancer: None,
            slots: Vec::new(),
        }
    }

    /// Stops everything, outermost first: requests in flight are answered while what they need is still there.
    pub(crate) async fn stop(self, observer: &dyn Observer) {
        if let Some(balancer) = self.balancer {
            observer.observe(Event::Stopping(Step::Balancer, "finishing requests".into()));
            balancer.stop().await;
            observer.observe(Event::Stopped(Step::Balancer));
        }
        if !self.slots.is_empty() {
            observer.observe(Event::Stopping(Step::Tasks, format!("stopping {}", self.slots.len())));
            futures_util::future::join_all(self.slots.iter().map(|slot| slot.stop())).await;
            observer.observe(Event::Stopped(Step::Tasks));
        }
        if let Some(roles) = self.roles {
            roles.release(observer).await;
        }
        if let Some(object_store) = self.object_store {
            object_store.stop().await;
            observer.observe(Event::Stopped(Step::ObjectStore));
        }
        if let Some(cognito) = self.cognito {
            cognito.stop().await;
            observer.observe(Event::Stopped(Step::Identity));
        }
        if let Some(postgres) = self.postgres {
            observer.observe(Event::Stopping(Step::Postgres, "shutting down".into()));
            postgres.stop().await;
            observer.observe(Event::Stopped(Step::Postgres));
        }
        drop(self.registration);
        let path = self.state.path().to_owned();
        if let Err(error) = self.state.close() {
            observer.observe(Event::Notice(format!("cannot remove {}: {error}", path.display())));
        }
    }
}

/// What can be asked of a running stack, shared with the control socket.
pub(crate) struct Operations {
    identity: Identity,
    board: Arc<Board>,
    slots: Vec<Arc<Slot>>,
    /// One replacement at a time: the database has connections for one more process, not for two.
    replacing: Mutex<()>,
    stop_asked: CancellationToken,
}

impl Operations {
    async fn replace(
        &self,
        task: TaskId,
        ready_within: Duration,
        progress: impl Fn(String) + Send + Sync,
    ) -> Result<(), StackError> {
        let slot = self.slots.iter().find(|slot| slot.task == task).ok_or(StackError::NoSuchTask(task))?;
        let _one = if let Ok(one) = self.replacing.try_lock() {
            one
        } else {
            progress("waiting for another replacement to end".to_owned());
            self.replacing.lock().await
        };
        progress(format!("replacing {task}, whose new process has {} s to become ready", ready_within.as_secs()));
        slot.replace(ready_within, progress).await
    }

    async fn restart(
        &self,
        service: Option<Service>,
        ready_within: Duration,
        progress: impl Fn(String) + Send + Sync,
    ) -> Result<(), StackError> {
        let tasks: Vec<TaskId> = self.slots.iter().map(|slot| slot.task).collect();
        for task in tasks.into_iter().filter(|task| service.is_none_or(|service| task.service == service)) {
            self.replace(task, ready_within, &progress).await?;
        }
        Ok(())
    }

    async fn answer(self: Arc<Self>, request: Request, replies: mpsc::Sender<Reply>) {
        // A client that has gone away does not end what it asked for.
        let reply = match request {
            Request::Status => Reply::Status { status: Box::new(self.identity.status(&self.board, true)) },
            Request::Stop => {
                self.stop_asked.cancel();
                Reply::Done
            }
            Request::Restart { service, timeout_seconds } => {
                let ready_within = timeout_seconds.map_or(READY_WITHIN, Duration::from_secs);
                let progress = replies.clone();
                // Whoever reads too slowly misses a line, and holds nothing up.
                let progress = move |text| drop(progress.try_send(Reply::Progress { text }));
                match self.restart(service, ready_within, progress).await {
                    Ok(()) => Reply::Done,
                    Err(error) => Reply::Failed { message: error.to_string() },
                }
            }
        };
        let _ = replies.send(reply).await;
    }
}

/// A stack that runs. [`Stack::stop`] takes it down in order; dropping it kills the tasks at once.
pub struct Stack {
    operations: Arc<Operations>,
    parts: Parts,
    admin_url: Secret,
    observer: Arc<dyn Observer>,
    fatal: mpsc::Receiver<StackError>,
    control: ControlSocket,
    background: Vec<AbortOnDropHandle<()>>,
}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stack").field("base_url", &self.base_url()).finish_non_exhaustive()
    }
}

impl Stack {
    /// Brings everything up and ends when every task gets requests. When it fails, and when `cancel` is cancelled, it
    /// first takes down what it had started.
    ///
    /// # Errors
    /// [`StackError`], each with what to do about it.
    pub async fn start(
        options: StackOptions,
        observer: Arc<dyn Observer>,
        cancel: CancellationToken,
    ) -> Result<Self, StackError> {
        start::start(options, observer, cancel).await
    }

    /// Puts a finished start together.
    pub(crate) fn assemble(
        identity: Identity,
        board: Arc<Board>,
        parts: Parts,
        admin_url: Secret,
        observer: Arc<dyn Observer>,
        fatal: mpsc::Receiver<StackError>,
    ) -> std::io::Result<Self> {
        let (calls, received) = mpsc::channel(4);
        let control = ControlSocket::listen(parts.state.path(), calls)?;
        let operations = Arc::new(Operations {
            identity,
            board,
            slots: parts.slots.clone(),
            replacing: Mutex::new(()),
            stop_asked: CancellationToken::new(),
        });
        let background = vec![
            AbortOnDropHandle::new(tokio::spawn(answer_calls(Arc::clone(&operations), received))),
            AbortOnDropHandle::new(tokio::spawn(keep_status_file(
                Arc::clone(&operations),
                parts.state.path().to_owned(),
            ))),
            AbortOnDropHandle::new(tokio::spawn(rotate_logs(parts.state.logs()))),
        ];
        Ok(Self { operations, parts, admin_url, observer, fatal, control, background })
    }

    /// Where the balancer answers: `http://127.0.0.1:8080`, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.operations.identity.base_url
    }

    /// The state folder.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        self.parts.state.path()
    }

    /// An administrator's URL of the database.
    #[must_use]
    pub const fn admin_url(&self) -> &Secret {
        &self.admin_url
    }

    /// Everything that is known about its processes, now.
    #[must_use]
    pub fn status(&self) -> StackStatus {
        self.operations.identity.status(&self.operations.board, true)
    }

    /// The tasks, service by service.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskStatus> {
        self.operations.board.tasks()
    }

    /// Replaces the process of one task: a new one is started, gets requests once it is healthy, and only then is the old
    /// one deregistered, drained and stopped.
    ///
    /// # Errors
    /// [`StackError::NoSuchTask`], or why the new process does not come up; the old one then stays.
    pub async fn replace_task(&self, task: TaskId) -> Result<(), StackError> {
        self.operations.replace(task, READY_WITHIN, |_| {}).await
    }

    /// Replaces every task, or those of one service, one after the other.
    ///
    /// # Errors
    /// As [`Stack::replace_task`]; the tasks after it are not replaced.
    pub async fn restart(&self, service: Option<Service>) -> Result<(), StackError> {
        self.operations.restart(service, READY_WITHIN, |_| {}).await
    }

    /// Ends when the stack should be stopped: with nothing when that was asked for over the control socket, with the
    /// error when it cannot go on.
    pub async fn ended(&mut self) -> Option<StackError> {
        tokio::select! {
            () = self.operations.stop_asked.cancelled() => None,
            error = self.fatal.recv() => error,
        }
    }

    /// Finishes the requests in flight, and takes everything down.
    pub async fn stop(self) {
        drop(self.control);
        drop(self.background);
        self.parts.stop(&*self.observer).await;
    }
}

async fn answer_calls(operations: Arc<Operations>, mut calls: mpsc::Receiver<Call>) {
    while let Some((request, replies)) = calls.recv().await {
        tokio::spawn(Arc::clone(&operations).answer(request, replies));
    }
}

/// What other processes read where nobody answers the control socket.
async fn keep_status_file(operations: Arc<Operations>, state_dir: PathBuf) {
    loop {
        operations.board.changed().await;
        let status = operations.identity.status(&operations.board, true);
        if let Err(error) = state_dir::write_status(&state_dir, &status) {
            tracing::warn!(%error, "cannot write stack.json");
        }
        // Several changes come together, such as those of a restart of all tasks.
        tokio::time::sleep(STATUS_PAUSE).await;
    }
}

async fn rotate_logs(folder: PathBuf) {
    loop {
        tokio::time::sleep(ROTATION_PAUSE).await;
        let folder = folder.clone();
        let rotated = tokio::task::spawn_blocking(move || {
            for file in std::fs::read_dir(folder)?.flatten() {
                let path = file.path();
                if !path.to_string_lossy().ends_with(".old.log") {
                    logs::rotate(&path, logs::MAX_BYTES)?;
                }
            }
            Ok::<_, std::io::Error>(())
        });
        if let Ok(Err(error)) = rotated.await {
            tracing::warn!(%error, "cannot rotate the logs");
        }
    }
}
