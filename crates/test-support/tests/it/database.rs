//! A database per test.

use test_support::{TestDatabase, eventually};

#[tokio::test]
async fn each_test_has_rows_of_its_own() {
    let (one, other) = tokio::join!(TestDatabase::create(), TestDatabase::create());
    assert_ne!(one.name(), other.name());
    let insert = "INSERT INTO actors (id, created_at, updated_at) VALUES (gen_random_uuid(), now(), now())";
    one.connect("actor").await.batch_execute(insert).await.unwrap();
    for (database, expected) in [(&one, 1), (&other, 0)] {
        let rows = database.connect("actor").await.query_one("SELECT count(*) FROM actors", &[]).await.unwrap();
        assert_eq!(rows.get::<_, i64>(0), expected);
    }
}

#[tokio::test]
async fn a_dropped_database_is_gone_also_while_somebody_is_connected() {
    let kept = TestDatabase::create().await;
    let dropped = TestDatabase::create().await;
    let name = dropped.name().to_owned();
    let session = dropped.connect("auth").await;
    drop(dropped);
    let admin = kept.admin().await;
    eventually("the database is gone", async || {
        admin.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name]).await.unwrap().is_none()
    })
    .await;
    eventually("its session has ended", async || session.is_closed()).await;
}

#[tokio::test]
async fn an_empty_database_has_no_schema_of_ours() {
    let database = TestDatabase::empty().await;
    let admin = database.admin().await;
    let ours = "SELECT count(*) FROM pg_namespace WHERE nspname IN ('auth', 'actor', 'document')";
    assert_eq!(admin.query_one(ours, &[]).await.unwrap().get::<_, i64>(0), 0);
}
