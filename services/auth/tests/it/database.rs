//! A database that is busy, away, or not what the service needs.

use serde_json::json;
use test_support::{Reply, eventually};

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, Tokens};

/// One of each request that needs the database, at once.
async fn one_of_each(auth: &Auth, tokens: &Tokens) -> [Reply; 5] {
    let (registered, logged_in, refreshed, logged_out, changed) = tokio::join!(
        auth.register("new@example.com", PASSWORD),
        auth.login("ada@example.com", PASSWORD),
        auth.refresh(&tokens.refresh),
        auth.logout(&tokens.refresh),
        auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD),
    );
    [registered, logged_in, refreshed, logged_out, changed]
}

#[tokio::test]
async fn when_every_connection_is_taken_it_is_503_and_recovers() {
    let auth = Auth::start_with(&[("DB_POOL_MAX", "1"), ("DB_POOL_ACQUIRE_TIMEOUT_MS", "2000")]).await;
    let tokens = auth.sign_up("ada@example.com").await;
    let taken = auth.pool.acquire().await.unwrap();
    for reply in one_of_each(&auth, &tokens).await {
        reply.assert_problem(503, "database_busy");
    }
    for path in ["/live", "/ready", "/.well-known/jwks.json"] {
        auth.app.anonymous().get(path).await.assert_status(200);
    }
    drop(taken);
    auth.session("ada@example.com", PASSWORD).await;
    auth.refresh(&tokens.refresh).await.assert_status(200);
    auth.register("new@example.com", PASSWORD).await.assert_status(201);
}

#[tokio::test]
async fn no_connection_is_held_while_a_password_is_hashed() {
    let auth = Auth::start_with(&[("DB_POOL_MAX", "1"), ("AUTH_HASH_THREADS", "1")]).await;
    let tokens = auth.sign_up("ada@example.com").await;
    let occupied = auth.hasher.occupy_thread().await.expect("a free thread");
    let hashing = async {
        tokio::join!(
            auth.login("ada@example.com", PASSWORD),
            auth.login("nobody@example.com", PASSWORD),
            auth.register("bob@example.com", PASSWORD),
        )
    };
    let other = async {
        eventually("all wait for the thread", async || auth.hasher.waiting() == 3).await;
        auth.refresh(&tokens.refresh).await.assert_status(200);
        drop(occupied);
    };
    let ((right, unknown, new), ()) = tokio::join!(hashing, other);
    right.assert_status(200);
    unknown.assert_problem(401, "invalid_credentials");
    new.assert_status(201);
}

#[tokio::test]
async fn a_stopped_database_is_503_until_it_is_back_and_nothing_is_restarted() {
    let (auth, mut server) = Auth::start_on_own_server().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let anyone = auth.app.anonymous();
    anyone.get("/ready").await.assert_status(200);

    server.stop().await;
    for reply in one_of_each(&auth, &tokens).await {
        reply.assert_problem(503, "database_unavailable");
    }
    anyone.get("/ready").await.assert_problem(503, "not_ready");
    anyone.get("/live").await.assert_status(200);
    anyone.get("/.well-known/jwks.json").await.assert_status(200);

    server.resume().await;
    eventually("ready again", async || anyone.get("/ready").await.status == 200).await;
    eventually("working again", async || auth.login("ada@example.com", PASSWORD).await.status == 200).await;
    auth.refresh(&tokens.refresh).await.assert_status(200);
}

#[tokio::test]
async fn without_its_schema_the_service_is_alive_but_not_ready() {
    let auth = Auth::start().await;
    let anyone = auth.app.anonymous();
    auth.admin
        .execute("DELETE FROM auth._sqlx_migrations WHERE version = $1", &[&auth::REQUIRED_SCHEMA_VERSION])
        .await
        .unwrap();
    anyone.get("/ready").await.assert_problem(503, "not_ready");
    anyone.get("/live").await.assert_status(200);
}

#[tokio::test]
async fn the_schema_that_is_required_is_the_newest_there_is() {
    let auth = Auth::start().await;
    let newest = auth.count("SELECT max(version) FROM auth._sqlx_migrations").await;
    assert_eq!(newest, auth::REQUIRED_SCHEMA_VERSION);
}

#[tokio::test]
async fn what_the_client_sends_never_becomes_sql() {
    let auth = Auth::start().await;
    auth.sign_up("ada@example.com").await;
    for text in ["' OR '1'='1", "x'; DROP TABLE auth.users; --", "\\", "%", "$1"] {
        let body = json!({"email": "ada@example.com", "password": text});
        auth.app.anonymous().post_json("/v1/auth/login", body).await.assert_problem(401, "invalid_credentials");
        let body = json!({"email": format!("{text}@example.com"), "password": PASSWORD});
        let reply = auth.app.anonymous().post_json("/v1/auth/login", body).await;
        assert!([401, 422].contains(&reply.status.as_u16()), "{text}: {}", reply.status);
        auth.refresh(text).await.assert_problem(401, "invalid_refresh_token");
        auth.advance_seconds(15 * 60);
    }
    auth.session("ada@example.com", PASSWORD).await;
}
