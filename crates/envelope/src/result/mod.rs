//! The result folder of one run.
//!
//! | File | Content |
//! |---|---|
//! | `capsule.json` | what was run, on what, and whether it may be believed: [`Capsule`] |
//! | `intervals.jsonl` | one [`Interval`] a line, one line a second, in order; whole histograms, so that any window can be merged |
//!
//! A folder without `capsule.json` is a run that was killed: the capsule is written last, under another name first,
//! into room that was reserved before the load began.

mod anatomy;
mod capsule;
pub(crate) mod file;
mod folder;
mod histogram;
mod interval;
mod writing;

pub use anatomy::{Anatomy, CLIENT_WAIT, Cut, Sums, UNATTRIBUTED, UNNAMED};
pub use capsule::{
    Capsule, Completion, Dataset, Driver, GeneratorUse, Load, Machine, Phase, PhaseKind, PoolSize, ProcessUse,
    StackFacts, StackUse, Target, Throttled,
};
pub use folder::{FolderError, Intervals, read_capsule, read_intervals};
pub use histogram::{HIGHEST_MICROS, HistogramError, Latencies};
pub use interval::{Answerer, EndpointInterval, Failure, FailureCount, GeneratorInterval, Interval, SET_UP, Work};
pub use writing::{IntervalWriter, copy_intervals, reserve_capsule, write_capsule};
