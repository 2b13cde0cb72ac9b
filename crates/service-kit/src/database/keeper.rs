//! Keeps the pool in shape: `DB_POOL_MIN` connections open at any time, old and idle ones replaced or closed.
//!
//! A round takes nothing out of the pool that a request could use. Replacements are opened first, as spares, and only
//! then are the old ones closed; when the database is down, old connections are better than none.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::connector::Client;
use super::metrics::{self, Discard};
use super::pool::Inner;

/// Pause between two rounds when nothing asks for one.
const ROUND: Duration = Duration::from_secs(1);

/// Pause between two rounds at least: a server that lets us in and then ends each session must not be stormed.
const GAP: Duration = Duration::from_millis(100);

/// First and longest pause after an attempt to connect has failed.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Tends the pool until there is none.
pub(super) async fn run(pool: Weak<Inner>, attention: Arc<Notify>) {
    let mut pause = Pause::default();
    loop {
        let Some(inner) = pool.upgrade().filter(|inner| !inner.objects.is_closed()) else { return };
        inner.tend(&mut pause).await;
        inner.settled.store(true, Ordering::Relaxed);
        inner.tended.notify_waiters();
        drop(inner);
        tokio::time::sleep(GAP).await;
        let _ = timeout(pause.until_next_round(), attention.notified()).await;
    }
}

/// How long to leave the server alone after a failure: doubling, with jitter, so that not all tasks knock at once.
#[derive(Default)]
struct Pause {
    failed: Option<(Instant, Duration)>,
}

impl Pause {
    fn is_over(&self) -> bool {
        self.failed.is_none_or(|(at, pause)| at.elapsed() >= pause)
    }

    fn failed(&mut self) {
        let pause = self.failed.map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(LONGEST_PAUSE));
        self.failed = Some((Instant::now(), pause.mul_f64(rand::random_range(0.75..=1.0))));
    }

    fn until_next_round(&self) -> Duration {
        self.failed.map_or(ROUND, |(at, pause)| pause.saturating_sub(at.elapsed()).min(ROUND))
    }
}

impl Inner {
    async fn tend(&self, pause: &mut Pause) {
        self.close_lost();
        if let Some((at, _)) = pause.failed
            && self.supply.connected_since(at)
        {
            // A request got in.
            pause.failed = None;
        }
        self.open_missing(pause).await;
        self.close_expired();
        self.close_unneeded();
        metrics::show(&self.status());
    }

    fn close_lost(&self) {
        self.close_idle(usize::MAX, Discard::Broken, |client| client.postgres.is_closed());
    }

    /// Opens what is missing to the minimum, counting those that are about to be replaced as missing.
    async fn open_missing(&self, pause: &mut Pause) {
        if !pause.is_over() {
            return;
        }
        let now = Instant::now();
        let open = self.supply.connector.open_connections();
        let missing = (self.limits.min + self.count_idle(|client| client.is_expired(now))).saturating_sub(open);
        let attempts: Vec<_> = std::iter::from_fn(|| self.supply.free_slot())
            .take(missing)
            .map(|slot| self.supply.add_spare(slot))
            .collect();
        if attempts.is_empty() {
            return;
        }
        let outcomes = futures_util::future::join_all(attempts).await;
        let Some(error) = outcomes.into_iter().find_map(Result::err) else {
            if pause.failed.take().is_some() {
                tracing::info!("the database lets us in again");
            }
            return;
        };
        if pause.failed.is_none() {
            let error = anyhow::Error::from(error);
            tracing::warn!(error = format!("{error:#}"), "no database connection can be opened; trying on");
        }
        pause.failed();
    }

    fn close_expired(&self) {
        let now = Instant::now();
        let spare = self.above_minimum();
        // Without room for a successor beside it, one has to go first.
        let room = if self.limits.min == self.limits.max { spare.max(1) } else { spare };
        let closed = self.close_idle(room, Discard::Lifetime, |client| client.is_expired(now));
        if closed > spare {
            self.attention.notify_one();
        }
    }

    fn close_unneeded(&self) {
        let now = Instant::now();
        let limit = self.limits.idle_timeout;
        self.close_idle(self.above_minimum(), Discard::Idle, |client| now.duration_since(client.idle_since) >= limit);
    }

    fn above_minimum(&self) -> usize {
        self.supply.connector.open_connections().saturating_sub(self.limits.min)
    }

    fn count_idle(&self, counted: impl Fn(&Client) -> bool) -> usize {
        let mut count = self.supply.count_spares(&counted);
        let _ = self.objects.retain(|client, _| {
            count += usize::from(counted(client));
            true
        });
        count
    }

    /// Closes up to `most` of the idle connections that `closed` picks; returns how many.
    fn close_idle(&self, most: usize, why: Discard, closed: impl Fn(&Client) -> bool) -> usize {
        let mut left = most;
        let mut pick = |client: &Client| {
            let picked = left > 0 && closed(client);
            left -= usize::from(picked);
            picked
        };
        let mut clients = self.objects.retain(|client, _| !pick(client)).removed;
        clients.extend(self.supply.take_spares(|client| pick(client)));
        let count = clients.len();
        for client in clients {
            client.discard(why);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_limit() {
        let mut pause = Pause::default();
        assert!(pause.is_over());
        let mut longest = Duration::ZERO;
        for _ in 0..10 {
            pause.failed();
            assert!(!pause.is_over());
            longest = longest.max(pause.failed.expect("failed").1);
        }
        assert!(longest > LONGEST_PAUSE / 2 && longest <= LONGEST_PAUSE, "{longest:?}");
        tokio::time::advance(LONGEST_PAUSE).await;
        assert!(pause.is_over());
    }
}
