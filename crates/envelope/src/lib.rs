//! What a load run shows, and how sure one can be of it.
//!
//! `result` is the folder that a run leaves behind: drivers write it, everything here reads it. Nothing in this crate sends
//! a request, starts a process or needs a network: a report is rebuilt from its files alone.

pub mod analysis;
pub mod import;
pub mod laws;
pub mod report;
pub mod result;
pub mod run;
pub mod statistics;

/// A count for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub(crate) fn as_float(count: u64) -> f64 {
    count as f64
}
