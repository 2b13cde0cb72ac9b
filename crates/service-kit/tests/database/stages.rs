//! What the pool measures.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use service_kit::config::{Environment, load};
use service_kit::database::{DatabaseError, Pool};
use service_kit::health::Readiness;
use service_kit::middleware::HttpConfig;
use service_kit::problem::Problem;
use service_kit::service::{Service, assemble};
use tower::ServiceExt;

use crate::server::{Database, WARM};

fn router(pool: &Pool) -> Router {
    let query = |pool: Pool| async move {
        pool.acquire().await?.query("SELECT 1", &[]).await?;
        Ok::<_, Problem>("")
    };
    let handler_pool = pool.clone();
    let service = Service {
        name: "test",
        router: Router::new().route("/query", get(move || query(handler_pool.clone()))),
        openapi: utoipa::openapi::OpenApi::default(),
        readiness: Readiness::new().check("database", pool.readiness("s", 1)),
        pool: Some(pool.clone()),
        background: Vec::new(),
        longest_request: None,
        finish: None,
    };
    assemble(&service, &load(&Environment::default(), HttpConfig::read).unwrap())
}

async fn server_timing(router: &Router, path: &str) -> (u16, String) {
    let response = router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let timing = response.headers().get("server-timing").map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), timing.unwrap_or_default())
}

#[tokio::test]
async fn a_request_shows_its_wait_and_its_statements_and_a_health_check_shows_none() {
    let database = Database::create().await;
    let router = router(&database.pool(&[]));
    let (status, timing) = server_timing(&router, "/query").await;
    assert_eq!(status, 200);
    assert!(timing.contains("pool;dur=") && timing.contains("db;dur="), "{timing}");
    let (status, timing) = server_timing(&router, "/ready").await;
    assert_eq!(status, 503);
    assert!(!timing.contains("pool;dur=") && !timing.contains("db;dur="), "{timing}");
}

#[tokio::test]
async fn metrics_show_how_full_the_pool_is_and_what_became_of_connections() {
    // Before the pool: what is counted before there is a recorder is lost.
    let _ = service_kit::telemetry::render();
    let database = Database::create().await;
    let pool = database.pool(&[("DB_POOL_MAX", "1"), ("DB_POOL_ACQUIRE_TIMEOUT_MS", "10")]);
    assert!(pool.warm(WARM).await);
    let mut held = pool.acquire().await.unwrap();
    assert!(matches!(pool.acquire().await, Err(DatabaseError::AcquireTimeout)));
    let pid: i32 = held.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    database.terminate(&[pid]).await;
    held.query("SELECT 1", &[]).await.unwrap_err();
    drop(held);
    let metrics = service_kit::telemetry::render();
    for name in [
        "db_pool_connections{state=\"in_use\"}",
        "db_pool_connections{state=\"idle\"}",
        "db_pool_waiters",
        "db_pool_max_connections",
        "db_pool_wait_seconds_bucket",
        "db_pool_acquire_timeouts_total",
        "db_pool_connections_created_total",
        "db_pool_connections_discarded_total{reason=\"broken\"}",
    ] {
        assert!(metrics.contains(name), "{name} is not in:\n{metrics}");
    }
}
