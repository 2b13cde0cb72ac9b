//! The drivers against a target that does what a test wants.

mod driving;
mod failures;
mod models;
mod populating;
mod stub;
