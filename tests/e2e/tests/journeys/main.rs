//! What people do with the system, through the balancer, with two tasks of each service. All journeys share one system.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use e2e::Shared;

mod accounts;
mod bad_input;
mod documents;
mod edge;
mod isolation;

static SYSTEM: Shared = Shared::new(env!("CARGO_BIN_EXE_e2e-datum"), &["--ephemeral", "--tasks", "2"]);
