//! A thread that sends: a runtime of its own, its share of the virtual users, its own counts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::arrivals::Mix;
use super::closed::{self, Closed};
use super::identities::People;
use super::open::{self, Open};
use super::plan::Plan;
use super::recorder::{Passed, Recorder};
use crate::client::{Target, interrupted};
use crate::scenario::{Endpoint, Model, Schedule};
use crate::user::{Cast, Exchange, Task, VirtualUser};

/// Virtual users of one thread that are set up at once. More would fill the target's queue for hashing before the load.
const SET_UP_AT_ONCE: usize = 16;

/// What a life ends with: an error is a panic of this program's.
pub(super) type Joined = Result<(), JoinError>;

/// What a thread tells.
pub(super) enum Told {
    /// One more virtual user is ready.
    Ready,
    /// One could not be set up; the thread ends.
    NotReady { user: u32, reason: String },
    /// A second has passed.
    Passed(Passed),
    /// Everything has ended.
    Ended { thread: usize, people: People },
    /// The machine refused something.
    Failed { doing: &'static str, source: io::Error },
}

/// What a thread is given.
pub(super) struct Assignment {
    pub(super) thread: usize,
    pub(super) threads: usize,
    pub(super) plan: Arc<Plan>,
    pub(super) target: Target,
    pub(super) cast: Arc<Cast>,
    pub(super) iterations: Arc<AtomicU64>,
    pub(super) tell: UnboundedSender<Told>,
    /// The epoch, once everybody is ready.
    pub(super) start: watch::Receiver<Option<Instant>>,
    /// No new iterations from then on.
    pub(super) finish: CancellationToken,
    /// Nothing is waited for from then on.
    pub(super) cut: CancellationToken,
}

/// What the virtual users of a thread work with.
pub(super) struct Bench {
    pub(super) epoch: Instant,
    pub(super) seed: u64,
    pub(super) schedule: Schedule,
    pub(super) recorder: Recorder,
    pub(super) finish: CancellationToken,
    cut: CancellationToken,
    iterations: Arc<AtomicU64>,
}

impl Bench {
    /// A time of the run as a point in time.
    pub(super) fn at(&self, seconds: f64) -> Instant {
        self.epoch + Duration::from_secs_f64(seconds)
    }

    /// Unique within the run.
    pub(super) fn next_iteration(&self) -> u64 {
        self.iterations.fetch_add(1, Ordering::Relaxed)
    }

    /// Sleeps; false when the run is to finish.
    pub(super) async fn sleep_until(&self, due: Instant) -> bool {
        if due <= Instant::now() {
            return !self.finish.is_cancelled();
        }
        tokio::select! {
            biased;
            () = self.finish.cancelled() => false,
            () = tokio::time::sleep_until(due.into()) => true,
        }
    }
}

/// Sends one request of the mix; given up when everything is.
pub(super) async fn perform(bench: &Bench, user: &mut VirtualUser, task: Task) -> Exchange {
    let (started, person) = (Instant::now(), user.person());
    tokio::select! {
        biased;
        exchange = user.perform(task) => exchange,
        () = bench.cut.cancelled() => {
            Exchange { started, ended: Instant::now(), outcome: Err(interrupted()), person }
        }
    }
}

/// Renews a user's token, outside the mix.
pub(super) async fn renew(bench: &Bench, user: &mut VirtualUser) {
    let exchanges = tokio::select! {
        biased;
        exchanges = user.renew() => exchanges,
        () = bench.cut.cancelled() => return,
    };
    for exchange in &exchanges {
        bench.recorder.set_up(exchange);
    }
}

/// The thread's whole life.
pub(super) fn run(assignment: Assignment) {
    let tell = assignment.tell.clone();
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Told::Failed { doing: "starting a runtime", source })
        .and_then(|runtime| runtime.block_on(work(assignment)));
    if let Err(told) = outcome {
        // Nobody listens only when the run has been given up.
        let _ = tell.send(told);
    }
}

async fn work(assignment: Assignment) -> Result<(), Told> {
    let users = set_up(&assignment).await?;
    let Assignment { thread, threads, plan, cast, iterations, tell, mut start, finish, cut, .. } = assignment;
    let Ok(epoch) = start.wait_for(Option::is_some).await.map(|epoch| epoch.unwrap_or_else(Instant::now)) else {
        return Ok(());
    };
    let (passed, mut passing) = tokio::sync::mpsc::unbounded_channel();
    let people = People::of(cast.dataset.as_ref().map_or(0, |dataset| dataset.users));
    let schedule = plan.scenario.schedule();
    let recorder = Recorder::new(thread, epoch, people, passed);
    let forward = tokio::spawn({
        let tell = tell.clone();
        async move {
            while let Some(passed) = passing.recv().await {
                let _ = tell.send(Told::Passed(passed));
            }
        }
    });
    let ticks = tokio::spawn(tick(recorder.clone(), epoch));
    let bench = Arc::new(Bench { epoch, seed: plan.seed, schedule, recorder, finish, cut, iterations });

    let mix = Mix::new(&plan.scenario.mix);
    match plan.scenario.model {
        Model::Closed { vus, think_time, .. } => {
            let closed = Closed { vus, think_time, mix };
            closed::run(Arc::clone(&bench), closed, users)
                .await
                .map_err(|source| Told::Failed { doing: "sending load", source: source.into() })?;
        }
        Model::Open { arrivals_per_second: rate, arrivals: spacing, .. } => {
            let open = Open { rate, spacing, mix, thread: thread as u64, threads: threads as u64 };
            open::run(Arc::clone(&bench), open, users)
                .await
                .map_err(|source| Told::Failed { doing: "waiting for arrivals", source })?;
        }
    }
    // The schedule's last seconds may be quiet, and they are seconds all the same.
    let end = bench.epoch + bench.schedule.length();
    bench.sleep_until(end).await;
    ticks.abort();
    let seconds = if bench.finish.is_cancelled() { 0 } else { whole_seconds(bench.schedule.length()) };
    let people = bench.recorder.finish(Instant::now(), seconds);
    let _ = ticks.await;
    drop(bench);
    let _ = forward.await;
    let _ = tell.send(Told::Ended { thread, people });
    Ok(())
}

/// Hands on each second when it has passed, even if nothing happens.
async fn tick(recorder: Recorder, epoch: Instant) {
    let mut second = 1;
    loop {
        let due = epoch + Duration::from_secs(second);
        tokio::time::sleep_until(due.into()).await;
        recorder.tick(Instant::now());
        second += 1;
    }
}

fn whole_seconds(length: Duration) -> u32 {
    u32::try_from(length.as_secs()).unwrap_or(u32::MAX)
}

/// This thread's virtual users, connected and logged in.
async fn set_up(assignment: &Assignment) -> Result<Vec<(u32, VirtualUser)>, Told> {
    let Assignment { thread, threads, plan, target, cast, tell, finish, .. } = assignment;
    let scenario = &plan.scenario;
    let all = scenario.virtual_users();
    let needs_account = scenario.mix.iter().any(|entry| entry.endpoint != Endpoint::Register);
    let needs_token = scenario.needs_tokens();
    let share = (*thread..all as usize).step_by(*threads).filter_map(|index| u32::try_from(index).ok());
    let ready = stream::iter(share)
        .map(|index| async move {
            let mut user = VirtualUser::new(Arc::clone(cast), target.clone(), plan.timeouts, index, all);
            let outcome = user.set_up(needs_account, needs_token).await;
            outcome.map(|()| (index, user)).map_err(|reason| Told::NotReady { user: index, reason })
        })
        .buffer_unordered(SET_UP_AT_ONCE)
        .inspect(|outcome| {
            if outcome.is_ok() {
                let _ = tell.send(Told::Ready);
            }
        });
    let all_ready = async {
        let mut users = Vec::new();
        let mut ready = std::pin::pin!(ready);
        while let Some(user) = ready.next().await {
            users.push(user?);
        }
        Ok(users)
    };
    tokio::select! {
        biased;
        // The one who gave the sign knows that there is nothing more to come.
        () = finish.cancelled() => Ok(Vec::new()),
        users = all_ready => users,
    }
}
