//! More passwords than the threads can hash, and requests that are given up.

use futures_util::future::join_all;

use test_support::eventually;

use crate::served::{Auth, PASSWORD, Tokens, login_as};

const ONE_THREAD: (&str, &str) = ("AUTH_HASH_THREADS", "1");

#[tokio::test]
async fn a_full_queue_is_503_at_once_and_the_task_is_alive_meanwhile() {
    let auth = Auth::start_with(&[ONE_THREAD, ("AUTH_HASH_QUEUE", "1")]).await;
    let tokens = auth.sign_up("ada@example.com").await;
    let occupied = auth.hasher.occupy_thread().await.expect("a free thread");
    let waits = auth.login("ada@example.com", PASSWORD);
    let others = async {
        eventually("one waits", async || auth.hasher.waiting() == 1).await;
        auth.login("ada@example.com", PASSWORD).await.assert_problem(503, "hashing_busy");
        auth.login("nobody@example.com", PASSWORD).await.assert_problem(503, "hashing_busy");
        auth.register("bob@example.com", PASSWORD).await.assert_problem(503, "hashing_busy");
        auth.change_password(&tokens.access, PASSWORD, "another password").await.assert_problem(503, "hashing_busy");
        // What needs no hash goes on.
        auth.app.anonymous().get("/live").await.assert_status(200);
        auth.app.anonymous().get("/ready").await.assert_status(200);
        auth.refresh(&tokens.refresh).await.assert_status(200);
        auth.register("ada@example.com", PASSWORD).await.assert_problem(409, "email_taken");
        drop(occupied);
    };
    let (waited, ()) = tokio::join!(waits, others);
    waited.assert_status(200);
    assert_eq!(auth.hasher.counters().shed(), 4);
    auth.register("bob@example.com", PASSWORD).await.assert_status(201);
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_so_and_their_password_is_not_hashed_later() {
    let auth = Auth::start_with(&[ONE_THREAD, ("AUTH_HASH_DEADLINE_MS", "20")]).await;
    let occupied = loop {
        // On a slow machine even a free thread may take longer.
        if let Ok(occupied) = auth.hasher.occupy_thread().await {
            break occupied;
        }
    };
    let started = auth.hasher.counters().started();
    auth.login("ada@example.com", PASSWORD).await.assert_problem(503, "hashing_busy");
    drop(occupied);
    eventually("the job is thrown away", async || auth.hasher.counters().skipped() > 0).await;
    assert_eq!(auth.hasher.counters().started(), started);
}

#[tokio::test]
async fn an_attempt_that_nobody_looked_at_is_given_back() {
    let auth = Auth::start_with(&[ONE_THREAD, ("AUTH_HASH_QUEUE", "1")]).await;
    let tokens = auth.sign_up("ada@example.com").await;
    let occupied = auth.hasher.occupy_thread().await.expect("a free thread");
    let waits = auth.login("nobody@example.com", PASSWORD);
    let others = async {
        eventually("one waits", async || auth.hasher.waiting() == 1).await;
        for _ in 0..20 {
            auth.login("ada@example.com", PASSWORD).await.assert_problem(503, "hashing_busy");
            auth.change_password(&tokens.access, PASSWORD, "another password")
                .await
                .assert_problem(503, "hashing_busy");
        }
        drop(occupied);
    };
    tokio::join!(waits, others).0.assert_problem(401, "invalid_credentials");
    assert_eq!(auth.count("SELECT sum(failures) FROM auth.login_failures").await, 1, "the one that was wrong");
    auth.session("ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn clients_that_went_away_leave_no_work_behind() {
    let auth = Auth::start_with(&[ONE_THREAD]).await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let occupied = auth.hasher.occupy_thread().await.expect("a free thread");
    let started = auth.hasher.counters().started();
    for round in 1..=3 {
        let logins = join_all((0..20).map(|n| {
            let caller = auth.app.anonymous().from_address([192, 0, round, n]);
            async move { login_as(&caller, "ada@example.com", PASSWORD).await }
        }));
        // The connections close when the futures are dropped.
        tokio::select! {
            _ = logins => panic!("the only thread is occupied"),
            () = eventually("all wait", async || auth.hasher.waiting() == 20) => {}
        }
        eventually("none waits", async || auth.hasher.waiting() == 0).await;
    }
    drop(occupied);
    auth.session("ada@example.com", PASSWORD).await;
    assert_eq!(auth.hasher.counters().started() - started, 1, "the one that somebody waited for");
    assert_eq!(auth.hasher.counters().skipped(), 60);
    assert_eq!(auth.hasher.counters().most_running(), 1);
}

#[tokio::test]
async fn many_logins_at_once_never_hash_more_than_the_threads() {
    let auth = Auth::start_with(&[("AUTH_HASH_THREADS", "2"), ("AUTH_HASH_QUEUE", "1000")]).await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let sessions = join_all((0..60).map(|n| {
        let caller = auth.app.anonymous().from_address([192, 0, 2, n]);
        async move { Tokens::of(login_as(&caller, "ada@example.com", PASSWORD).await.assert_status(200)) }
    }));
    assert_eq!(sessions.await.len(), 60);
    assert!(auth.hasher.counters().most_running() <= 2);
    assert_eq!(auth.hasher.counters().running(), 0);
    assert!(auth.hasher.counters().memory_kib() <= 2 * 64);
}
