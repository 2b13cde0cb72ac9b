//! One run: set-up, load, and what came of it.
//!
//! `coordinator` starts threads; each (`worker`) has a runtime and its share of the virtual users, who live by the `closed` or the
//! `open` model; `recorder` counts by the second; `verdict` says whether the driver itself was the bottleneck.

mod anatomy;
mod arrivals;
mod closed;
mod coordinator;
mod identities;
mod open;
mod outcome;
mod pacer;
mod plan;
mod recorder;
mod usage;
mod verdict;
mod worker;

pub use coordinator::run;
pub use outcome::{Event, LoadError, Outcome};
pub use plan::{Plan, Timeouts};
