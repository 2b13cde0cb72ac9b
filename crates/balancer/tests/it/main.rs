//! The balancer between real sockets: stub tasks on one side, clients that say exactly what they want on the other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bodies;
mod choosing;
mod draining;
mod failures;
mod forwarding;
mod framing;
mod health;
mod limits;
mod metrics;
mod rules;
mod sending_once;
mod stopping;
mod support;
