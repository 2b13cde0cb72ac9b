//! The idle connections to one target.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::upstream::Upstream;
use crate::clock::now_ms;

#[allow(clippy::vec_box, reason = "connections come and go; the pointer is moved instead of hyper's whole state")]
type Idle = Vec<Box<Upstream>>;

/// A stack: the connection used last is used next, and those that a burst has left over grow old at the bottom.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
    max: usize,
    /// Well below the 75 s after which a task closes an idle connection: a request must not meet the end of one.
    max_idle_ms: u64,
}

impl Pool {
    pub(super) fn new(max: usize, max_idle: Duration) -> Self {
        let max_idle_ms = u64::try_from(max_idle.as_millis()).unwrap_or(u64::MAX);
        Self { idle: Mutex::new(Vec::new()), max, max_idle_ms }
    }

    /// A connection that can take a request now.
    pub(super) fn take(&self) -> Option<Box<Upstream>> {
        loop {
            // The lock is not held while a connection is looked at or closed.
            let mut upstream = self.lock().pop()?;
            if now_ms().saturating_sub(upstream.idle_since_ms) < self.max_idle_ms && upstream.revive() {
                return Some(upstream);
            }
        }
    }

    pub(super) fn put(&self, mut upstream: Box<Upstream>) {
        upstream.rest(now_ms());
        let mut idle = self.lock();
        if idle.len() < self.max {
            idle.push(upstream);
        }
    }

    /// Closes what has been idle for too long.
    pub(super) fn expire(&self) {
        let now = now_ms();
        let old: Vec<_> = {
            let mut idle = self.lock();
            let young = idle.partition_point(|upstream| now.saturating_sub(upstream.idle_since_ms) >= self.max_idle_ms);
            idle.drain(..young).collect()
        };
        drop(old);
    }

    /// Closes everything.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
