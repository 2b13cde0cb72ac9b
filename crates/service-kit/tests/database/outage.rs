//! The server goes away, comes back, or stands still.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use service_kit::database::DatabaseError;
use service_kit::health::Readiness;
use service_kit::problem::Problem;
use stack::postgres::{Options, Postgres};

use crate::readiness::becomes;
use crate::server::{Database, backend_of, backends, connect, create_role, eventually, pairs, pool};

#[tokio::test]
async fn a_restarted_server_is_found_again_and_the_pool_is_warm_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { ephemeral: true, ..Options::new(folder.path()) };
    let server = Postgres::start(options.clone()).await.unwrap();
    let port = server.port();
    let admin = connect(&server.url("postgres")).await;
    create_role(&admin).await;
    admin.batch_execute("CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO app").await.unwrap();
    admin
        .batch_execute("CREATE TABLE s._sqlx_migrations AS SELECT 1::bigint AS version, true AS success")
        .await
        .unwrap();
    admin.batch_execute("GRANT SELECT ON s._sqlx_migrations TO app").await.unwrap();
    let pool = pool(&pairs(port, "postgres"), &[]);
    let readiness = Readiness::new().check("database", pool.readiness("s", 1));
    assert!(pool.warm(Duration::from_secs(30)).await, "sslmode=prefer is content with a server without TLS");
    becomes(&readiness, &[]).await;

    let mut in_use = pool.acquire().await.unwrap();
    server.stop().await;
    let error = in_use.query("SELECT 1", &[]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    drop(in_use);
    assert_eq!(Problem::from(pool.acquire().await.unwrap_err()).status(), 503);
    becomes(&readiness, &["database: no connection to the database"]).await;

    let server = Postgres::start(Options { port: Some(port), ..options }).await.unwrap();
    let admin = connect(&server.url("postgres")).await;
    eventually("the minimum is open again", async || backends(&admin, "postgres").await.len() == 5).await;
    backend_of(&pool).await;
    becomes(&readiness, &[]).await;

    refuses_a_server_without_tls(port).await;
    server.stop().await;
}

/// Here, and not in a test of its own, because it needs a server without TLS.
async fn refuses_a_server_without_tls(port: u16) {
    let error = pool(&format!("{} sslmode=require", pairs(port, "postgres")), &[]).acquire().await.unwrap_err();
    let shown = format!("{:#}", anyhow::Error::from(error));
    assert!(shown.contains("server does not support TLS"), "{shown}");
}

/// The server is there for TCP, but its process stands still: no timeout of the server's ends anything.
#[tokio::test]
async fn a_server_that_stands_still_is_given_up() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[("DB_STATEMENT_TIMEOUT_MS", "1000")]);
    let still = Still::new(backend_of(&pool).await);
    let error = pool.acquire().await.unwrap().query("SELECT 1", &[]).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    // The slot is free as soon as the old connection is closed, which a silent server does not delay for long.
    eventually("another connection answers", async || match pool.acquire().await {
        Ok(mut connection) => connection.query("SELECT 1", &[]).await.is_ok(),
        Err(_) => false,
    })
    .await;
    drop(still);
}

/// A stopped process, for as long as this is held.
struct Still(Pid);

impl Still {
    fn new(pid: i32) -> Self {
        let pid = Pid::from_raw(pid);
        kill(pid, Signal::SIGSTOP).unwrap();
        Self(pid)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}
