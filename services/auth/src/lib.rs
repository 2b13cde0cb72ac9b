//! The auth service: accounts and sessions, behind one small [`identity::IdentityProvider`], and the keys that everybody verifies
//! access tokens with.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::routing::{get, post};
use cognito::{App, Cognito, CognitoConfig, LoginConfig};
use service_kit::auth::{KeySource, Verifier, VerifierConfig};
use service_kit::clock::SharedClock;
use service_kit::database::Pool;
use service_kit::health::Readiness;
use service_kit::service::{self, Service};

mod config;
pub mod email;
pub mod hashing;
pub mod identity;
pub mod keys;
mod openapi;
pub mod password;
pub mod queries;
pub mod refresh_token;
mod routes;
mod state;
pub mod sweep;
pub mod throttle;
pub mod tokens;

use config::{IdentityConfig, LocalConfig};
use hashing::Hasher;
use identity::cognito::CognitoProvider;
use identity::local::LocalProvider;
use tokens::TokenIssuer;

pub use config::Config;
pub use openapi::openapi;
pub use state::AuthState;

/// The newest migration of `migrations/auth` that the queries need; readiness waits for it.
pub const REQUIRED_SCHEMA_VERSION: i64 = 20_261_130_180_200;

/// The API.
fn router(state: AuthState) -> Router {
    Router::new()
        .route("/v1/auth/register", post(routes::register::register))
        .route("/v1/auth/confirm", post(routes::confirm::confirm))
        .route("/v1/auth/resend", post(routes::resend::resend))
        .route("/v1/auth/login", post(routes::login::login))
        .route("/v1/auth/refresh", post(routes::refresh::refresh))
        .route("/v1/auth/logout", post(routes::logout::logout))
        .route("/v1/auth/password", post(routes::password::password))
        .route("/.well-known/jwks.json", get(routes::jwks::jwks))
        .with_state(state)
}

/// Puts the service together; connects to nothing yet.
///
/// # Errors
/// When TLS material or root certificates cannot be used, or the system refuses a thread.
pub async fn build(config: Config, clock: SharedClock) -> anyhow::Result<Service> {
    let Config { verifier, identity } = config;
    match identity {
        IdentityConfig::Local(local) => {
            let hasher = Hasher::start(&local.hashing)?;
            with_local_accounts(&verifier, *local, hasher, clock)
        }
        IdentityConfig::Cognito(cognito) => with_cognito(&verifier, *cognito, clock).await,
    }
}

/// As [`build`] for the local provider, with hashing threads of the caller's.
///
/// # Errors
/// When another provider is configured, or the database's TLS material cannot be used.
pub fn assemble(config: Config, hasher: Hasher, clock: SharedClock) -> anyhow::Result<Service> {
    match config.identity {
        IdentityConfig::Local(local) => with_local_accounts(&config.verifier, *local, hasher, clock),
        IdentityConfig::Cognito(_) => anyhow::bail!("Cognito hashes passwords itself"),
    }
}

fn with_local_accounts(
    verifier: &VerifierConfig,
    config: LocalConfig,
    hasher: Hasher,
    clock: SharedClock,
) -> anyhow::Result<Service> {
    warn_of_weaknesses(&config);
    let pool = Pool::new(config.database)?;
    let keys = config.signing_keys.context("AUTH_SIGNING_KEYS is not configured")?;
    let jwks = keys.jwks().clone();
    let verifier = Verifier::new(verifier, KeySource::fixed(&jwks), clock.clone());
    let issuer = TokenIssuer::new(keys, config.tokens, clock.clone())?;
    let identity = LocalProvider::new(pool.clone(), hasher, issuer, config.sessions, config.throttled, clock.clone());
    Ok(Service {
        name: "auth",
        router: router(AuthState { identity: Arc::new(identity), verifier, jwks: Some(Arc::new(jwks)) }),
        openapi: openapi(),
        readiness: Readiness::new().check("database", pool.readiness("auth", REQUIRED_SCHEMA_VERSION)),
        background: vec![Box::pin(sweep::run(pool.clone(), clock, config.sweep_interval))],
        pool: Some(pool),
        longest_request: None,
        finish: None,
    })
}

/// No database. Readiness asks for the pool's keys, without which no password can be changed and no other service would take what
/// a login gives; an outage of Cognito later on is answered by the routes themselves, since taking every task out of the balancer
/// would only add to it.
async fn with_cognito(
    verifier: &VerifierConfig,
    (cognito, login): (CognitoConfig, LoginConfig),
    clock: SharedClock,
) -> anyhow::Result<Service> {
    let (verifier, keys) = verifier.connect(clock.clone())?;
    let confirmation = login.confirmation;
    let app = App::new(Cognito::for_login(&cognito, &login).await?, login);
    let identity = CognitoProvider::new(app, confirmation, clock);
    Ok(Service {
        name: "auth",
        router: router(AuthState { identity: Arc::new(identity), verifier, jwks: None }),
        openapi: openapi(),
        readiness: Readiness::new().check("token keys", keys.readiness()),
        background: vec![Box::pin(keys.warm())],
        pool: None,
        longest_request: None,
        finish: None,
    })
}

/// What suits a load test or a test bench only, said once at the start.
fn warn_of_weaknesses(config: &LocalConfig) {
    if !config.throttled {
        tracing::warn!("AUTH_THROTTLE is off: guessing passwords is not slowed down");
    }
    if config.hashing.is_weak() {
        let cost = config.hashing.cost;
        tracing::warn!(cost.memory_kib, cost.iterations, "new password hashes cost less than OWASP recommends");
    }
}

/// Runs one task until it is told to stop.
#[must_use]
pub fn run() -> ExitCode {
    service::run("auth", Config::read, build)
}
