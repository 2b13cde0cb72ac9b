//! The test servers themselves: what they promise is what other tests rely on.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod database;
mod postgres;
mod server;
