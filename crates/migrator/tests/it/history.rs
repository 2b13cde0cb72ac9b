//! What is applied, once, and which databases are refused.

use migrator::{MigrateError, Progress, newest_version};
use test_support::{TestDatabase, test_passwords};

use crate::{migrator, quietly};

const FIRST: (i64, &str) = (1, "CREATE TABLE first (n int)");
const SECOND: (i64, &str) = (2, "CREATE TABLE second (n int)");

/// The versions that the schema `actor` has recorded.
async fn recorded(database: &TestDatabase) -> Vec<i64> {
    let rows = database.admin().await.query("SELECT version FROM actor._sqlx_migrations ORDER BY version", &[]).await;
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn an_empty_database_gets_every_schema_and_a_second_run_does_nothing() {
    let database = TestDatabase::empty().await;
    let report = migrator::run(&database.admin_url(), &test_passwords()).await.unwrap();
    for schema in ["auth", "actor", "document"] {
        let newest = report.applied.iter().filter(|applied| applied.schema == schema).map(|applied| applied.version);
        assert_eq!(newest.max(), Some(newest_version(schema)), "{schema}");
    }
    let again = migrator::run(&database.admin_url(), &test_passwords()).await.unwrap();
    assert_eq!(again.applied, []);
}

#[tokio::test]
async fn only_what_is_missing_is_applied_in_order_and_told() {
    let database = TestDatabase::empty().await;
    migrator(&[FIRST]).run(&database.admin_url(), &mut quietly).await.unwrap();
    let mut told = Vec::new();
    let third = (3, "CREATE TABLE third AS SELECT n FROM second");
    let mut tell = |progress: Progress<'_>| told.push(progress.to_string());
    migrator(&[third, FIRST, SECOND]).run(&database.admin_url(), &mut tell).await.unwrap();
    assert_eq!(recorded(&database).await, [1, 2, 3]);
    let applied: Vec<_> = told.iter().filter(|line| line.contains("applied")).collect();
    assert_eq!(applied.len(), 2, "{told:?}");
    assert!(applied[0].starts_with("actor: applied 2 of a test"), "{told:?}");
    assert!(told.iter().any(|line| line == "auth: up to date at 0"), "{told:?}");
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_and_what_came_before_stays() {
    let database = TestDatabase::empty().await;
    let broken = (2, "CREATE TABLE half (n int); SELECT 1 / 0");
    let error = migrator(&[FIRST, broken]).run(&database.admin_url(), &mut quietly).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, MigrateError::Failed { version: 2, partly: false, .. }), "{text}");
    assert!(text.contains("migration 2") && text.contains("actor") && text.contains("division by zero"), "{text}");
    assert_eq!(recorded(&database).await, [1]);
    let half = database.admin().await.query_one("SELECT to_regclass('actor.half') IS NULL", &[]).await.unwrap();
    assert!(half.get::<_, bool>(0));
    // Repaired, it goes on.
    migrator(&[FIRST, SECOND]).run(&database.admin_url(), &mut quietly).await.unwrap();
    assert_eq!(recorded(&database).await, [1, 2]);
}

#[tokio::test]
async fn a_database_of_a_newer_release_is_refused_and_left_alone() {
    let database = TestDatabase::empty().await;
    migrator(&[FIRST, SECOND]).run(&database.admin_url(), &mut quietly).await.unwrap();
    let error = migrator(&[FIRST]).run(&database.admin_url(), &mut quietly).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, MigrateError::DatabaseIsNewer { applied: 2, newest: 1, .. }), "{text}");
    assert!(text.contains("a newer release has migrated the database"), "{text}");
    assert_eq!(recorded(&database).await, [1, 2]);
}

#[tokio::test]
async fn a_version_that_was_taken_away_is_refused() {
    let database = TestDatabase::empty().await;
    migrator(&[FIRST, SECOND]).run(&database.admin_url(), &mut quietly).await.unwrap();
    let error = migrator(&[SECOND]).run(&database.admin_url(), &mut quietly).await.unwrap_err();
    assert!(matches!(error, MigrateError::Unknown { schema: "actor", version: 1 }), "{error}");
}

#[tokio::test]
async fn a_migration_that_was_edited_after_it_was_applied_is_refused() {
    let database = TestDatabase::empty().await;
    migrator(&[FIRST]).run(&database.admin_url(), &mut quietly).await.unwrap();
    let edited = (1, "CREATE TABLE first (n bigint)");
    let error = migrator(&[edited, SECOND]).run(&database.admin_url(), &mut quietly).await.unwrap_err();
    assert!(matches!(error, MigrateError::Changed { schema: "actor", version: 1, .. }), "{error}");
    assert_eq!(recorded(&database).await, [1]);
}
