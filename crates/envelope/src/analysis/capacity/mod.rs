//! The highest arrival rate that meets the objectives: `search` says what to try next and is told what came of it, `trial`
//! judges what came of it, `outcome` is what both are about. Nothing here sends a request or waits for anything.

mod outcome;
mod search;
mod trial;

pub use outcome::{Capacity, CapacityOutcome, OPERATING_PERCENTS, OperatingPoint, Purpose, Step, Trial, TrialOutcome};
pub use search::{CapacitySearch, CapacitySettings};
pub use trial::judge_trial;
