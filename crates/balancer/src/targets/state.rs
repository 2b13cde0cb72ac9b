//! The states of a target, in the words of an ALB, and what is shown of them.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

/// Where a registered target stands. Source: AWS, "Health checks for Application Load Balancer target groups", target
/// health status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetState {
    /// Registered, and not judged yet.
    Initial,
    /// It gets requests.
    Healthy,
    /// It gets none, unless no target of the group is healthy.
    Unhealthy,
    /// Deregistered: it finishes what it has.
    Draining,
    /// No rule forwards to its group.
    Unused,
}

impl TargetState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Initial, Self::Healthy, Self::Unhealthy, Self::Draining, Self::Unused];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Draining => "draining",
            Self::Unused => "unused",
        }
    }
}

impl fmt::Display for TargetState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Why a target is not healthy. `Display` and JSON give the reason codes of `DescribeTargetHealth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No check has come back yet.
    RegistrationInProgress,
    /// Checks have come back, too few to judge.
    InitialHealthChecking,
    /// Another status than the expected ones.
    ResponseCodeMismatch(u16),
    /// No answer in time.
    Timeout,
    /// No connection, or no HTTP on it.
    FailedHealthChecks,
    /// Another service answers at the address. An ALB does not ask; who is found by name may have moved between two look-ups.
    AnotherService,
    /// It is deregistered and drains.
    DeregistrationInProgress,
    /// No rule forwards to its group.
    NotInUse,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RegistrationInProgress => f.write_str("Elb.RegistrationInProgress"),
            Self::InitialHealthChecking => f.write_str("Elb.InitialHealthChecking"),
            Self::ResponseCodeMismatch(status) => write!(f, "Target.ResponseCodeMismatch: [{status}]"),
            Self::Timeout => f.write_str("Target.Timeout"),
            Self::FailedHealthChecks => f.write_str("Target.FailedHealthChecks"),
            Self::AnotherService => f.write_str("Datum.AnotherService"),
            Self::DeregistrationInProgress => f.write_str("Target.DeregistrationInProgress"),
            Self::NotInUse => f.write_str("Target.NotInUse"),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A target at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetSnapshot {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its state.
    pub state: TargetState,
    /// Why it is not healthy.
    pub reason: Option<Reason>,
    /// Requests that it has and whose answers are not complete.
    pub outstanding: usize,
    /// Requests sent to it since it was registered.
    pub requests: u64,
    /// Of these, the ones that it answered with a 5xx, or not (completely).
    pub errors: u64,
    /// Connections that could not be made.
    pub connect_failures: u64,
    /// Connections kept open for the next request.
    pub idle_connections: usize,
}

/// A target group at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupSnapshot {
    /// Its name.
    pub name: String,
    /// No target is healthy, and therefore all get requests.
    pub fail_open: bool,
    /// In the order of registration.
    pub targets: Vec<TargetSnapshot>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_reasons_are_shown_in_the_words_of_an_alb() {
        let target = TargetSnapshot {
            address: "127.0.0.1:1".parse().expect("an address"),
            state: TargetState::Unhealthy,
            reason: Some(Reason::ResponseCodeMismatch(503)),
            outstanding: 0,
            requests: 2,
            errors: 1,
            connect_failures: 0,
            idle_connections: 0,
        };
        let json = serde_json::to_value(&target).expect("json");
        assert_eq!(json["state"], "unhealthy");
        assert_eq!(json["reason"], "Target.ResponseCodeMismatch: [503]");
        assert_eq!(json["address"], "127.0.0.1:1");
    }

    #[test]
    fn a_state_can_be_padded() {
        assert_eq!(format!("[{:<9}]", TargetState::Healthy), "[healthy  ]");
    }
}
