//! A database that is busy, away, or not what the service needs.

use serde_json::json;

use test_support::{TestPostgres, eventually};

use crate::served::Actors;

#[tokio::test]
async fn when_every_connection_is_taken_it_is_503_and_recovers() {
    let pool = [("DB_POOL_MAX", "2"), ("DB_POOL_MIN", "0"), ("DB_POOL_ACQUIRE_TIMEOUT_MS", "100")];
    let actors = Actors::start_with(&pool, &[]).await;
    let caller = actors.app.as_user(&actors.user("ada@example.com"));
    caller.get("/v1/actors/me").await.assert_status(200);

    let taken = [actors.pool.acquire().await.unwrap(), actors.pool.acquire().await.unwrap()];
    caller.get("/v1/actors/me").await.assert_problem(503, "database_busy");
    caller.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await.assert_problem(503, "database_busy");
    actors.app.anonymous().get("/live").await.assert_status(200);
    actors.app.anonymous().get("/ready").await.assert_status(200);

    drop(taken);
    caller.get("/v1/actors/me").await.assert_status(200);
}

#[tokio::test]
async fn a_stopped_database_is_503_until_it_is_back_and_nothing_is_restarted() {
    let mut server = TestPostgres::start(&[]).await;
    server.migrate().await;
    let actors = Actors::start_on(&server.url("actor"), &[], &[]).await;
    actors.pool.start_keeper();
    let (caller, anyone) = (actors.app.as_user(&actors.user("ada@example.com")), actors.app.anonymous());
    caller.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await.assert_status(200);
    eventually("the task is ready", async || anyone.get("/ready").await.status == 200).await;

    server.stop().await;
    for _ in 0..10 {
        caller.get("/v1/actors/me").await.assert_problem(503, "database_unavailable");
        caller
            .patch_json("/v1/actors/me", json!({"display_name": "Eve"}))
            .await
            .assert_problem(503, "database_unavailable");
        anyone.get("/live").await.assert_status(200);
    }
    let reason = anyone.get("/ready").await.assert_problem(503, "not_ready");
    assert!(reason["detail"].as_str().unwrap().contains("database"), "{reason}");

    server.resume().await;
    eventually("the task is ready again", async || anyone.get("/ready").await.status == 200).await;
    eventually("the profile is served again", async || caller.get("/v1/actors/me").await.status == 200).await;
    assert_eq!(caller.get("/v1/actors/me").await.json()["display_name"], "Ada");
    anyone.get("/live").await.assert_status(200);
}

#[tokio::test]
async fn with_an_older_schema_the_service_is_alive_but_not_ready() {
    let actors = Actors::start().await;
    actors.app.as_user(&actors.user("ada@example.com")).get("/v1/actors/me").await.assert_status(200);
    let anyone = actors.app.anonymous();
    actors.execute("UPDATE actor._sqlx_migrations SET version = version - 1").await;
    let reason = anyone.get("/ready").await.assert_problem(503, "not_ready");
    assert!(reason["detail"].as_str().unwrap().contains("schema actor must be at"), "{reason}");
    anyone.get("/live").await.assert_status(200);

    actors.execute("UPDATE actor._sqlx_migrations SET version = version + 1").await;
    anyone.get("/ready").await.assert_status(200);
}

#[tokio::test]
async fn the_services_role_sees_nothing_of_the_others() {
    let actors = Actors::start().await;
    let mut connection = actors.pool.acquire().await.unwrap();
    for statement in [
        "SELECT * FROM auth.users",
        "SELECT * FROM document.documents",
        "CREATE TABLE actor.more (id int)",
        "DELETE FROM actor._sqlx_migrations",
    ] {
        let error = connection.execute(statement, &[]).await.unwrap_err();
        assert!(format!("{error:?}").contains("42501"), "{statement}: {error:?}");
    }
}
