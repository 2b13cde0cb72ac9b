//! Operational laws: what must hold between throughput, response time, users and busy time whatever the system is.
//!
//! Source of all of them: Denning and Buzen, "The operational analysis of queueing network models", ACM Computing
//! Surveys 10(3), 1978; Lazowska et al., *Quantitative System Performance*, 1984, chapter 3. Throughput is in requests a
//! second, times are in seconds.

mod capacity;
mod interactive;
mod little;
mod utilisation;

pub use capacity::{CapacityEvidence, GENERATOR_BOUND_SHARE, capacity_evidence};
pub use interactive::{
    ThinkTime, ThinkTimeEvidence, expected_response_time, expected_throughput, infer_think_time, think_time,
    throughput_bound,
};
pub use little::{Agreement, LAW_TOLERANCE, check_concurrency, check_users, concurrency};
pub use utilisation::{most_throughput, service_demand, utilisation};
