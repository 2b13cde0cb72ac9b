//! The result folder of one run.
//!
//! | File | Content |
//! |---|---|
//! | `capsule.json` | what was run, on what, and whether it may be believed: [`Capsule`] |
//! | `intervals.jsonl` | one [`Interval`] a line, one line a second, in order; whole histograms, so that any window can be merged |
//!
//! A folder without `capsule.json` is a run that was killed: the capsule is written last, under another name first.

mod anatomy;
mod capsule;
mod folder;
mod histogram;
mod interval;

pub use anatomy::{Anatomy, CLIENT_WAIT, Cut, Sums, UNATTRIBUTED, UNNAMED};
pub use capsule::{
    Capsule, Completion, Dataset, Driver, GeneratorUse, Load, Machine, Phase, PhaseKind, PoolSize, ProcessUse,
    StackFacts, StackUse, Target,
};
pub use folder::{FolderError, IntervalWriter, Intervals, read_capsule, read_intervals, write_capsule};
pub use histogram::{HIGHEST_MICROS, HistogramError, Latencies};
pub use interval::{Answerer, EndpointInterval, Failure, FailureCount, GeneratorInterval, Interval, SET_UP, Work};
