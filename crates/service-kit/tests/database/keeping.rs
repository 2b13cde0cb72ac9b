//! The minimum is open at any time, the maximum is never exceeded, and nothing grows old.

use std::time::Duration;

use crate::server::{Database, WARM, backend_of, eventually};

#[tokio::test]
async fn the_minimum_is_open_before_the_first_request() {
    let database = Database::create().await;
    let pool = database.pool(&[]);
    assert_eq!(pool.status().size(), 0, "a pool opens nothing by itself");
    assert!(pool.warm(WARM).await);
    assert_eq!(database.backends().await.len(), 5);
    assert_eq!((pool.status().idle, pool.status().in_use), (5, 0));
}

#[tokio::test]
async fn warm_connections_are_used_before_new_ones_are_opened() {
    let database = Database::create().await;
    let pool = database.pool(&[("DB_POOL_MIN", "2"), ("DB_POOL_MAX", "3")]);
    assert!(pool.warm(WARM).await);
    let warm = database.backends().await;
    let mut first = pool.acquire().await.unwrap();
    let mut second = pool.acquire().await.unwrap();
    for connection in [&mut first, &mut second] {
        let pid: i32 = connection.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        assert!(warm.contains(&pid));
    }
    assert_eq!(database.backends().await, warm);
}

#[tokio::test]
async fn warm_says_when_the_minimum_was_not_reached() {
    let database = Database::create().await;
    database.admin.batch_execute(&format!("ALTER DATABASE {} CONNECTION LIMIT 1", database.name)).await.unwrap();
    let pool = database.pool(&[("DB_POOL_MIN", "2")]);
    assert!(!pool.warm(Duration::from_millis(300)).await);
}

#[tokio::test]
async fn terminated_connections_are_replaced_without_a_request_noticing() {
    let database = Database::create().await;
    let pool = database.pool(&[]);
    assert!(pool.warm(WARM).await);
    let old = database.backends().await;
    database.terminate(&old).await;
    eventually("five others are there", async || {
        let now = database.backends().await;
        now.len() == 5 && old.iter().all(|pid| !now.contains(pid))
    })
    .await;
    eventually("the pool knows", async || pool.status().idle == 5).await;
    assert!(!old.contains(&backend_of(&pool).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_maximum_is_never_exceeded() {
    let database = Database::create().await;
    let pool = database.pool(&[("DB_POOL_MAX", "3"), ("DB_POOL_MIN", "2")]);
    assert!(pool.warm(WARM).await);
    let requests: Vec<_> = (0..200)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move {
                let mut connection = pool.acquire().await.unwrap();
                let sql =
                    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND datname = current_database()";
                let there: i64 = connection.query_one(sql, &[]).await.unwrap().get(0);
                (there, pool.status().size())
            })
        })
        .collect();
    let mut most = 0;
    for request in requests {
        let (there, size) = request.await.unwrap();
        assert!(there <= 3 && size <= 3, "{there} on the server, {size} in the pool");
        most = most.max(there);
    }
    assert_eq!(most, 3, "the pool grows up to its maximum when there is need");
}

#[tokio::test]
async fn old_connections_are_replaced_and_the_minimum_stays_open_meanwhile() {
    let database = Database::create().await;
    let settings = [("DB_POOL_MIN", "2"), ("DB_POOL_MAX", "4"), ("DB_POOL_MAX_LIFETIME_SECONDS", "1")];
    let pool = database.pool(&settings);
    assert!(pool.warm(WARM).await);
    let old = database.backends().await;
    eventually("others are there", async || {
        assert!(pool.status().size() >= 2, "{:?}", pool.status());
        let now = database.backends().await;
        old.iter().all(|pid| !now.contains(pid))
    })
    .await;
}

#[tokio::test]
async fn old_connections_are_replaced_where_minimum_and_maximum_are_the_same() {
    let database = Database::create().await;
    let settings = [("DB_POOL_MIN", "2"), ("DB_POOL_MAX", "2"), ("DB_POOL_MAX_LIFETIME_SECONDS", "1")];
    let pool = database.pool(&settings);
    assert!(pool.warm(WARM).await);
    let old = database.backends().await;
    eventually("two others are there", async || {
        let now = database.backends().await;
        now.len() == 2 && old.iter().all(|pid| !now.contains(pid))
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_grew_old_in_use_is_replaced_when_it_comes_back() {
    let database = Database::create().await;
    // No keeper: nobody else could close it.
    let pool = database.pool_of_one(&[("DB_POOL_MAX_LIFETIME_SECONDS", "1")]);
    let mut connection = pool.acquire().await.unwrap();
    let old: i32 = connection.query_one("SELECT pg_backend_pid() FROM pg_sleep(1.1)", &[]).await.unwrap().get(0);
    drop(connection);
    assert_ne!(backend_of(&pool).await, old);
}

#[tokio::test]
async fn what_a_burst_left_behind_is_closed_down_to_the_minimum() {
    let database = Database::create().await;
    let settings = [("DB_POOL_MIN", "1"), ("DB_POOL_MAX", "4"), ("DB_POOL_IDLE_TIMEOUT_SECONDS", "1")];
    let pool = database.pool(&settings);
    assert!(pool.warm(WARM).await);
    let mut burst = Vec::new();
    for _ in 0..4 {
        burst.push(pool.acquire().await.unwrap());
    }
    assert_eq!(pool.status().size(), 4);
    drop(burst);
    eventually("one is left", async || {
        assert!(pool.status().size() >= 1);
        // Traffic for one connection keeps one, and not all in turn.
        backend_of(&pool).await;
        pool.status().size() == 1 && database.backends().await.len() == 1
    })
    .await;
}

#[tokio::test]
async fn a_dropped_pool_leaves_no_connection_behind() {
    let database = Database::create().await;
    let pool = database.pool(&[]);
    assert!(pool.warm(WARM).await);
    drop(pool);
    eventually("all are closed", async || database.backends().await.is_empty()).await;
}

#[tokio::test]
async fn a_closed_pool_waits_for_those_in_use_and_gives_out_no_more() {
    let database = Database::create().await;
    let pool = database.pool(&[]);
    assert!(pool.warm(WARM).await);
    let connection = pool.acquire().await.unwrap();
    assert!(!pool.close(Duration::from_millis(50)).await, "one is in use");
    assert!(pool.acquire().await.is_err());
    drop(connection);
    assert!(pool.close(WARM).await);
    eventually("all are closed", async || database.backends().await.is_empty()).await;
}
