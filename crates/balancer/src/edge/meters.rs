//! What is counted on the client's side. Requests that reached a target are counted there.

use std::sync::OnceLock;

use metrics::{Counter, Gauge, counter, gauge};

use crate::names;

/// Handles that are looked up once: a look-up by name and labels costs more than the counting.
#[derive(Debug, Default)]
pub(super) struct EdgeMeters {
    connections: OnceLock<Handle<Gauge>>,
    disconnects: OnceLock<Handle<Counter>>,
}

/// The crate's handles have no `Debug`.
struct Handle<T>(T);

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

/// One open connection.
pub(super) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl EdgeMeters {
    pub(super) fn connection(&self) -> OpenConnection {
        let gauge = &self.connections.get_or_init(|| Handle(gauge!(names::CONNECTIONS))).0;
        gauge.increment(1.0);
        OpenConnection(gauge.clone())
    }

    /// A client has gone before its answer began; what an ALB logs as 460.
    pub(super) fn client_gone(&self) {
        self.disconnects.get_or_init(|| Handle(counter!(names::CLIENT_DISCONNECTS))).0.increment(1);
    }
}

/// A client came that is one too many.
pub(super) fn over_capacity() {
    counter!(names::CONNECTIONS_OVER_CAPACITY).increment(1);
}

/// A connection could not be accepted.
pub(super) fn accept_failed() {
    counter!(names::ACCEPT_ERRORS).increment(1);
}

/// The balancer answered a request, or what should have been one, without any target group.
pub(super) fn answered(status: u16) {
    counter!(names::REQUESTS, "group" => "", "target" => "", "status" => status.to_string()).increment(1);
}
