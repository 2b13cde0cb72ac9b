//! The pool against real PostgreSQL: one server with TLS for all tests, a database for each.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod abandoned;
mod acquiring;
mod keeping;
mod outage;
mod readiness;
mod server;
mod stages;
mod statements;
mod tls;
mod transactions;
