//! What k6 leaves behind, of version 0.x, 1 and 2.
//!
//! `json`, `csv` and `point` read the outputs that have every sample, `intervals` makes seconds of them, `stream` a run; `live` does
//! the same while k6 still writes.
//! `summary` and `text` read what has totals only, and `totals` makes a run of those.

mod csv;
mod intervals;
mod json;
pub(super) mod live;
mod point;
pub(super) mod stream;
pub(super) mod summary;
pub(super) mod text;
mod totals;
