//! What is counted about a target.

use std::sync::OnceLock;
use std::time::Duration;

use http::StatusCode;
use metrics::{Counter, Histogram, counter, histogram};

use crate::names;

/// Statuses from 100 to 999, all that HTTP can carry, are counted one by one.
const STATUSES: usize = 900;

/// Metric handles of one target. They are looked up once: a look-up by name and labels costs more than the counting.
pub(super) struct Meters {
    group: String,
    target: String,
    statuses: Box<[OnceLock<Counter>]>,
    response: OnceLock<Histogram>,
    connections: OnceLock<Counter>,
}

impl Meters {
    pub(super) fn new(group: &str, target: &str) -> Self {
        Self {
            group: group.to_owned(),
            target: target.to_owned(),
            statuses: (0..STATUSES).map(|_| OnceLock::new()).collect(),
            response: OnceLock::new(),
            connections: OnceLock::new(),
        }
    }

    pub(super) fn answered(&self, status: StatusCode, after: Duration) {
        let at = usize::from(status.as_u16()).saturating_sub(100);
        if let Some(counter) = self.statuses.get(at) {
            counter.get_or_init(|| self.requests(status.as_u16())).increment(1);
        }
        let response = self.response.get_or_init(
            || histogram!(names::TARGET_RESPONSE_SECONDS, "group" => self.group.clone(), "target" => self.target.clone()),
        );
        response.record(after);
    }

    fn requests(&self, status: u16) -> Counter {
        counter!(
            names::REQUESTS,
            "group" => self.group.clone(), "target" => self.target.clone(), "status" => status.to_string()
        )
    }

    pub(super) fn connected(&self) {
        let connections = self.connections.get_or_init(
            || counter!(names::TARGET_CONNECTIONS, "group" => self.group.clone(), "target" => self.target.clone()),
        );
        connections.increment(1);
    }

    pub(super) fn failed(&self, kind: &'static str) {
        counter!(
            names::TARGET_ERRORS,
            "group" => self.group.clone(), "target" => self.target.clone(), "kind" => kind
        )
        .increment(1);
    }
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meters").field("target", &self.target).finish_non_exhaustive()
    }
}
