//! The actor service: get-user. Who the caller is and their profile, from verified claims and one table.
//!
//! An actor's row is made when their first token arrives (see [`sight`]); no request crosses services. Where
//! tokens state no email (Cognito's), the provider is asked for it (`directory`).

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use cognito::Cognito;
use service_kit::clock::SharedClock;
use service_kit::database::Pool;
use service_kit::health::Readiness;
use service_kit::service::{self, Service};

mod config;
mod directory;
mod openapi;
pub mod queries;
mod representation;
mod routes;
pub mod sight;
mod state;

use directory::Directory;

pub use config::Config;
pub use openapi::openapi;
pub use state::ActorState;

/// The migration of `migrations/actor` that the queries need; readiness waits for it.
#[allow(clippy::inconsistent_digit_grouping, reason = "a date and a time, as in the file's name")]
pub const REQUIRED_SCHEMA_VERSION: i64 = 2026_11_30_18_00_00;

/// The API.
fn router(state: ActorState) -> Router {
    Router::new()
        .route("/v1/actors/me", get(routes::get_me::get_me).patch(routes::update_me::update_me))
        .route("/v1/actors/{id}", get(routes::get_actor::get_actor))
        .with_state(state)
}

/// Puts the service together; connects to nothing yet.
///
/// # Errors
/// When the database's TLS material, or the client for the token keys or for Cognito cannot be used.
#[allow(clippy::unused_async, reason = "the runner awaits every service's build")]
pub async fn build(config: Config, clock: SharedClock) -> anyhow::Result<Service> {
    let pool = Pool::new(config.database)?;
    let (verifier, keys) = config.verifier.connect(clock.clone())?;
    let directory = match &config.cognito {
        Some(cognito) => Some(Arc::new(Directory::new(Cognito::new(cognito)?, clock.clone()))),
        None => None,
    };
    let readiness = Readiness::new()
        .check("database", pool.readiness("actor", REQUIRED_SCHEMA_VERSION))
        .check("token keys", keys.readiness());
    Ok(Service {
        name: "actor",
        router: router(ActorState { pool: pool.clone(), verifier, clock, directory }),
        openapi: openapi(),
        readiness,
        pool: Some(pool),
        background: vec![Box::pin(keys.warm())],
        longest_request: None,
        finish: None,
    })
}

/// Runs one task until it is told to stop.
#[must_use]
pub fn run() -> ExitCode {
    service::run("actor", Config::read, build)
}
