//! `GET /live` and `GET /ready`.
//!
//! Live touches nothing: an orchestrator that restarts tasks because the database is down turns a blip into an outage.
//! Ready says whether this task should get traffic now, and why not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::middleware::Draining;
use crate::problem::Problem;

/// All checks together may take this long; health checks of load balancers wait only a few seconds.
const BUDGET: Duration = Duration::from_secs(2);

/// The code of a task that should not get traffic.
pub(crate) const NOT_READY: &str = "not_ready";

type CheckFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
type Check = Arc<dyn Fn() -> CheckFuture + Send + Sync>;

/// What must hold before a task gets traffic.
#[derive(Clone, Default)]
pub struct Readiness {
    checks: Vec<(&'static str, Check)>,
    draining: Draining,
}

impl Readiness {
    /// Ready as long as the task is not on its way out.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition. The error is a reason for operators: no addresses, no secrets.
    #[must_use]
    pub fn check<F, Fut>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.checks.push((name, Arc::new(move || Box::pin(check()))));
        self
    }

    /// The flag that a stopping server raises.
    #[must_use]
    pub fn draining(&self) -> Draining {
        self.draining.clone()
    }

    /// Every reason not to send traffic here; empty when ready.
    pub async fn reasons(&self) -> Vec<String> {
        if self.draining.is_on() {
            return vec!["the task is stopping".to_owned()];
        }
        let checks = self.checks.iter().map(|(name, check)| async move {
            match tokio::time::timeout(BUDGET, check()).await {
                Ok(Ok(())) => None,
                Ok(Err(reason)) => Some(format!("{name}: {reason}")),
                Err(_elapsed) => Some(format!("{name}: no answer within {} ms", BUDGET.as_millis())),
            }
        });
        futures_util::future::join_all(checks).await.into_iter().flatten().collect()
    }
}

/// Names the service in an answer of `/ready`.
pub const SERVICE_HEADER: &str = "datum-service";

/// The body of a good health answer.
#[derive(Debug, Serialize)]
struct Health {
    status: &'static str,
}

pub(crate) async fn live() -> Json<impl Serialize> {
    Json(Health { status: "alive" })
}

/// Says whose task it is as well: whoever checks by address may have reached another service, which has the address now.
pub(crate) async fn ready(service: &'static str, readiness: Readiness) -> Response {
    let reasons = readiness.reasons().await;
    let answer = if reasons.is_empty() {
        Json(Health { status: "ready" }).into_response()
    } else {
        let reasons = format!("Not ready: {}.", reasons.join("; "));
        Problem::unavailable(NOT_READY, reasons, Duration::from_secs(1)).into_response()
    };
    ([(SERVICE_HEADER, service)], answer).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_reason_is_given() {
        let readiness = Readiness::new()
            .check("database", || async { Err("no connection".to_owned()) })
            .check("keys", || async { Err("not fetched".to_owned()) })
            .check("fine", || async { Ok(()) });
        assert_eq!(readiness.reasons().await, ["database: no connection", "keys: not fetched"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_is_a_reason() {
        let readiness = Readiness::new().check("database", std::future::pending);
        assert_eq!(readiness.reasons().await, ["database: no answer within 2000 ms"]);
    }

    #[tokio::test]
    async fn ready_or_not_the_answer_names_the_service() {
        let readiness = Readiness::new();
        for status in [200, 503] {
            let answer = ready("actor", readiness.clone()).await;
            assert_eq!(
                (answer.status().as_u16(), &answer.headers()[SERVICE_HEADER]),
                (status, &"actor".parse().unwrap())
            );
            readiness.draining().begin();
        }
    }

    #[tokio::test]
    async fn a_draining_task_is_not_ready() {
        let readiness = Readiness::new();
        assert!(readiness.reasons().await.is_empty());
        readiness.draining().begin();
        assert_eq!(readiness.reasons().await, ["the task is stopping"]);
    }
}
