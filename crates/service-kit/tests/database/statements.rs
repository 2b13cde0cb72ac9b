//! What the server says to a statement, and what becomes of the connection then.

use service_kit::database::DatabaseError;

use crate::server::{Database, backend_of, eventually};

#[tokio::test]
async fn sessions_are_named_after_their_service() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[]);
    let mut connection = pool.acquire().await.unwrap();
    let row = connection.query_one("SELECT current_setting('application_name')", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "datum-test");
}

#[tokio::test]
async fn a_statement_that_runs_for_too_long_is_ended_and_its_connection_kept() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[("DB_STATEMENT_TIMEOUT_MS", "1000")]);
    let pid = backend_of(&pool).await;
    let error = pool.acquire().await.unwrap().query("SELECT pg_sleep(60)", &[]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::StatementTimeout), "{error:?}");
    assert_eq!(backend_of(&pool).await, pid);
}

#[tokio::test]
async fn a_transaction_that_pauses_for_too_long_is_ended_by_the_server() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[("DB_IDLE_IN_TRANSACTION_TIMEOUT_MS", "100")]);
    let mut connection = pool.acquire().await.unwrap();
    let mut transaction = connection.transaction().await.unwrap();
    eventually("the server has ended it", async || database.backends().await.is_empty()).await;
    let error = transaction.execute("SELECT 1", &[]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    drop(connection);
    backend_of(&pool).await;
}

#[tokio::test]
async fn violations_name_their_constraint() {
    let database = Database::with(
        "CREATE TABLE owner (id int CONSTRAINT owner_pkey PRIMARY KEY);
         CREATE TABLE t (n int NOT NULL CONSTRAINT n_unique UNIQUE CONSTRAINT n_positive CHECK (n > 0),
                         owner int CONSTRAINT owner_exists REFERENCES owner);
         INSERT INTO t VALUES (1, NULL)",
    )
    .await;
    let pool = database.pool_of_one(&[]);
    let pid = backend_of(&pool).await;
    let mut connection = pool.acquire().await.unwrap();
    let error = connection.execute("INSERT INTO t VALUES (1, NULL)", &[]).await.unwrap_err();
    assert!(matches!(&error, DatabaseError::UniqueViolation { constraint } if constraint == "n_unique"), "{error:?}");
    assert!(error.violates("n_unique") && !error.violates("n_positive"));
    for (sql, name, expected) in [
        ("INSERT INTO t VALUES (0, NULL)", "n_positive", "23514"),
        ("INSERT INTO t VALUES (2, 7)", "owner_exists", "23503"),
        ("INSERT INTO t VALUES (NULL, NULL)", "n", "23502"),
    ] {
        match connection.execute(sql, &[]).await.unwrap_err() {
            DatabaseError::ConstraintViolation { constraint, sqlstate } => {
                assert_eq!((&*constraint, &*sqlstate), (name, expected));
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    drop(connection);
    assert_eq!(backend_of(&pool).await, pid, "none of this harms a connection");
}

#[tokio::test]
async fn a_server_that_became_read_only_loses_its_connections() {
    let database = Database::with("CREATE TABLE t (n int)").await;
    let read_only =
        |value: &str| format!("ALTER DATABASE {} SET default_transaction_read_only = {value}", database.name);
    database.admin.batch_execute(&read_only("on")).await.unwrap();
    let pool = database.pool_of_one(&[]);
    let demoted = backend_of(&pool).await;
    database.admin.batch_execute(&read_only("off")).await.unwrap();
    let error = pool.acquire().await.unwrap().execute("INSERT INTO t VALUES (1)", &[]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::ReadOnly), "{error:?}");
    assert_ne!(backend_of(&pool).await, demoted);
    assert_eq!(pool.acquire().await.unwrap().execute("INSERT INTO t VALUES (1)", &[]).await.unwrap(), 1);
}

#[tokio::test]
async fn a_table_that_changes_its_shape_breaks_no_statement() {
    let database = Database::with("CREATE TABLE t (n int); INSERT INTO t VALUES (1)").await;
    let pool = database.pool_of_one(&[]);
    let all = "SELECT * FROM t";
    let changing = "UPDATE t SET n = n + 1 RETURNING *";
    let mut connection = pool.acquire().await.unwrap();
    assert_eq!(connection.query_one(all, &[]).await.unwrap().len(), 1);
    assert_eq!(connection.execute(changing, &[]).await.unwrap(), 1);
    database.admin.batch_execute("ALTER TABLE t ADD COLUMN m int").await.unwrap();
    assert_eq!(connection.query_one(all, &[]).await.unwrap().len(), 2);
    assert_eq!(connection.execute(changing, &[]).await.unwrap(), 1);
    let n: i32 = connection.query_one("SELECT n FROM t", &[]).await.unwrap().get(0);
    assert_eq!(n, 3, "each update ran once");
}

#[tokio::test]
async fn inside_a_transaction_a_changed_table_is_a_503_once() {
    let database = Database::with("CREATE TABLE t (n int); INSERT INTO t VALUES (1)").await;
    let pool = database.pool_of_one(&[]);
    let all = "SELECT * FROM t";
    let mut connection = pool.acquire().await.unwrap();
    connection.query(all, &[]).await.unwrap();
    database.admin.batch_execute("ALTER TABLE t ADD COLUMN m int").await.unwrap();
    let error = connection.transaction().await.unwrap().query(all, &[]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    let mut transaction = connection.transaction().await.unwrap();
    assert_eq!(transaction.query_one(all, &[]).await.unwrap().len(), 2);
}

#[tokio::test]
async fn statements_are_prepared_once_a_connection() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[]);
    for number in 0..50_i32 {
        let mut connection = pool.acquire().await.unwrap();
        connection.query_one("SELECT $1::int4", &[&number]).await.unwrap();
        connection.execute("SELECT 1", &[]).await.unwrap();
    }
    let mut connection = pool.acquire().await.unwrap();
    let row = connection.query_one("SELECT count(*) FROM pg_prepared_statements", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 3, "two, and the one that counts");
}

#[tokio::test]
async fn defects_are_unexpected_and_show_no_parameters() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[]);
    let pid = backend_of(&pool).await;
    let secret = "hunter2".to_owned();
    for (sql, part) in [
        ("SELECT $1::text::int", "22P02"),
        ("SELECT $1::int", "error serializing parameter 0"),
        ("SELECT no_such_column, $1::text", "no_such_column"),
    ] {
        let error = pool.acquire().await.unwrap().query(sql, &[&secret]).await.unwrap_err();
        assert!(matches!(error, DatabaseError::Unexpected(_)), "{sql}: {error:?}");
        let shown = format!("{:#}", anyhow::Error::from(error));
        assert!(shown.contains(part) && !shown.contains("hunter2"), "{shown}");
    }
    let mut connection = pool.acquire().await.unwrap();
    for outcome in [
        connection.query_one("SELECT 1 WHERE false", &[]).await.map(drop),
        connection.query_one("SELECT generate_series(1, 2)", &[]).await.map(drop),
        connection.query_opt("SELECT generate_series(1, 2)", &[]).await.map(drop),
    ] {
        assert!(matches!(outcome, Err(DatabaseError::Unexpected(_))), "{outcome:?}");
    }
    assert!(connection.query_opt("SELECT 1 WHERE false", &[]).await.unwrap().is_none());
    drop(connection);
    assert_eq!(backend_of(&pool).await, pid, "none of this harms a connection");
}

#[tokio::test]
async fn a_text_that_cannot_be_stored_is_the_callers_fault() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[]);
    let error = pool.acquire().await.unwrap().query("SELECT $1::text", &[&"a\0b"]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::InvalidText(_)), "{error:?}");
}
