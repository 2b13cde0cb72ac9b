//! Starts the threads, puts their seconds together, and ends the run.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use envelope::result::{Completion, GeneratorUse, Interval, Phase};
use service_kit::clock::SharedClock;
use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::identities::People;
use super::outcome::{Event, LoadError, Outcome};
use super::plan::Plan;
use super::recorder::{Passed, empty_interval};
use super::usage;
use super::verdict::{Measured, judge};
use super::worker::{self, Assignment, Told};
use crate::client::Target;
use crate::scenario::{Endpoint, Identities, Schedule};
use crate::user::{Cast, Payloads, Requests};

/// After a stop by hand nobody wants to wait long for the last answers.
const DRAIN_AFTER_STOP: Duration = Duration::from_secs(5);
/// Files that a process has open beside its virtual users' connections.
const OTHER_FILES: u64 = 64;
/// Cores for which one sending thread is enough.
const CORES_PER_THREAD: usize = 8;
/// Longest tag: it becomes a part of the local part of addresses (RFC 5321 §4.5.3.1.1: 64 octets at most).
const MAX_TAG_BYTES: usize = 32;

/// Sets up, sends the load, and says what came of it. Whoever receives `events` must keep up; dropping the receiver ends nothing.
///
/// Cancelling `stop` ends the run early: what is in flight has a few seconds to end, and the outcome is valid and marked as
/// interrupted. Cancelled before the load began, it has no phases, and there are no intervals.
///
/// # Errors
/// [`LoadError`]; there is no outcome then, and the intervals that were sent until then are no result.
pub async fn run(
    plan: Plan,
    clock: SharedClock,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
) -> Result<Outcome, LoadError> {
    let target = check(&plan)?;
    let threads = threads(&plan);
    let users = plan.scenario.virtual_users();
    let (tell, told) = mpsc::unbounded_channel();
    let (start, started) = watch::channel(None);
    let (finish, cut) = (CancellationToken::new(), CancellationToken::new());
    // Whatever way this function ends, the threads end.
    let _finish = finish.clone().drop_guard();
    let _cut = cut.clone().drop_guard();

    let cast = Arc::new(cast(&plan, &target));
    let plan = Arc::new(plan);
    let iterations = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::new();
    for number in 0..threads {
        let assignment = Assignment {
            thread: number,
            threads,
            plan: Arc::clone(&plan),
            target: target.clone(),
            cast: Arc::clone(&cast),
            iterations: Arc::clone(&iterations),
            tell: tell.clone(),
            start: started.clone(),
            finish: finish.clone(),
            cut: cut.clone(),
        };
        let handle = thread::Builder::new().name(format!("load-{number}")).spawn(move || worker::run(assignment));
        handles.push(handle.map_err(|source| LoadError::Machine { doing: "starting a thread", source })?);
    }
    drop((tell, started));
    let mut run = Run {
        schedule: plan.scenario.schedule(),
        told,
        events,
        handles,
        pending: BTreeMap::new(),
        next: 0,
        progress: vec![0; threads],
        measured: Measured::of(threads),
        people: People::default(),
    };

    if !run.set_up(users, &stop).await? {
        let now = clock.now();
        return Ok(run.outcome(&plan, now, now, Some(Duration::ZERO)));
    }
    let (epoch, started_at) = (Instant::now(), clock.now());
    start.send_replace(Some(epoch));
    run.tell(Event::Began { at: started_at }).await;
    let stopped_after = run.load(epoch, &plan, &stop, &finish, &cut).await?;
    Ok(run.outcome(&plan, started_at, clock.now(), stopped_after))
}

/// What cannot be known from the scenario alone.
fn check(plan: &Plan) -> Result<Target, LoadError> {
    let refuse = |reason: String| Err(LoadError::Plan(reason));
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if plan.tag.is_empty() || plan.tag.len() > MAX_TAG_BYTES || !plan.tag.bytes().all(is_allowed) {
        return refuse(format!("the tag must be 1 to {MAX_TAG_BYTES} lower-case letters, digits and hyphens"));
    }
    let users = plan.scenario.virtual_users();
    if plan.scenario.identities == Identities::Populated {
        match &plan.dataset {
            None => return refuse(format!("{} needs populated users", plan.scenario.name)),
            Some(dataset) if dataset.users < u64::from(users) => {
                return refuse(format!(
                    "{users} virtual users need as many populated users, to be different people; there are {}",
                    dataset.users
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(available) = usage::raise_open_files(u64::from(users) + OTHER_FILES) {
        return refuse(format!(
            "{users} virtual users need as many open files, and {available} are allowed (ulimit -n)"
        ));
    }
    Target::new(&plan.target, &plan.trust).map_err(|error| LoadError::Plan(error.to_string()))
}

fn threads(plan: &Plan) -> usize {
    let users = plan.scenario.virtual_users() as usize;
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    plan.threads.map_or(cores / CORES_PER_THREAD, NonZero::get).clamp(1, users)
}

fn cast(plan: &Plan, target: &Target) -> Cast {
    let upload = plan.scenario.mix.iter().find(|entry| entry.endpoint == Endpoint::Upload);
    let bytes = upload.and_then(|entry| entry.bytes).unwrap_or(0);
    Cast {
        requests: Requests::new(target),
        payloads: Payloads::new(bytes as usize, plan.seed),
        identities: plan.scenario.identities,
        dataset: plan.dataset.clone(),
        tag: plan.tag.clone(),
    }
}

struct Run {
    schedule: Schedule,
    told: mpsc::UnboundedReceiver<Told>,
    events: mpsc::Sender<Event>,
    handles: Vec<JoinHandle<()>>,
    /// Seconds that not every thread has told yet.
    pending: BTreeMap<u32, Interval>,
    /// The next second to be sent.
    next: u32,
    /// How many seconds each thread has told.
    progress: Vec<u32>,
    measured: Measured,
    people: People,
}

impl Run {
    async fn tell(&self, event: Event) {
        // Whoever does not listen any more still gets the outcome.
        let _ = self.events.send(event).await;
    }

    /// Until every virtual user is ready; false when it was stopped before.
    async fn set_up(&mut self, users: u32, stop: &CancellationToken) -> Result<bool, LoadError> {
        self.tell(Event::SetUp { ready: 0, of: users }).await;
        for ready in 1..=users {
            let told = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(false),
                told = self.told.recv() => told,
            };
            match told {
                Some(Told::Ready) => self.tell(Event::SetUp { ready, of: users }).await,
                Some(Told::NotReady { user, reason }) => return Err(LoadError::SetUp { user, reason }),
                Some(Told::Failed { doing, source }) => return Err(LoadError::Machine { doing, source }),
                Some(Told::Passed(_) | Told::Ended { .. }) | None => return Err(broken()),
            }
        }
        Ok(true)
    }

    /// Until every thread has ended. Seconds until it was stopped, if it was.
    async fn load(
        &mut self,
        epoch: Instant,
        plan: &Plan,
        stop: &CancellationToken,
        finish: &CancellationToken,
        cut: &CancellationToken,
    ) -> Result<Option<Duration>, LoadError> {
        let mut stopped_after = None;
        let mut patience = epoch + self.schedule.length() + plan.timeouts.drain;
        let mut ended = 0;
        while ended < self.handles.len() {
            let told = tokio::select! {
                biased;
                () = stop.cancelled(), if stopped_after.is_none() => {
                    let now = Instant::now();
                    if now < epoch + self.schedule.length() {
                        patience = now + plan.timeouts.drain.min(DRAIN_AFTER_STOP);
                    }
                    stopped_after = Some(now.duration_since(epoch));
                    finish.cancel();
                    continue;
                }
                () = tokio::time::sleep_until(patience.into()), if !cut.is_cancelled() => {
                    cut.cancel();
                    continue;
                }
                told = self.told.recv() => told,
            };
            match told {
                Some(Told::Passed(passed)) => self.passed(passed).await,
                Some(Told::Ended { thread, people }) => {
                    self.people.merge(people);
                    self.progress[thread] = u32::MAX;
                    self.send_complete().await;
                    ended += 1;
                }
                Some(Told::Failed { doing, source }) => return Err(LoadError::Machine { doing, source }),
                Some(Told::Ready | Told::NotReady { .. }) | None => return Err(broken()),
            }
        }
        for handle in self.handles.drain(..) {
            handle.join().map_err(|_| broken())?;
        }
        Ok(stopped_after)
    }

    async fn passed(&mut self, Passed { thread, second, counted }: Passed) {
        if self.schedule.is_measured(second) {
            self.measured.thread_cpu(thread, counted.thread_cpu);
        }
        let interval = self.pending.entry(second).or_insert_with(|| empty_interval(second));
        counted.merge_into(interval);
        self.progress[thread] = second + 1;
        self.send_complete().await;
    }

    /// Sends every second that all threads have told, in order.
    async fn send_complete(&mut self) {
        let told = self.progress.iter().copied().min().unwrap_or(0);
        while self.next < told
            && let Some(interval) = self.pending.remove(&self.next)
        {
            if self.schedule.is_measured(self.next) {
                self.measured.add(&interval);
            }
            self.next += 1;
            self.tell(Event::Interval(Box::new(interval))).await;
        }
    }

    fn outcome(
        self,
        plan: &Plan,
        started_at: OffsetDateTime,
        ended_at: OffsetDateTime,
        stopped_after: Option<Duration>,
    ) -> Outcome {
        let interrupted = stopped_after.filter(|after| *after < self.schedule.length());
        let identities = self.people.distinct();
        let verdict = judge(&self.measured, &plan.scenario, identities);
        let phases = match interrupted {
            Some(after) => until(self.schedule.phases(), after),
            None => self.schedule.phases().to_vec(),
        };
        Outcome {
            completion: if interrupted.is_some() { Completion::Interrupted } else { Completion::Whole },
            started_at,
            ended_at,
            phases,
            identities,
            void: verdict.void,
            warnings: verdict.warnings,
            generator: GeneratorUse {
                cpu_seconds: Some(self.measured.cpu_seconds),
                peak_memory_bytes: usage::peak_memory_bytes(),
                threads: u32::try_from(self.measured.threads.len()).ok(),
            },
        }
    }
}

/// The phases that took place, in whole seconds: the second in which the run was stopped is not measured.
fn until(phases: &[Phase], after: Duration) -> Vec<Phase> {
    let seconds = u32::try_from(after.as_secs()).unwrap_or(u32::MAX);
    let begun = phases.iter().filter(|phase| phase.from_second < seconds);
    begun.map(|phase| Phase { until_second: phase.until_second.min(seconds), ..phase.clone() }).collect()
}

/// A thread ended without a word, which only a panic can cause.
fn broken() -> LoadError {
    let source = std::io::Error::other("a sending thread broke");
    LoadError::Machine { doing: "sending load", source }
}
