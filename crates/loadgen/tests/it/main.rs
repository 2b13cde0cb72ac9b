//! The drivers against a target that does what a test wants.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod driving;
mod failures;
mod models;
mod populating;
mod stub;
mod tls;
mod verifying;
