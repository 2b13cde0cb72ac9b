//! Names of the metrics.

/// Counter by `group`, `target`, `status`: requests answered. Where the balancer itself answered, `target` is empty, and
/// `group` is too unless it was about that group.
pub const REQUESTS: &str = "balancer_requests_total";
/// Histogram, seconds, by `group`, `target`: from sending a request to the head of the answer (an ALB's
/// `TargetResponseTime`).
pub const TARGET_RESPONSE_SECONDS: &str = "balancer_target_response_seconds";
/// Counter by `group`, `target`, `kind`: `refused`, `timeout`, `local` (no connection was made), `broken` (it ended before
/// the head of an answer), `silent` (no answer in time), `truncated` (it ended within the answer).
pub const TARGET_ERRORS: &str = "balancer_target_connection_errors_total";
/// Counter by `group`, `target`: connections made to it.
pub const TARGET_CONNECTIONS: &str = "balancer_target_connections_total";
/// Gauge by `group`, `state`: registered targets.
pub const TARGETS: &str = "balancer_targets";
/// Gauge: open client connections.
pub const CONNECTIONS: &str = "balancer_client_connections";
/// Counter: connections beyond the limit; told so, or closed.
pub const CONNECTIONS_OVER_CAPACITY: &str = "balancer_client_connections_over_capacity_total";
/// Counter: clients that went away before their answer began (an ALB's 460).
pub const CLIENT_DISCONNECTS: &str = "balancer_client_disconnects_total";
/// Counter: failures to accept a connection.
pub const ACCEPT_ERRORS: &str = "balancer_accept_errors_total";
