//! A fixed set of threads that hash, each with memory of its own, behind one bounded queue.
//!
//! The threads *are* the permits: at most one job runs on each, whatever becomes of the request that asked for it. A job whose
//! requester is gone, or whose deadline has passed, is thrown away unrun. Memory is reused from job to job (touching fresh pages
//! costs as much as hashing) and given back when the thread has been idle for a while.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use service_kit::stages::{self, Stage};
use tokio::sync::oneshot;

use super::arena::Arena;
use super::counters::{PoolCounters, Running, as_f64};

/// Sizes of a pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolConfig {
    /// Threads, hence jobs that run at once.
    pub threads: usize,
    /// Jobs that may wait.
    pub queue: usize,
    /// How long a job may wait for its start.
    pub deadline: Duration,
    /// A thread that had nothing to do for this long gives its memory back.
    pub idle: Duration,
    /// Niceness of the threads, 0 to 19.
    pub nice: i32,
}

/// Why a job has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The queue is full of jobs whose requesters are still waiting.
    #[error("the queue is full")]
    Full,
    /// The job did not start in time.
    #[error("the job waited too long")]
    Late,
    /// The job panicked.
    #[error("the job panicked")]
    Panicked,
}

/// A pool; clones share it, and its threads end when the last is dropped.
#[derive(Clone)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    _closer: Arc<Closer>,
}

impl Pool {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(super) fn start(config: PoolConfig) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            config,
            queue: Mutex::default(),
            changed: Condvar::new(),
            counters: PoolCounters::default(),
        });
        // Made first: if a thread is refused, those that were started must end.
        let closer = Arc::new(Closer(shared.clone()));
        for index in 0..config.threads {
            let shared = shared.clone();
            thread::Builder::new().name(format!("hash-{index}")).spawn(move || work(&shared))?;
        }
        metrics::gauge!("auth_hash_threads").set(as_f64(config.threads));
        Ok(Self { shared, _closer: closer })
    }

    /// Runs a job on one of the threads. Its wait is stage `admission`, its run stage `hash`.
    ///
    /// # Errors
    /// When there is no room, no start in time, or the job panics.
    pub(super) async fn run<T, F>(&self, job: F) -> Result<T, PoolError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Arena) -> T + Send + 'static,
    {
        let deadline = self.deadline();
        let enqueued = Instant::now();
        stages::delayed(Stage::Admission).await;
        // A slow hash is slow on its thread, and others wait for it.
        let slower = stages::take_delay(Stage::Hash);
        let (begin, start) = oneshot::channel();
        let (finish, result) = oneshot::channel();
        let work = Box::new(move |arena: &mut Arena| -> Deliver {
            if let Some(delay) = slower {
                thread::sleep(delay);
            }
            let output = job(arena);
            // A requester that went away in the meantime wants no result.
            Box::new(move || drop(finish.send(output)))
        });
        self.shared.push(Job { begin, deadline: enqueued + deadline, work })?;

        let started = tokio::time::timeout(deadline, start).await;
        let waited = enqueued.elapsed();
        stages::record(Stage::Admission, waited);
        metrics::histogram!("auth_hash_wait_seconds").record(waited);
        // A sender dropped by a thread is the deadline, seen from the other side.
        if !matches!(started, Ok(Ok(()))) {
            self.shared.counters.count_shed("late");
            return Err(PoolError::Late);
        }
        stages::timed(Stage::Hash, result).await.map_err(|_| PoolError::Panicked)
    }

    /// How long a job may wait for its start.
    pub(super) fn deadline(&self) -> Duration {
        self.shared.config.deadline
    }

    /// What the pool has done so far.
    pub(super) fn counters(&self) -> &PoolCounters {
        &self.shared.counters
    }

    /// Jobs in the queue that somebody waits for.
    pub(super) fn waiting(&self) -> usize {
        self.shared.lock().jobs.iter().filter(|job| !job.begin.is_closed()).count()
    }

    /// Jobs in the queue, those that nobody waits for any more included.
    #[cfg(test)]
    fn queued(&self) -> usize {
        self.shared.lock().jobs.len()
    }
}

/// Hands a job's result over; called when the thread is free again, so that whoever has a result sees it so.
type Deliver = Box<dyn FnOnce()>;

struct Job {
    /// Told when the job starts; closed when the requester is gone.
    begin: oneshot::Sender<()>,
    deadline: Instant,
    work: Box<dyn FnOnce(&mut Arena) -> Deliver + Send>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job. Each takes one at once, so that it takes no place in the queue.
    idle_threads: usize,
    closed: bool,
}

struct Shared {
    config: PoolConfig,
    queue: Mutex<Queue>,
    changed: Condvar,
    counters: PoolCounters,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) -> Result<(), PoolError> {
        let mut queue = self.lock();
        let room = self.config.queue + queue.idle_threads;
        if queue.jobs.len() >= room {
            // Requests that were given up hold no places.
            let before = queue.jobs.len();
            queue.jobs.retain(|job| !job.begin.is_closed());
            self.counters.count_skipped(before - queue.jobs.len());
        }
        if queue.jobs.len() >= room {
            drop(queue);
            self.counters.count_shed("full");
            return Err(PoolError::Full);
        }
        queue.jobs.push_back(job);
        metrics::gauge!("auth_hash_queue_length").set(as_f64(queue.jobs.len()));
        drop(queue);
        self.changed.notify_one();
        Ok(())
    }
}

/// Ends the threads when the last handle is gone.
struct Closer(Arc<Shared>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

/// A thread's life.
fn work(shared: &Shared) {
    lower_priority(shared.config.nice);
    let counters = &shared.counters;
    let mut arena = Arena::default();
    while let Some(job) = next(shared, &mut arena) {
        // Telling the requester is the last check: it may have left a moment ago.
        if job.deadline < Instant::now() || job.begin.send(()).is_err() {
            counters.count_skipped(1);
            continue;
        }
        let (started, held) = (Instant::now(), arena.len());
        let running = Running::start(counters);
        let outcome = catch_unwind(AssertUnwindSafe(|| (job.work)(&mut arena)));
        if outcome.is_err() {
            tracing::error!("a password hash panicked; its thread goes on with new memory");
            arena = Arena::default();
        }
        drop(running);
        counters.memory_changed(held, arena.len());
        metrics::histogram!("auth_hash_seconds").record(started.elapsed());
        if let Ok(deliver) = outcome {
            deliver();
        }
    }
    counters.memory_changed(arena.len(), 0);
}

/// Waits for a job; gives the memory back when none comes for a while. `None` when the pool is gone.
fn next(shared: &Shared, arena: &mut Arena) -> Option<Job> {
    let mut queue = shared.lock();
    loop {
        if queue.closed {
            return None;
        }
        if let Some(job) = queue.jobs.pop_front() {
            metrics::gauge!("auth_hash_queue_length").set(as_f64(queue.jobs.len()));
            return Some(job);
        }
        queue.idle_threads += 1;
        let mut was_idle = false;
        if arena.len() == 0 {
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        } else {
            let idle = shared.config.idle;
            let (woken, timeout) = shared.changed.wait_timeout(queue, idle).unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            was_idle = timeout.timed_out() && queue.jobs.is_empty();
        }
        queue.idle_threads -= 1;
        if was_idle {
            // Wiping takes milliseconds; other threads need the queue meanwhile.
            drop(queue);
            shared.counters.memory_changed(arena.len(), 0);
            arena.release();
            queue = shared.lock();
        }
    }
}

/// Hashing is the one work here that keeps a core busy for long: it yields to everything that answers within a millisecond.
#[cfg(target_os = "linux")]
fn lower_priority(nice: i32) {
    // On Linux a niceness belongs to a thread, and process 0 is the calling one (setpriority(2), "C library/kernel differences").
    if nice > 0
        && let Err(error) = rustix::process::setpriority_process(None, nice)
    {
        tracing::warn!(%error, nice, "hashing threads keep their normal priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority(_: i32) {}

#[cfg(test)]
mod tests;
