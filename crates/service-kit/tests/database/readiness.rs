//! Busy is ready, broken and too old are not.

use service_kit::database::Pool;
use service_kit::health::Readiness;

use crate::server::{Database, eventually};

const MIGRATED: &str = "CREATE SCHEMA s; \
    CREATE TABLE s._sqlx_migrations (version bigint PRIMARY KEY, success boolean NOT NULL); \
    INSERT INTO s._sqlx_migrations VALUES (20250101000000, true), (20250201000000, true), (20250301000000, false)";

const NEWER: i64 = 20_250_301_000_000;
const TOO_OLD: &str = "database: schema s must be at 20250301000000 and is at 20250201000000";

fn readiness(pool: &Pool, version: i64) -> Readiness {
    Readiness::new().check("database", pool.readiness("s", version))
}

/// Checks until the answer is this. The check has a budget, which a busy machine may overrun once.
pub(crate) async fn becomes(readiness: &Readiness, expected: &[&str]) {
    let mut last = Vec::new();
    eventually(&format!("{expected:?}"), async || {
        let reasons = readiness.reasons().await;
        if reasons != last {
            println!("{reasons:?}");
            last.clone_from(&reasons);
        }
        reasons == expected
    })
    .await;
}

#[tokio::test]
async fn a_migrated_schema_is_ready_and_one_that_is_too_old_says_so() {
    let database = Database::with(MIGRATED).await;
    let pool = database.pool(&[]);
    becomes(&readiness(&pool, 20_250_201_000_000), &[]).await;
    // A migration that failed does not count.
    becomes(&readiness(&pool, NEWER), &[TOO_OLD]).await;
}

#[tokio::test]
async fn a_schema_that_is_not_there_is_not_ready_until_it_is() {
    let database = Database::create().await;
    let pool = database.pool(&[]);
    let readiness = readiness(&pool, 20_250_101_000_000);
    becomes(&readiness, &["database: schema s must be at 20250101000000 and is not there"]).await;
    database.admin.batch_execute(&format!("SET ROLE app; {MIGRATED}")).await.unwrap();
    becomes(&readiness, &[]).await;
}

#[tokio::test]
async fn a_schema_that_was_new_enough_is_not_asked_for_again() {
    let database = Database::with(MIGRATED).await;
    let pool = database.pool(&[]);
    let readiness = readiness(&pool, 20_250_101_000_000);
    becomes(&readiness, &[]).await;
    database.admin.batch_execute("DROP SCHEMA s CASCADE").await.unwrap();
    becomes(&readiness, &[]).await;
}

#[tokio::test]
async fn a_pool_whose_connections_are_all_in_use_is_ready_while_the_database_answers() {
    let database = Database::with(MIGRATED).await;
    let pool = database.pool_of_one(&[]);
    let mut held = pool.acquire().await.unwrap();
    held.query("SELECT 1", &[]).await.unwrap();
    becomes(&readiness(&pool, 1), &[]).await;
}

#[tokio::test]
async fn a_pool_whose_connections_are_all_in_use_is_not_ready_when_the_database_never_answered() {
    let database = Database::with(MIGRATED).await;
    let pool = database.pool_of_one(&[]);
    let _held = pool.acquire().await.unwrap();
    let reason = "database: every connection is in use, and the database does not answer";
    becomes(&readiness(&pool, 1), &[reason]).await;
}

/// A check that gives up must not cost a connection: health checks come every few seconds.
#[tokio::test]
async fn a_slow_answer_to_the_check_is_busy_and_costs_no_connection() {
    let database = Database::with(MIGRATED).await;
    let pool = database.pool_of_one(&[("DB_STATEMENT_TIMEOUT_MS", "60000")]);
    pool.acquire().await.unwrap().query("SELECT 1", &[]).await.unwrap();
    let before = database.backends().await;
    database.admin.batch_execute("BEGIN; LOCK TABLE s._sqlx_migrations").await.unwrap();
    let readiness = readiness(&pool, NEWER);
    becomes(&readiness, &[]).await;
    database.admin.batch_execute("COMMIT").await.unwrap();
    eventually("the answer has come", async || pool.status().in_use == 0).await;
    assert_eq!(database.backends().await, before);
    becomes(&readiness, &[TOO_OLD]).await;
}

#[tokio::test]
async fn a_pool_is_not_ready_before_its_first_connections_are_open() {
    let database = Database::with(MIGRATED).await;
    let pool = database.pool(&[]);
    // The test's runtime has one thread: the keeper opens connections while the check already asks.
    pool.start_keeper();
    let readiness = readiness(&pool, 1);
    assert_eq!(readiness.reasons().await, ["database: the first connections are being opened"]);
    becomes(&readiness, &[]).await;
    assert_eq!(database.backends().await.len(), 5);
}
