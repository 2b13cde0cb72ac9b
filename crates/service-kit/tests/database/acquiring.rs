//! Who gets a connection, who waits, and who is told to come back.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::response::IntoResponse;
use service_kit::database::DatabaseError;
use service_kit::problem::Problem;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::server::{Database, WARM, backend_of, eventually, pairs, pool, server};

#[tokio::test]
async fn when_all_connections_stay_in_use_the_answer_is_503_with_retry_after() {
    let database = Database::create().await;
    let pool = database.pool(&[("DB_POOL_MAX", "1"), ("DB_POOL_ACQUIRE_TIMEOUT_MS", "50")]);
    assert!(pool.warm(WARM).await);
    let _held = pool.acquire().await.unwrap();
    let error = pool.acquire().await.unwrap_err();
    assert!(matches!(error, DatabaseError::AcquireTimeout), "{error:?}");
    let response = Problem::from(error).into_response();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
}

#[tokio::test]
async fn who_waits_gets_the_connection_that_comes_back() {
    let database = Database::create().await;
    let pool = database.pool_of_one(&[]);
    let mut held = pool.acquire().await.unwrap();
    let pid: i32 = held.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { backend_of(&pool).await }
    });
    eventually("somebody waits", async || pool.status().waiting == 1).await;
    drop(held);
    assert_eq!(waiter.await.unwrap(), pid);
    assert_eq!(pool.status().waiting, 0);
}

#[tokio::test]
async fn without_a_server_nobody_waits_for_the_timeout() {
    // A port that was free a moment ago.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
    let pool = pool(&pairs(port, "nothing"), &[]);
    let error = pool.acquire().await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    assert_eq!(Problem::from(error).status(), 503);
}

#[tokio::test]
async fn a_server_that_does_not_let_us_in_is_unavailable_and_not_busy() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = silent.local_addr().unwrap().port();
    for (acquire, connect) in [("100", "30000"), ("30000", "100")] {
        let settings = [("DB_POOL_ACQUIRE_TIMEOUT_MS", acquire), ("DB_CONNECT_TIMEOUT_MS", connect)];
        let error = pool(&pairs(port, "nothing"), &settings).acquire().await.unwrap_err();
        assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_unavailable_and_shows_nobody() {
    let url = format!("postgres://app:hunter2@127.0.0.1:{}/postgres", server().postgres.port());
    let error = pool(&url, &[]).acquire().await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    let shown = format!("{:#} {error:?}", anyhow::Error::from(pool(&url, &[]).acquire().await.unwrap_err()));
    assert!(shown.contains("28P01"), "{shown}");
    assert!(!shown.contains("hunter2") && !shown.contains("127.0.0.1"), "{shown}");
}

#[tokio::test]
async fn exhausted_servers_are_unavailable() {
    let database = Database::create().await;
    database.admin.batch_execute(&format!("ALTER DATABASE {} CONNECTION LIMIT 3", database.name)).await.unwrap();
    let pool = database.pool(&[("DB_POOL_MIN", "0")]);
    // One of the three is the administrator's.
    let _held = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    let error = pool.acquire().await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unavailable(_)), "{error:?}");
    assert!(format!("{:#}", anyhow::Error::from(error)).contains("53300"));
}

/// A server that is slow to let us in would otherwise be asked again and again, and never in vain enough to be used.
#[tokio::test]
async fn a_connection_that_came_too_late_for_its_request_is_kept_for_the_next() {
    let database = Database::create().await;
    let gate = Arc::new(Semaphore::new(0));
    let port = gated_proxy(Arc::clone(&gate)).await;
    let pool = pool(
        &pairs(port, &database.name),
        &[("DB_POOL_ACQUIRE_TIMEOUT_MS", "50"), ("DB_POOL_MAX", "1"), ("DB_POOL_MIN", "0")],
    );
    assert!(pool.acquire().await.is_err());
    gate.add_permits(1);
    eventually("it is kept", async || pool.status().idle == 1).await;
    let pid = database.backends().await;
    assert_eq!(vec![backend_of(&pool).await], pid);
}

#[tokio::test]
async fn a_connection_that_came_too_late_for_its_pool_is_closed() {
    let database = Database::create().await;
    let gate = Arc::new(Semaphore::new(0));
    let port = gated_proxy(Arc::clone(&gate)).await;
    let pool = pool(&pairs(port, &database.name), &[("DB_POOL_ACQUIRE_TIMEOUT_MS", "50"), ("DB_POOL_MIN", "0")]);
    assert!(pool.acquire().await.is_err());
    let closing = tokio::spawn({
        let pool = pool.clone();
        async move { pool.close(WARM).await }
    });
    // The test's runtime has one thread: the pool is closed now, and waits.
    tokio::task::yield_now().await;
    gate.add_permits(1);
    assert!(closing.await.unwrap());
}

/// Passes one connection on for each permit of the gate.
async fn gated_proxy(gate: Arc<Semaphore>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            gate.acquire().await.unwrap().forget();
            let mut upstream = TcpStream::connect((Ipv4Addr::LOCALHOST, server().postgres.port())).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut upstream).await });
        }
    });
    port
}
