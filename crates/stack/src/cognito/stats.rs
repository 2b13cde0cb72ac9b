//! What the double has seen, for tests and for whoever looks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::operation::Operation;

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Connections that were accepted.
    pub connections: u64,
    /// Fetches of the key set.
    pub key_sets: u64,
    /// Users there are.
    pub users: u64,
    /// By call; calls that were never made are not there.
    pub calls: BTreeMap<String, CallStats>,
}

/// Of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStats {
    /// How often it was made.
    pub requests: u64,
    /// How often it succeeded.
    pub succeeded: u64,
    /// How often a quota refused it.
    pub throttled: u64,
    /// How often it failed on purpose.
    pub faults: u64,
    /// How often it was answered with an error of a kind, throttling among them.
    pub errors: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    succeeded: AtomicU64,
    throttled: AtomicU64,
    faults: AtomicU64,
    errors: Mutex<BTreeMap<String, u64>>,
}

/// Counts while the double runs.
#[derive(Debug, Default)]
pub(super) struct Meter {
    connections: AtomicU64,
    key_sets: AtomicU64,
    calls: [Counters; Operation::ALL.len()],
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Meter {
    pub(super) fn connection(&self) {
        add(&self.connections);
    }

    pub(super) fn key_set(&self) {
        add(&self.key_sets);
    }

    pub(super) fn request(&self, operation: Operation) {
        add(&self.calls[operation.index()].requests);
    }

    pub(super) fn success(&self, operation: Operation) {
        add(&self.calls[operation.index()].succeeded);
    }

    pub(super) fn throttled(&self, operation: Operation) {
        add(&self.calls[operation.index()].throttled);
    }

    pub(super) fn fault(&self, operation: Operation) {
        add(&self.calls[operation.index()].faults);
    }

    pub(super) fn error(&self, operation: Operation, kind: &str) {
        let mut errors = self.calls[operation.index()].errors.lock().unwrap_or_else(PoisonError::into_inner);
        match errors.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(errors.insert(kind.to_owned(), 1)),
        }
    }

    pub(super) fn stats(&self, users: usize) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let of = |operation: Operation| {
            let counters = &self.calls[operation.index()];
            CallStats {
                requests: read(&counters.requests),
                succeeded: read(&counters.succeeded),
                throttled: read(&counters.throttled),
                faults: read(&counters.faults),
                errors: counters.errors.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            }
        };
        let calls = Operation::ALL.into_iter().map(|operation| (operation.name().to_owned(), of(operation)));
        Stats {
            connections: read(&self.connections),
            key_sets: read(&self.key_sets),
            users: users as u64,
            calls: calls.filter(|(_, stats)| stats.requests > 0).collect(),
        }
    }
}
