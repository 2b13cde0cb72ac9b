//! What was measured, one file a section: tables and charts. Interpretation is added from `rules`.

mod anatomy;
mod attribution;
mod context;
mod endpoints;
mod errors;
mod latency;
mod operating_point;
mod provenance;
mod scaling;
mod throughput;

use super::document::{Block, SectionKind};
use super::facts::Facts;

/// The facts of a section, without interpretation.
pub(super) fn blocks(kind: SectionKind, facts: &Facts<'_>) -> Vec<Block> {
    match kind {
        SectionKind::Context => context::blocks(facts),
        SectionKind::Provenance => provenance::blocks(facts),
        SectionKind::Throughput => throughput::blocks(facts),
        SectionKind::Latency => latency::blocks(facts),
        SectionKind::Errors => errors::blocks(facts),
        SectionKind::Endpoints => endpoints::blocks(facts),
        SectionKind::Attribution => attribution::blocks(facts),
        SectionKind::OperatingPoint => operating_point::blocks(facts),
        SectionKind::Scaling => scaling::blocks(facts),
        // These consist of interpretation alone.
        SectionKind::Bottleneck | SectionKind::Conclusion => vec![],
    }
}
