//! The open model: requests arrive when the arrival process says so, whatever became of earlier ones.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio_util::task::TaskTracker;

use super::arrivals::{Arrival, ArrivalProcess, Mix};
use super::pacer::Pacer;
use super::worker::{Bench, perform, renew};
use crate::scenario::Arrivals;
use crate::user::{Task, VirtualUser};

/// Arrivals that are handled without a look at answers, when the thread is behind.
const BURST: u32 = 32;

/// What an open model is.
pub(super) struct Open {
    pub(super) rate: f64,
    pub(super) spacing: Arrivals,
    pub(super) mix: Mix,
    /// This thread takes every `threads`-th arrival, beginning with number `thread`: all threads together follow one process.
    pub(super) thread: u64,
    pub(super) threads: u64,
}

/// Virtual users that wait for an arrival; the one that has waited longest is next, so that all take turns and no connection
/// grows old.
type Free = Arc<Mutex<VecDeque<Box<VirtualUser>>>>;

/// Sends what arrives on this thread until the schedule has ended and every answer is there.
pub(super) async fn run(bench: Arc<Bench>, open: Open, users: Vec<(u32, VirtualUser)>) -> io::Result<()> {
    let free: Free = Arc::new(Mutex::new(users.into_iter().map(|(_, user)| Box::new(user)).collect()));
    let in_flight = TaskTracker::new();
    let pacer = Pacer::new()?;
    let mut unwatched = 0;
    let arrivals = ArrivalProcess::new(bench.seed, &bench.schedule, open.rate, open.spacing, open.mix);
    for arrival in arrivals.filter(|arrival| arrival.iteration % open.threads == open.thread) {
        let due = bench.at(arrival.at);
        if due <= Instant::now() && unwatched < BURST {
            unwatched += 1;
        } else {
            unwatched = 0;
            tokio::task::yield_now().await;
            tokio::select! {
                biased;
                () = bench.finish.cancelled() => break,
                waited = pacer.until(due) => waited?,
            }
        }
        let next = free.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match next {
            None => bench.recorder.dropped(Instant::now()),
            Some(user) => drop(in_flight.spawn(serve(Arc::clone(&bench), Arc::clone(&free), user, arrival, due))),
        }
    }
    in_flight.close();
    in_flight.wait().await;
    Ok(())
}

async fn serve(bench: Arc<Bench>, free: Free, mut user: Box<VirtualUser>, arrival: Arrival, due: Instant) {
    bench.recorder.activate();
    let mut counted_from = due;
    if user.should_renew(Instant::now()) {
        // It has waited for so long that its token ran out. That is the driver's doing, and no part of the latency.
        let before = Instant::now();
        renew(&bench, &mut user).await;
        counted_from += before.elapsed();
    }
    let task = Task { endpoint: arrival.endpoint, iteration: arrival.iteration, draw: arrival.draw };
    let now = Instant::now();
    bench.recorder.began(now, now.saturating_duration_since(counted_from));
    let exchange = perform(&bench, &mut user, task).await;
    bench.recorder.ended(arrival.endpoint, &exchange, counted_from);
    if user.should_renew(exchange.ended) && !bench.finish.is_cancelled() {
        renew(&bench, &mut user).await;
    }
    bench.recorder.deactivate();
    free.lock().unwrap_or_else(PoisonError::into_inner).push_back(user);
}
