//! All or nothing, and never nothing that is called a success.

use service_kit::database::DatabaseError;

use crate::server::{Database, backend_of};

#[tokio::test]
async fn a_committed_transaction_is_stored_and_not_seen_before() {
    let database = Database::with("CREATE TABLE t (n int)").await;
    let pool = database.pool(&[("DB_POOL_MIN", "0")]);
    let mut connection = pool.acquire().await.unwrap();
    let mut transaction = connection.transaction().await.unwrap();
    assert_eq!(transaction.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap(), 1);
    let count = "SELECT count(*) FROM t";
    assert_eq!(database.admin.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 0);
    transaction.commit().await.unwrap();
    assert_eq!(database.admin.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 1);
}

/// PostgreSQL answers `COMMIT` with `ROLLBACK` and no error then.
#[tokio::test]
async fn a_commit_after_a_failed_statement_is_an_error() {
    let database = Database::with("CREATE TABLE t (n int UNIQUE)").await;
    let pool = database.pool_of_one(&[]);
    let pid = backend_of(&pool).await;
    let mut connection = pool.acquire().await.unwrap();
    let mut transaction = connection.transaction().await.unwrap();
    transaction.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap();
    transaction.execute("INSERT INTO t VALUES (1)", &[]).await.unwrap_err();
    let error = transaction.commit().await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unexpected(_)), "{error:?}");
    drop(connection);
    let mut connection = pool.acquire().await.unwrap();
    let row = connection.query_one("SELECT pg_backend_pid(), (SELECT count(*) FROM t)", &[]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1)), (pid, 0));
}

#[tokio::test]
async fn a_constraint_that_is_checked_at_the_commit_is_named() {
    let database = Database::with("CREATE TABLE t (n int CONSTRAINT later UNIQUE DEFERRABLE INITIALLY DEFERRED)").await;
    let pool = database.pool_of_one(&[]);
    let pid = backend_of(&pool).await;
    let mut connection = pool.acquire().await.unwrap();
    let mut transaction = connection.transaction().await.unwrap();
    transaction.execute("INSERT INTO t VALUES (1), (1)", &[]).await.unwrap();
    let error = transaction.commit().await.unwrap_err();
    assert!(error.violates("later"), "{error:?}");
    drop(connection);
    assert_eq!(backend_of(&pool).await, pid);
}

#[tokio::test]
async fn a_deadlock_is_a_503_for_one_of_the_two() {
    let database = Database::with("CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2)").await;
    let pool = database.pool(&[("DB_POOL_MIN", "0")]);
    let (mut first, mut second) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    let (mut first, mut second) = (first.transaction().await.unwrap(), second.transaction().await.unwrap());
    let lock = "SELECT n FROM t WHERE n = $1 FOR UPDATE";
    first.query_one(lock, &[&1]).await.unwrap();
    second.query_one(lock, &[&2]).await.unwrap();
    // The victim's locks are gone with its statement, so that the other one ends too.
    let (one, other) = tokio::join!(first.query_one(lock, &[&2]), second.query_one(lock, &[&1]));
    let error = one.err().or(other.err()).expect("one of the two is the victim");
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
}
