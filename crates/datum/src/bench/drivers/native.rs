//! Datum's own driver, in this process.

use std::sync::Arc;

use loadgen::run::{Event, Plan};
use service_kit::clock::SystemClock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Driven;
use crate::bench::error::BenchError;

/// Runs the plan.
pub(super) async fn drive(
    plan: &Plan,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
) -> Result<Driven, BenchError> {
    let outcome = loadgen::run::run(plan.clone(), Arc::new(SystemClock), events, stop).await?;
    Ok(Driven { outcome, unwritten: None })
}
