//! What can be set at the double, at its start and while it runs: how long calls take, how many are let through, what fails.

pub(crate) mod draws;
mod fault;
mod latency;
mod per_operation;
pub(crate) mod quota;

use std::time::Duration;

use self::draws::{Draws, scramble};
use self::fault::Saboteur;
use self::quota::{Buckets, Rate};
use super::operation::Operation;

pub use fault::Faults;
pub(crate) use fault::Mischief;
pub use latency::{Latencies, Latency};
pub use quota::Quotas;

/// How the double behaves beyond what is right.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Behaviour {
    /// How long each call takes, at least.
    pub latency: Latencies,
    /// How many calls are let through.
    pub quotas: Quotas,
    /// What fails on purpose.
    pub faults: Faults,
    /// Of everything that is drawn by lot.
    pub seed: u64,
}

/// A behaviour at work: its buckets, counters and lots.
#[derive(Debug)]
pub(super) struct Conduct {
    pub(super) behaviour: Behaviour,
    draws: [Draws; Operation::ALL.len()],
    buckets: Buckets,
    per_user: Option<Rate>,
    saboteur: Saboteur,
}

impl Conduct {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        let seed = behaviour.seed;
        Self {
            draws: Operation::ALL.map(|operation| Draws::new(scramble(seed) ^ operation.index() as u64)),
            buckets: Buckets::new(&behaviour.quotas),
            per_user: behaviour.quotas.per_user.map(Rate::per_second),
            saboteur: Saboteur::new(&behaviour.faults, !seed),
            behaviour,
        }
    }

    /// How long this call takes.
    pub(super) fn latency(&self, operation: Operation) -> Duration {
        let latency = self.behaviour.latency.of(operation);
        latency.map_or(Duration::ZERO, |latency| latency.draw(self.draws[operation.index()].pair()))
    }

    /// Whether a call at `now`, in nanoseconds since the double's start, is within its category's quota.
    pub(super) fn admits(&self, operation: Operation, now: u64) -> bool {
        self.buckets.admit(operation, now)
    }

    /// What one user may send a second.
    pub(super) const fn per_user(&self) -> Option<Rate> {
        self.per_user
    }

    /// What fails in place of this call's answer.
    pub(super) fn mischief(&self, operation: Operation) -> Option<&Mischief> {
        self.saboteur.meets(operation)
    }
}
