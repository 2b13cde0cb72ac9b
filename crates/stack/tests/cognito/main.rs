//! The Cognito double by itself, and one suite that it, moto and ministack are held against.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod behaviour;
mod conformance;
mod lifetime;
mod user_pool;
