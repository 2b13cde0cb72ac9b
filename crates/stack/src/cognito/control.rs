//! Routes below `/-/` that no user pool has: the behaviour, users in bulk, what was sent, what was seen.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::behaviour::Behaviour;
use super::pool::user::{Status, User};
use super::server::Double;

/// An import is sent in parts.
const LARGEST_IMPORT: usize = 32 * 1024 * 1024;

/// A behaviour as text; what is left out is as if nothing had been set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BehaviourText {
    /// As [`Latencies`](super::Latencies) are written.
    pub latency: String,
    /// As [`Quotas`](super::Quotas) are written.
    pub quotas: String,
    /// As [`Faults`](super::Faults) are written.
    pub faults: String,
    /// Of everything that is drawn by lot.
    pub seed: u64,
}

impl TryFrom<&BehaviourText> for Behaviour {
    type Error = String;

    fn try_from(text: &BehaviourText) -> Result<Self, String> {
        let named = |name: &'static str| move |error: String| format!("{name}: {error}");
        Ok(Self {
            latency: text.latency.parse().map_err(named("latency"))?,
            quotas: text.quotas.parse().map_err(named("quotas"))?,
            faults: text.faults.parse().map_err(named("faults"))?,
            seed: text.seed,
        })
    }
}

impl From<&Behaviour> for BehaviourText {
    fn from(behaviour: &Behaviour) -> Self {
        Self {
            latency: behaviour.latency.to_string(),
            quotas: behaviour.quotas.to_string(),
            faults: behaviour.faults.to_string(),
            seed: behaviour.seed,
        }
    }
}

/// A user of an import, who can log in at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedUser {
    /// With what they log in.
    pub email: String,
    /// Their password.
    pub password: String,
    /// Their id; made where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<Uuid>,
}

pub(super) fn router(double: Arc<Double>) -> Router {
    Router::new()
        .route("/live", get(|| async {}))
        .route("/behaviour", get(behaviour).put(set_behaviour))
        .route("/stats", get(stats))
        .route("/users", axum::routing::post(import))
        .route("/users/{email}", get(user))
        .layer(DefaultBodyLimit::max(LARGEST_IMPORT))
        .with_state(double)
}

async fn behaviour(State(double): State<Arc<Double>>) -> Response {
    Json(BehaviourText::from(&double.conduct().behaviour)).into_response()
}

async fn set_behaviour(State(double): State<Arc<Double>>, Json(text): Json<BehaviourText>) -> Response {
    match Behaviour::try_from(&text) {
        Ok(behaviour) => {
            double.set_behaviour(behaviour);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(message) => (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"message": message}))).into_response(),
    }
}

async fn stats(State(double): State<Arc<Double>>) -> Response {
    Json(double.meter.stats(double.pool.user_count())).into_response()
}

async fn import(State(double): State<Arc<Double>>, Json(users): Json<Vec<ImportedUser>>) -> Response {
    let (pool, now) = (&double.pool, double.pool.clock.now());
    let made = users.into_iter().map(|user| {
        let sub = user.sub.unwrap_or_else(Uuid::new_v4);
        User::new(sub, user.email, None, now, pool.hasher.hash(sub, &user.password), Status::Confirmed)
    });
    let there = pool.import(made.collect());
    Json(json!({"users": there})).into_response()
}

/// What the user would find in their mailbox, and where their account is.
async fn user(State(double): State<Arc<Double>>, Path(email): Path<String>) -> Response {
    let Some(user) = double.pool.find(&email) else { return StatusCode::NOT_FOUND.into_response() };
    let state = user.state();
    let code = state.code.as_ref().map(|code| code.digits.clone());
    Json(json!({
        "sub": user.sub,
        "email": user.email,
        "status": state.status.name(),
        "email_verified": state.email_verified,
        "confirmation_code": code,
    }))
    .into_response()
}
