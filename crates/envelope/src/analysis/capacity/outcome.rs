//! What is tried, what comes of it, and what was found.

/// The operating points, in percent of the capacity.
pub const OPERATING_PERCENTS: [u32; 3] = [50, 70, 90];

/// Why a rate is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To find a pass and a failure.
    Bracket,
    /// To narrow them.
    Bisect,
    /// To see whether a pass was luck; counted from 1.
    Confirm(u32),
    /// To know how the system is at that percentage of its capacity.
    OperatingPoint(u32),
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Try this rate and [`record`](super::CapacitySearch::record) what came of it.
    Try {
        /// Requests a second.
        rate: f64,
        /// Why.
        purpose: Purpose,
    },
    /// The search is over.
    Done(Capacity),
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialOutcome {
    /// The objectives were met.
    Passed,
    /// They were not, and which.
    Failed(String),
    /// The trial says nothing about the target, for instance because the driver was the bottleneck.
    Void(String),
}

/// One trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Requests a second.
    pub rate: f64,
    /// Why it was tried.
    pub purpose: Purpose,
    /// What came of it.
    pub outcome: TrialOutcome,
}

/// One operating point.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatingPoint {
    /// Percent of the capacity.
    pub percent: u32,
    /// Requests a second.
    pub rate: f64,
    /// What came of the trial there.
    pub outcome: TrialOutcome,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// How it ended.
    pub outcome: CapacityOutcome,
    /// The operating points that were tried.
    pub operating_points: Vec<OperatingPoint>,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
}

impl Capacity {
    /// The highest rate that held and the lowest above it that did not, where the search found them.
    #[must_use]
    pub fn bounds(&self) -> Option<(f64, Option<f64>)> {
        match self.outcome {
            CapacityOutcome::Found { passes, fails } => Some((passes, Some(fails))),
            CapacityOutcome::AtLeast { passes, .. } => Some((passes, None)),
            CapacityOutcome::None { .. } => None,
        }
    }
}

/// How a search ended. Rates are in requests a second.
#[derive(Debug, Clone, PartialEq)]
pub enum CapacityOutcome {
    /// Capacity lies between two rates.
    Found {
        /// The highest rate that passed, and all its confirmations: the knee.
        passes: f64,
        /// The lowest rate above it that failed.
        fails: f64,
    },
    /// The search could not go higher: capacity is at least this.
    AtLeast {
        /// The highest rate that passed.
        passes: f64,
        /// Why it went no higher.
        reason: String,
    },
    /// Even the lowest rate failed, or no trial said anything.
    None {
        /// Why.
        reason: String,
    },
}
