//! What several runs show together: what they were made under, roles, throughput and its scaling, latency ranges, errors by owner, capacity.
//!
//! Everything here is numbers and verdicts; sentences are the report's.

mod capacity;
mod compare;
mod compared;
mod conditions;
mod error_table;
mod groups;
mod identity;
mod latency;
mod noise_floor;
mod owner;
mod pooled;
mod slo;
mod throughput;
mod usl;

pub use capacity::{
    Capacity, CapacityOutcome, CapacitySearch, CapacitySettings, OPERATING_PERCENTS, OperatingPoint, Purpose, Step,
    Trial, TrialOutcome, judge_trial,
};
pub use compare::{
    Comparison, ErrorComparison, ErrorVerdict, MetricComparison, Undecidable, Verdict, compare, compare_with,
};
pub use compared::Compared;
pub use conditions::{Aspect, Condition, Difference, differences};
pub use error_table::{CauseRow, ErrorTable, OwnerRow, error_table};
pub use groups::{EXPLORATORY, Group, STEADY_STATE, groups, groups_by};
pub(crate) use identity::AS_ONE_PERSON;
pub use identity::single_identity;
pub use latency::{EndpointRanges, LatencyRanges, Range, latency_ranges};
pub use noise_floor::{MetricNoise, NoiseFloor, noise_floor};
pub(crate) use owner::NO_STATEMENT;
pub use owner::{
    MOSTLY_BROKEN, NOTHING_ENDED, NOTHING_MEASURED, Owner, broken, is_mostly_broken, mostly_broken, owner_of,
};
pub use pooled::{Metric, Quantity};
pub use slo::{Slo, SloError, SloOutcome, SloQuantity, SloVerdict};
pub use throughput::{Scaling, ThroughputSummary, capacity_evidence_of, think_time_of, throughput_summary};
pub use usl::{UslFit, UslParameter, UslPoint, UslRefusal, fit_usl, fit_usl_with};
