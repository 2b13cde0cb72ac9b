//! The pool's metrics. Names end in their unit; `state` and `reason` are the only labels.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use super::pool::PoolStatus;

/// Why a connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discard {
    /// The request went away while an answer was awaited.
    Abandoned,
    /// The connection was lost, or broke its protocol.
    Broken,
    /// The server did not answer, not even to end the statement.
    NoReply,
    /// The server does not take writes any more.
    ReadOnly,
    /// Old enough.
    Lifetime,
    /// Not needed for long enough.
    Idle,
    /// The pool is closing.
    Closing,
}

impl Discard {
    const fn reason(self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::Broken => "broken",
            Self::NoReply => "no_reply",
            Self::ReadOnly => "read_only",
            Self::Lifetime => "lifetime",
            Self::Idle => "idle",
            Self::Closing => "closing",
        }
    }
}

/// Says what each metric means.
pub(super) fn describe() {
    describe_gauge!("db_pool_connections", "Open database connections by state: in_use or idle");
    describe_gauge!("db_pool_waiters", "Requests waiting for a database connection");
    describe_gauge!("db_pool_max_connections", "DB_POOL_MAX");
    describe_gauge!("db_pool_min_connections", "DB_POOL_MIN");
    describe_histogram!("db_pool_wait_seconds", Unit::Seconds, "Wait for a database connection, successful or not");
    describe_counter!("db_pool_acquire_timeouts_total", "Waits that ended without a connection");
    describe_counter!("db_pool_connections_created_total", "Database connections opened");
    describe_counter!("db_pool_connections_discarded_total", "Database connections closed by this task, by reason");
    describe_counter!("db_pool_connect_failures_total", "Attempts to open a database connection that failed");
}

/// Shows how full the pool is.
pub(super) fn show(status: &PoolStatus) {
    gauge!("db_pool_connections", "state" => "in_use").set(float(status.in_use));
    gauge!("db_pool_connections", "state" => "idle").set(float(status.idle));
}

pub(super) fn show_waiters(waiting: usize) {
    gauge!("db_pool_waiters").set(float(waiting));
}

pub(super) fn show_limits(min: usize, max: usize) {
    gauge!("db_pool_min_connections").set(float(min));
    gauge!("db_pool_max_connections").set(float(max));
}

pub(super) fn waited(wait: Duration) {
    histogram!("db_pool_wait_seconds").record(wait);
}

pub(super) fn acquire_timed_out() {
    counter!("db_pool_acquire_timeouts_total").increment(1);
}

pub(super) fn created() {
    counter!("db_pool_connections_created_total").increment(1);
}

pub(super) fn connect_failed() {
    counter!("db_pool_connect_failures_total").increment(1);
}

pub(super) fn discarded(why: Discard) {
    counter!("db_pool_connections_discarded_total", "reason" => why.reason()).increment(1);
}

/// Counts of connections are far below 2^52.
#[allow(clippy::cast_precision_loss)]
fn float(count: usize) -> f64 {
    count as f64
}
