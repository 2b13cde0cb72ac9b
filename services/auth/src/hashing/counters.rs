//! What the hashing threads have done, and are doing: for metrics, and for tests that assert it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters of one pool.
#[derive(Debug, Default)]
pub struct PoolCounters {
    started: AtomicU64,
    skipped: AtomicU64,
    shed: AtomicU64,
    running: AtomicUsize,
    most_running: AtomicUsize,
    memory_kib: AtomicUsize,
}

impl PoolCounters {
    /// Jobs that were started, ever.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::SeqCst)
    }

    /// Jobs thrown away because nobody waited for them any more.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::SeqCst)
    }

    /// Requests refused because the queue was full or the wait too long.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.shed.load(Ordering::SeqCst)
    }

    /// Jobs running now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// The most jobs that ever ran at once.
    #[must_use]
    pub fn most_running(&self) -> usize {
        self.most_running.load(Ordering::SeqCst)
    }

    /// Memory that the threads hold, in KiB.
    #[must_use]
    pub fn memory_kib(&self) -> usize {
        self.memory_kib.load(Ordering::SeqCst)
    }

    pub(super) fn count_shed(&self, reason: &'static str) {
        self.shed.fetch_add(1, Ordering::SeqCst);
        metrics::counter!("auth_hash_shed_total", "reason" => reason).increment(1);
    }

    pub(super) fn count_skipped(&self, count: usize) {
        self.skipped.fetch_add(count as u64, Ordering::SeqCst);
        metrics::counter!("auth_hash_skipped_total").increment(count as u64);
    }

    /// One thread holds `now` KiB where it held `before`.
    pub(super) fn memory_changed(&self, before: usize, now: usize) {
        self.memory_kib.fetch_add(now, Ordering::SeqCst);
        let total = self.memory_kib.fetch_sub(before, Ordering::SeqCst) - before;
        metrics::gauge!("auth_hash_memory_kib").set(as_f64(total));
    }
}

/// Counts a job as running for as long as it lives.
pub(super) struct Running<'p>(&'p PoolCounters);

impl<'p> Running<'p> {
    pub(super) fn start(counters: &'p PoolCounters) -> Self {
        counters.started.fetch_add(1, Ordering::SeqCst);
        let running = counters.running.fetch_add(1, Ordering::SeqCst) + 1;
        counters.most_running.fetch_max(running, Ordering::SeqCst);
        metrics::gauge!("auth_hash_running").set(as_f64(running));
        Self(counters)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let running = self.0.running.fetch_sub(1, Ordering::SeqCst) - 1;
        metrics::gauge!("auth_hash_running").set(as_f64(running));
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of threads, jobs and KiB are small")]
pub(super) fn as_f64(count: usize) -> f64 {
    count as f64
}
