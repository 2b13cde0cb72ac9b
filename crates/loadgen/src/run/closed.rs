//! The closed model: each virtual user asks, waits, thinks, and asks again.

use std::sync::Arc;
use std::time::Instant;

use rand::Rng;
use tokio::task::JoinSet;

use super::arrivals::{Mix, exponential, generator};
use super::worker::{Bench, Joined, perform, renew};
use crate::scenario::{Distribution, ThinkTime};
use crate::user::{Task, VirtualUser};

/// What all virtual users of a closed model share.
pub(super) struct Closed {
    pub(super) vus: u32,
    pub(super) think_time: ThinkTime,
    pub(super) mix: Mix,
}

/// Lets the virtual users of this thread live until the schedule wants none of them any more. `users` come with their index.
pub(super) async fn run(bench: Arc<Bench>, closed: Closed, users: Vec<(u32, VirtualUser)>) -> Joined {
    let closed = Arc::new(closed);
    let mut lives = JoinSet::new();
    for (index, user) in users {
        lives.spawn(live(Arc::clone(&bench), Arc::clone(&closed), index, user));
    }
    while let Some(ended) = lives.join_next().await {
        ended?;
    }
    Ok(())
}

async fn live(bench: Arc<Bench>, closed: Arc<Closed>, index: u32, mut user: VirtualUser) {
    // Stream 0 is the arrival process of open models.
    let mut random = generator(bench.seed, 1 + u64::from(index));
    let mut active = false;
    let mut due = bench.epoch;
    loop {
        let seconds = due.max(Instant::now()).duration_since(bench.epoch).as_secs_f64();
        let wanted = bench.schedule.wanted_from(index, closed.vus, seconds);
        if wanted.is_none_or(|from| from > seconds) {
            // Not wanted any more when the next request would be due: until then the user still thinks.
            if active {
                let leaves = due.min(bench.at(bench.schedule.length().as_secs_f64()));
                if !bench.sleep_until(leaves).await {
                    break;
                }
                bench.recorder.deactivate();
                active = false;
            }
            // A later phase may want the user again.
            let Some(from) = wanted else { return };
            due = bench.at(from);
        }
        if !bench.sleep_until(due).await {
            break;
        }
        if !active {
            bench.recorder.activate();
            active = true;
        }
        if user.should_renew(Instant::now()) {
            renew(&bench, &mut user).await;
            due = Instant::now();
        }
        let task =
            Task { endpoint: closed.mix.draw(&mut random), iteration: bench.next_iteration(), draw: random.next_u64() };
        let now = Instant::now();
        bench.recorder.began(now, now.saturating_duration_since(due));
        let exchange = perform(&bench, &mut user, task).await;
        bench.recorder.ended(task.endpoint, &exchange, exchange.started);
        let pause = closed.think_time.mean_seconds
            * match closed.think_time.distribution {
                Distribution::Exponential => exponential(&mut random),
                Distribution::Constant => 1.0,
            };
        due = exchange.ended + std::time::Duration::from_secs_f64(pause);
        if closed.think_time.mean_seconds <= 0.0 {
            // Answers that are there at once must not keep the other users of the thread waiting.
            tokio::task::yield_now().await;
        }
    }
    if active {
        bench.recorder.deactivate();
    }
}
