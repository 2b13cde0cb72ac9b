//! The program as a user runs it: every test starts it as a process of its own, in folders of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod given_database;
mod harness;
mod help;
mod library;
mod lifecycle;
mod parts;
mod refusals;
mod replacement;
mod report;
mod survival;
