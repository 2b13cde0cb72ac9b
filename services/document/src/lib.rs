//! The document service: upload, list, download and delete. Bytes lie in S3, metadata in one table.
//!
//! An upload is a `pending` row, then an object, then a `stored` row; what fails in between is taken back ([`removal`]) or swept
//! up ([`sweeper`]). Nothing here holds a whole file in memory, or a database connection while it waits for anything else.

use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use service_kit::clock::SharedClock;
use service_kit::health::Readiness;
use service_kit::service::{self, Service};

mod config;
mod content_disposition;
mod content_type;
mod cursor;
mod name;
mod openapi;
mod preconditions;
pub mod queries;
mod range;
mod removal;
mod representation;
mod routes;
mod state;
mod storage;
mod sweeper;
mod upload;

pub use config::Config;
pub use openapi::openapi;
pub use state::DocumentState;
pub use storage::DocumentKey;
pub use sweeper::{Sweeper, Swept};

/// The migration of `migrations/document` that the queries need; readiness waits for it.
#[allow(clippy::inconsistent_digit_grouping, reason = "a date and a time")]
pub const REQUIRED_SCHEMA_VERSION: i64 = 2026_11_30_18_00_00;

/// How much longer than an upload a request may take: what comes before and after it.
const AROUND_AN_UPLOAD: Duration = Duration::from_secs(30);

/// The API.
fn router(state: DocumentState) -> Router {
    Router::new()
        .route("/v1/documents", get(routes::list::list).post(routes::upload::upload))
        .route("/v1/documents/{id}", get(routes::metadata::metadata).delete(routes::delete::delete))
        .route("/v1/documents/{id}/content", get(routes::content::content))
        .with_state(state)
}

/// Puts the service together; connects to nothing yet.
///
/// # Errors
/// When the database's TLS material or the client for the token keys cannot be used.
pub async fn build(config: Config, clock: SharedClock) -> anyhow::Result<Service> {
    let (service, _) = build_with_state(config, clock).await?;
    Ok(service)
}

/// [`build`], with a handle on what goes on beside the requests.
///
/// Readiness asks for the database and the keys alone: while the object store is down, lists and metadata work and uploads say
/// 503 themselves; taking every task out of the balancer would only add an outage.
///
/// # Errors
/// As [`build`].
pub async fn build_with_state(config: Config, clock: SharedClock) -> anyhow::Result<(Service, DocumentState)> {
    let (verifier, keys) = config.verifier.connect(clock.clone())?;
    let state = DocumentState::new(config, verifier, clock).await?;
    let readiness = Readiness::new()
        .check("database", state.pool.readiness("document", REQUIRED_SCHEMA_VERSION))
        .check("token keys", keys.readiness());
    let service = Service {
        name: "document",
        router: router(state.clone()),
        openapi: openapi(),
        readiness,
        pool: Some(state.pool.clone()),
        background: vec![Box::pin(keys.warm()), Box::pin(state.sweeper().clone().run())],
        longest_request: Some(state.uploads.timeout + AROUND_AN_UPLOAD),
        finish: Some(Box::pin(settled(state.clone()))),
    };
    Ok((service, state))
}

/// Uploads whose connections were cut at the end are taken back before the task goes.
async fn settled(state: DocumentState) {
    state.settled().await;
}

/// Runs one task until it is told to stop.
#[must_use]
pub fn run() -> ExitCode {
    service::run("document", Config::read, build)
}
