//! What a run tells while it goes on, and what it leaves.

use envelope::result::{Completion, GeneratorUse, Interval, Phase};
use time::OffsetDateTime;

/// What happens, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Accounts and tokens are being made; nothing is measured.
    SetUp {
        /// Virtual users that are ready.
        ready: u32,
        /// Of how many.
        of: u32,
    },
    /// The load begins now: second 0.
    Began {
        /// When (UTC).
        at: OffsetDateTime,
    },
    /// A second has passed. They come in order and without gaps, and go on after the last phase while requests are in flight.
    Interval(Box<Interval>),
}

/// What a run leaves beside its intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Whether it ran to its end.
    pub completion: Completion,
    /// When the load began (UTC).
    pub started_at: OffsetDateTime,
    /// When the last request had ended (UTC).
    pub ended_at: OffsetDateTime,
    /// The phases that took place: of an interrupted run the last one is cut; none if it was stopped before the load began.
    pub phases: Vec<Phase>,
    /// Distinct people as whom requests were sent: accounts of virtual users, and users of the dataset. Accounts that the load
    /// itself registers count only where nothing but registrations was sent.
    pub identities: u64,
    /// Reasons for which the run says nothing about the target, one sentence each.
    pub void: Vec<String>,
    /// What a reader should know beside, one sentence each.
    pub warnings: Vec<String>,
    /// What the driver used over the measured phases.
    pub generator: GeneratorUse,
}

/// Why there was no run, or no end of it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan cannot be run.
    #[error("{0}")]
    Plan(String),
    /// A virtual user could not be set up.
    #[error("setting up virtual user {user}: {reason}")]
    SetUp {
        /// Which, from 0.
        user: u32,
        /// What went wrong.
        reason: String,
    },
    /// The machine refused a thread, a file descriptor or a timer.
    #[error("{doing}: {source}")]
    Machine {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}
