//! Several migrators at once.

use std::{sync::Arc, time::Duration};

use migrator::{MigrateError, Migrator};
use test_support::{TestDatabase, eventually, test_passwords};
use tokio::sync::Barrier;

use crate::{migrator, quietly};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_replicas_on_an_empty_database_all_succeed_and_each_migration_is_applied_once() {
    let database = Arc::new(TestDatabase::empty().await);
    let start = Arc::new(Barrier::new(5));
    let replicas: Vec<_> = (0..5)
        .map(|_| {
            let (database, start) = (Arc::clone(&database), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                migrator::run(&database.admin_url(), &test_passwords()).await
            })
        })
        .collect();
    let mut applied = Vec::new();
    for replica in replicas {
        let report = replica.await.unwrap().unwrap();
        applied.extend(report.applied.into_iter().map(|applied| (applied.schema, applied.version)));
    }
    let count = applied.len();
    applied.sort_unstable();
    applied.dedup();
    assert_eq!(applied.len(), count, "a migration was applied twice");
    for schema in ["auth", "actor", "document"] {
        assert!(applied.contains(&(schema, migrator::newest_version(schema))), "{schema}");
    }
}

/// Roles belong to the server, and the lock to one database of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrators_of_two_databases_of_a_server_do_not_disturb_each_other() {
    let databases = [TestDatabase::empty().await, TestDatabase::empty().await];
    let passwords = test_passwords();
    for _ in 0..5 {
        let [first, second] = databases.each_ref().map(|database| {
            let (url, passwords) = (database.admin_url(), passwords.clone());
            tokio::spawn(async move { migrator::run(&url, &passwords).await })
        });
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_built_concurrently_while_another_migrator_waits() {
    const FILES: &[(i64, &str)] = &[
        (1, "CREATE TABLE numbers AS SELECT generate_series(1, 1000) AS n"),
        (2, "-- no-transaction\nCREATE INDEX CONCURRENTLY numbers_n ON actor.numbers (n)"),
    ];
    let database = TestDatabase::empty().await;
    // First the index waits for this writer. When the writer is done, and the second migrator by then waits with a snapshot
    // of its own from the writer's time, the index waits for that snapshot, and the second migrator for the first.
    let blocker = database.admin().await;
    migrator(&FILES[..1]).run(&database.admin_url(), &mut quietly).await.unwrap();
    blocker.batch_execute("BEGIN; INSERT INTO actor.numbers VALUES (0)").await.unwrap();

    let url = database.admin_url();
    let first = tokio::spawn(async move { migrator(FILES).run(&url, &mut quietly).await });
    let observer = database.admin().await;
    let is_true = async |condition: &'static str| -> bool {
        observer.query_one(&format!("SELECT {condition}"), &[]).await.unwrap().get(0)
    };
    eventually("the index is being built", async || {
        is_true("EXISTS (SELECT FROM pg_stat_progress_create_index)").await
    })
    .await;
    let url = database.admin_url();
    let second = tokio::spawn(async move { migrator(FILES).run(&url, &mut quietly).await });
    eventually("the second migrator waits, in whatever way", async || {
        is_true(
            "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'datum-migrator' AND query LIKE '%advisory_lock%' \
             AND (state = 'idle' OR wait_event_type = 'Lock'))",
        )
        .await
    })
    .await;
    blocker.batch_execute("COMMIT").await.unwrap();

    assert_eq!(first.await.unwrap().unwrap().applied.len(), 1);
    assert_eq!(second.await.unwrap().unwrap().applied, []);
    assert!(is_true("indisvalid FROM pg_index WHERE indexrelid = 'actor.numbers_n'::regclass").await);
}

#[tokio::test]
async fn the_wait_for_another_migrator_ends_and_names_its_session() {
    let database = TestDatabase::empty().await;
    let holder = database.admin().await;
    // The key that a migrator takes.
    let pid: i32 = holder
        .query_one("SELECT pg_backend_pid() FROM pg_advisory_lock(x'646174756d'::bigint)", &[])
        .await
        .unwrap()
        .get(0);
    let impatient = Migrator::new(test_passwords()).lock_wait(Duration::from_millis(1));
    let error = impatient.run(&database.admin_url(), &mut quietly).await.unwrap_err();
    assert!(matches!(error, MigrateError::Locked { .. }), "{error}");
    assert!(error.to_string().contains(&format!("pid {pid}")), "{error}");
}

#[tokio::test]
async fn the_lock_is_free_after_a_failure() {
    let database = TestDatabase::empty().await;
    migrator(&[(1, "SELECT 1 / 0")]).run(&database.admin_url(), &mut quietly).await.unwrap_err();
    migrator(&[(1, "SELECT 1")]).run(&database.admin_url(), &mut quietly).await.unwrap();
}
