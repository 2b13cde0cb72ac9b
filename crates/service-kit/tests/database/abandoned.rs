//! A request that goes away, in the middle of whatever, leaves nothing behind for the next one.

use std::time::Duration;

use service_kit::database::DatabaseError;

use crate::server::{Database, backend_of, eventually};

/// Statements run until they are cancelled: no timeout of ours may be what ends them.
const PATIENT: [(&str, &str); 1] = [("DB_STATEMENT_TIMEOUT_MS", "600000")];

#[tokio::test]
async fn an_abandoned_statement_is_cancelled_and_the_next_borrower_gets_an_answer_of_its_own() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&PATIENT);
    let old = backend_of(&pool).await;
    let request = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire().await.unwrap().query("SELECT 'not yours' FROM pg_sleep(600)", &[]).await }
    });
    eventually("it runs", async || database.running("pg_sleep").await == 1).await;
    request.abort();
    let mut connection = pool.acquire().await.unwrap();
    let row = connection.query_one("SELECT 'mine', pg_backend_pid()", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "mine");
    assert_ne!(row.get::<_, i32>(1), old);
    eventually("it is cancelled", async || database.running("pg_sleep").await == 0).await;
    eventually("its connection is closed", async || !database.backends().await.contains(&old)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_that_go_away_at_any_moment_never_disturb_others() {
    let database = Database::create().await;
    let settings = [("DB_POOL_MAX", "3"), ("DB_POOL_MIN", "1")];
    let pool = database.pool(&settings);
    pool.start_keeper();
    let requests: Vec<_> = (0..300_i32)
        .map(|number| {
            let pool = pool.clone();
            let task = tokio::spawn(async move {
                let mut connection = pool.acquire().await.unwrap();
                let mut transaction = connection.transaction().await.unwrap();
                let answer: i32 = transaction.query_one("SELECT $1::int4", &[&number]).await.unwrap().get(0);
                transaction.commit().await.unwrap();
                answer
            });
            (number, task)
        })
        .collect();
    for (number, task) in requests {
        if number % 3 == 0 {
            // Wherever it is: waiting, preparing, asking, committing, or done.
            tokio::time::sleep(Duration::from_micros(u64::try_from(number).unwrap() * 7 % 900)).await;
            task.abort();
        }
        match task.await {
            Ok(answer) => assert_eq!(answer, number),
            Err(error) => assert!(error.is_cancelled(), "{error}"),
        }
        assert!(pool.status().size() <= 3);
    }
    eventually("all have come back", async || pool.status().in_use == 0).await;
}

#[tokio::test]
async fn a_connection_with_an_abandoned_statement_answers_nothing_more() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&PATIENT);
    let mut connection = pool.acquire().await.unwrap();
    {
        let mut statement = std::pin::pin!(connection.query("SELECT 1 FROM pg_sleep(600)", &[]));
        tokio::select! {
            biased;
            _ = &mut statement => panic!("it sleeps"),
            () = eventually("it runs", async || database.running("pg_sleep").await == 1) => {}
        }
    }
    let error = connection.query("SELECT 1", &[]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn a_transaction_abandoned_between_statements_is_rolled_back_and_its_connection_kept() {
    let database = Database::with("CREATE TABLE t (n int)").await;
    let pool = database.pool_of_one(&PATIENT);
    let pid = backend_of(&pool).await;
    {
        let mut connection = pool.acquire().await.unwrap();
        let mut transaction = connection.transaction().await.unwrap();
        transaction.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
    }
    let mut connection = pool.acquire().await.unwrap();
    let row = connection.query_one("SELECT pg_backend_pid(), (SELECT count(*) FROM t)", &[]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1)), (pid, 0));
}

#[tokio::test]
async fn a_transaction_abandoned_during_a_statement_is_rolled_back() {
    let database = Database::with("CREATE TABLE t (n int)").await;
    let pool = database.pool_of_one(&PATIENT);
    let request = tokio::spawn({
        let pool = pool.clone();
        async move {
            let mut connection = pool.acquire().await.unwrap();
            let mut transaction = connection.transaction().await.unwrap();
            transaction.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
            transaction.query("SELECT 1 FROM pg_sleep(600)", &[]).await
        }
    });
    eventually("it runs", async || database.running("pg_sleep").await == 1).await;
    request.abort();
    let mut connection = pool.acquire().await.unwrap();
    // The lock would be waited for, were the transaction still open.
    connection.execute("TRUNCATE t", &[]).await.unwrap();
    assert_eq!(database.running("pg_sleep").await, 0);
}

#[tokio::test]
async fn the_same_connection_can_go_on_after_a_dropped_transaction() {
    let database = Database::with("CREATE TABLE t (n int)").await;
    let pool = database.pool_of_one(&[]);
    let mut connection = pool.acquire().await.unwrap();
    connection.transaction().await.unwrap().execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
    assert_eq!(connection.execute("INSERT INTO t VALUES (2)", &[]).await.unwrap(), 1);
    drop(connection);
    let rows = database.admin.query("SELECT n FROM t", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [2]);
}

/// Nobody could await the rollback there.
#[tokio::test]
async fn an_open_transaction_dropped_outside_of_the_runtime_ends_with_its_connection() {
    let database = Database::with("CREATE TABLE t (n int)").await;
    let pool = database.pool_of_one(&PATIENT);
    let pid = backend_of(&pool).await;
    let mut connection = pool.acquire().await.unwrap();
    connection.transaction().await.unwrap().execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
    std::thread::spawn(move || drop(connection)).join().unwrap();
    let mut connection = pool.acquire().await.unwrap();
    let row = connection.query_one("SELECT pg_backend_pid(), (SELECT count(*) FROM t)", &[]).await.unwrap();
    assert_ne!(row.get::<_, i32>(0), pid);
    assert_eq!(row.get::<_, i64>(1), 0);
}
