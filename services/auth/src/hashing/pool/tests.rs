use std::sync::mpsc;

use tokio::task::JoinHandle;

use super::*;

const PATIENCE: Duration = Duration::from_mins(1);

fn pool(threads: usize, queue: usize) -> Pool {
    Pool::start(PoolConfig { threads, queue, deadline: PATIENCE, idle: PATIENCE, nice: 0 }).expect("threads")
}

/// A job that runs until it is told to end.
struct Held {
    requester: JoinHandle<Result<(), PoolError>>,
    release: mpsc::Sender<()>,
    started: oneshot::Receiver<()>,
}

impl Held {
    fn submit(pool: &Pool) -> Self {
        let (release, released) = mpsc::channel();
        let (tell, started) = oneshot::channel();
        let pool = pool.clone();
        let requester = tokio::spawn(async move {
            pool.run(move |_| {
                let _ = tell.send(());
                // An error means that the test is over.
                let _ = released.recv();
            })
            .await
        });
        Self { requester, release, started }
    }

    async fn start(pool: &Pool) -> Self {
        let mut held = Self::submit(pool);
        (&mut held.started).await.expect("starts");
        held
    }

    /// Gives the request up, as a client does that closes its connection.
    async fn abandon(&mut self) {
        self.requester.abort();
        assert!((&mut self.requester).await.expect_err("aborted").is_cancelled());
    }

    async fn finish(self) -> Result<(), PoolError> {
        self.release.send(()).expect("still running");
        self.requester.await.expect("no panic")
    }
}

/// Lets other tasks run until `condition` holds.
async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the condition comes true");
}

#[tokio::test]
async fn no_more_jobs_run_than_there_are_threads() {
    let pool = pool(2, 16);
    let jobs: Vec<_> = (0..8).map(|_| Held::submit(&pool)).collect();
    until(|| pool.counters().running() == 2 && pool.queued() == 6).await;
    for job in jobs {
        job.release.send(()).expect("not given up");
        job.requester.await.expect("no panic").expect("runs");
    }
    assert_eq!(pool.counters().started(), 8);
    assert_eq!(pool.counters().most_running(), 2);
}

#[tokio::test]
async fn a_job_that_was_given_up_while_it_waited_never_runs() {
    let pool = pool(1, 16);
    let first = Held::start(&pool).await;
    let mut second = Held::submit(&pool);
    until(|| pool.queued() == 1).await;
    second.abandon().await;
    first.finish().await.expect("runs");
    pool.run(|_| ()).await.expect("runs");
    assert_eq!((pool.counters().started(), pool.counters().skipped()), (2, 1));
}

#[tokio::test]
async fn a_job_that_was_given_up_while_it_ran_keeps_its_thread_until_it_is_done() {
    let pool = pool(1, 16);
    let mut first = Held::start(&pool).await;
    first.abandon().await;
    let second = Held::submit(&pool);
    until(|| pool.queued() == 1).await;
    assert_eq!((pool.counters().running(), pool.counters().started()), (1, 1));
    first.release.send(()).expect("still running");
    second.finish().await.expect("runs");
    assert_eq!(pool.counters().most_running(), 1);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_given_up_requests_hold_no_places() {
    let pool = pool(1, 1);
    let running = Held::start(&pool).await;
    let mut waiting = Held::submit(&pool);
    until(|| pool.queued() == 1).await;
    assert_eq!(pool.run(|_| ()).await, Err(PoolError::Full));
    assert_eq!(pool.counters().shed(), 1);

    waiting.abandon().await;
    let next = Held::submit(&pool);
    until(|| pool.counters().skipped() == 1 && pool.queued() == 1).await;
    running.finish().await.expect("runs");
    next.finish().await.expect("runs");
}

#[tokio::test]
async fn idle_threads_do_not_need_places_in_the_queue() {
    let pool = pool(4, 1);
    // A fifth thread-less job would have to wait; four find threads, though one place is all the queue has.
    until(|| pool.shared.lock().idle_threads == 4).await;
    let jobs: Vec<_> = (0..5).map(|_| Held::submit(&pool)).collect();
    until(|| pool.counters().running() == 4 && pool.queued() == 1).await;
    for job in jobs {
        job.release.send(()).expect("not given up");
        job.requester.await.expect("no panic").expect("runs");
    }
    assert_eq!(pool.counters().shed(), 0);
}

#[tokio::test]
async fn a_job_that_does_not_start_in_time_is_refused_and_never_runs() {
    let config = PoolConfig { threads: 1, queue: 4, deadline: Duration::from_millis(5), idle: PATIENCE, nice: 0 };
    let pool = Pool::start(config).expect("threads");
    // Whether the machine starts even the first in time is not certain.
    let first = loop {
        let mut held = Held::submit(&pool);
        if (&mut held.started).await.is_ok() {
            break held;
        }
    };
    let started = pool.counters().started();
    assert_eq!(pool.run(|_| ()).await, Err(PoolError::Late));
    first.finish().await.expect("a started job may take its time");
    until(|| pool.queued() == 0).await;
    assert_eq!(pool.counters().started(), started);
}

#[tokio::test]
async fn a_panic_ends_its_job_only() {
    let pool = pool(1, 4);
    assert_eq!(pool.run(|_| panic!("a defect")).await, Err::<(), _>(PoolError::Panicked));
    assert_eq!(pool.run(|_| 7).await, Ok(7));
    assert_eq!(pool.counters().running(), 0);
}

#[tokio::test]
async fn memory_is_kept_between_jobs_and_given_back_when_idle() {
    let lend = |arena: &mut Arena| arena.lend(32).len();
    let busy = pool(1, 4);
    busy.run(lend).await.expect("runs");
    busy.run(|_| ()).await.expect("runs");
    until(|| busy.counters().memory_kib() == 32).await;

    let config = PoolConfig { threads: 2, queue: 4, deadline: PATIENCE, idle: Duration::from_millis(1), nice: 0 };
    let idle = Pool::start(config).expect("threads");
    idle.run(lend).await.expect("runs");
    until(|| idle.counters().memory_kib() == 0).await;
    assert_eq!(idle.run(lend).await, Ok(32));
}

#[tokio::test]
async fn the_threads_end_with_the_last_handle() {
    let pool = pool(3, 4);
    let shared = Arc::downgrade(&pool.shared);
    let clone = pool.clone();
    drop(pool);
    assert_eq!(clone.run(|_| 1).await, Ok(1));
    drop(clone);
    until(|| shared.upgrade().is_none()).await;
}
