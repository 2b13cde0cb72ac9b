//! One run: set-up, load, and what came of it.

mod outcome;
mod plan;

pub use outcome::{Event, LoadError, Outcome};
pub use plan::{Plan, SET_UP, Timeouts};
