//! Sends load and records what came of it, second by second, in `envelope`'s result format.
//!
//! `scenario` says what load; `dataset` who the users are that were there before; `run` sends it; `verify` asks first
//! whether the target answers rightly at all. What the numbers mean is `envelope`'s to say.

mod client;
pub mod dataset;
pub mod run;
pub mod scenario;
mod user;
pub mod verify;

pub use client::{Trust, TrustError, check_target};
