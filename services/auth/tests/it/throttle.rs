//! Slowing guesses down, on every way in.

use std::net::IpAddr;

use futures_util::future::join_all;
use test_support::{Caller, Reply};

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, login_as, statuses};

const FREE_ATTEMPTS: usize = 5;
const WINDOW_SECONDS: u64 = 15 * 60;

fn from(auth: &Auth, address: &str) -> Caller {
    auth.app.anonymous().from_address(address.parse::<IpAddr>().expect("an address"))
}

#[track_caller]
fn retry_after(reply: &Reply) -> u64 {
    reply.assert_problem(429, "too_many_attempts");
    reply.header("retry-after").expect("a time").parse().expect("seconds")
}

/// Uses the free attempts up.
async fn fail_until_throttled(auth: &Auth, email: &str) {
    for _ in 0..FREE_ATTEMPTS {
        auth.login(email, OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
    }
}

#[tokio::test]
async fn from_the_sixth_wrong_attempt_on_pauses_double_to_a_minute() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    fail_until_throttled(&auth, "ada@example.com").await;
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(retry_after(&auth.login("ada@example.com", OTHER_PASSWORD).await), expected);
        auth.advance_seconds(expected);
        auth.login("ada@example.com", OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
    }
}

#[tokio::test]
async fn waiting_as_told_is_enough_and_not_waiting_does_not_prolong_it() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    fail_until_throttled(&auth, "ada@example.com").await;
    assert_eq!(retry_after(&auth.login("ada@example.com", PASSWORD).await), 1);
    auth.advance_seconds(1);
    auth.login("ada@example.com", OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
    assert_eq!(retry_after(&auth.login("ada@example.com", PASSWORD).await), 2);
    auth.advance_seconds(1);
    for _ in 0..10 {
        assert_eq!(retry_after(&auth.login("ada@example.com", PASSWORD).await), 1, "the rest of the pause");
    }
    auth.advance_seconds(1);
    auth.session("ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn a_refused_attempt_is_not_hashed() {
    let auth = Auth::start().await;
    fail_until_throttled(&auth, "ada@example.com").await;
    let before = auth.hasher.counters().started();
    retry_after(&auth.login("ada@example.com", PASSWORD).await);
    assert_eq!(auth.hasher.counters().started(), before);
}

#[tokio::test]
async fn unknown_accounts_are_throttled_as_known_ones() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let mut courses = Vec::new();
    for email in ["ada@example.com", "nobody@example.com"] {
        let mut course = Vec::new();
        for _ in 0..8 {
            let reply = auth.login(email, OTHER_PASSWORD).await;
            let mut body = reply.json();
            body["request_id"].take();
            course.push((reply.status, reply.header("retry-after").map(str::to_owned), body));
        }
        courses.push(course);
    }
    assert_eq!(courses[0], courses[1]);
    assert_eq!(courses[0].iter().filter(|(status, ..)| *status == 429).count(), 3);
}

#[tokio::test]
async fn a_success_forgets_the_failures() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    for _ in 0..3 {
        for _ in 0..FREE_ATTEMPTS - 1 {
            auth.login("ada@example.com", OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
        }
        auth.session("ada@example.com", PASSWORD).await;
    }
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 0);
}

#[tokio::test]
async fn failures_are_forgotten_15_minutes_after_the_first() {
    let auth = Auth::start().await;
    fail_until_throttled(&auth, "ada@example.com").await;
    auth.advance_seconds(WINDOW_SECONDS - 1);
    assert_eq!(retry_after(&auth.login("ada@example.com", OTHER_PASSWORD).await), 1);
    auth.advance_seconds(1);
    fail_until_throttled(&auth, "ada@example.com").await;
    retry_after(&auth.login("ada@example.com", OTHER_PASSWORD).await);
}

#[tokio::test]
async fn of_a_hundred_parallel_guesses_on_two_tasks_five_are_looked_at() {
    let one = Auth::start().await;
    let two = one.another_task().await;
    one.register("ada@example.com", PASSWORD).await.assert_status(201);
    let hashed = || one.hasher.counters().started() + two.hasher.counters().started();
    let before = hashed();
    let guesses = (0..100).map(|n| {
        let task = if n % 2 == 0 { &one } else { &two };
        async move { task.login("ada@example.com", &format!("guess number {n}")).await }
    });
    let replies = join_all(guesses).await;
    assert_eq!(statuses(&replies), [(401, FREE_ATTEMPTS), (429, 100 - FREE_ATTEMPTS)].into());
    assert_eq!(hashed() - before, FREE_ATTEMPTS as u64);

    assert_eq!(retry_after(&one.login("ada@example.com", PASSWORD).await), 1);
    one.advance_seconds(1);
    two.session("ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn the_victim_of_somebody_elses_guesses_gets_in_from_elsewhere() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let attacker = from(&auth, "203.0.113.66");
    let guesses = join_all((0..50).map(|_| login_as(&attacker, "ada@example.com", OTHER_PASSWORD))).await;
    assert_eq!(statuses(&guesses)[&429], 45);
    login_as(&from(&auth, "198.51.100.7"), "ada@example.com", PASSWORD).await.assert_status(200);
    retry_after(&login_as(&attacker, "ada@example.com", PASSWORD).await);
}

#[tokio::test]
async fn all_of_an_ipv6_network_is_one_client() {
    let auth = Auth::start().await;
    for n in 0..FREE_ATTEMPTS {
        let reply = login_as(&from(&auth, &format!("2001:db8:1:2::{n}")), "ada@example.com", PASSWORD).await;
        reply.assert_problem(401, "invalid_credentials");
    }
    retry_after(&login_as(&from(&auth, "2001:db8:1:2:ffff::1"), "ada@example.com", PASSWORD).await);
    login_as(&from(&auth, "2001:db8:1:3::1"), "ada@example.com", PASSWORD)
        .await
        .assert_problem(401, "invalid_credentials");
}

#[tokio::test]
async fn every_spelling_of_an_email_counts_as_the_same_account() {
    let auth = Auth::start().await;
    for email in ["ada@example.com", "ADA@example.com", " ada@example.com", "ａda@example.com", "ada@EXAMPLE.com"] {
        auth.login(email, PASSWORD).await.assert_problem(401, "invalid_credentials");
    }
    retry_after(&auth.login("Ada@Example.Com", PASSWORD).await);
}

#[tokio::test]
async fn changing_the_password_counts_as_logging_in_does() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let guess = async || auth.change_password(&tokens.access, "not my password", OTHER_PASSWORD).await;
    for _ in 0..3 {
        guess().await.assert_problem(403, "current_password_wrong");
    }
    for _ in 3..FREE_ATTEMPTS {
        auth.login("ada@example.com", OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
    }
    assert_eq!(retry_after(&guess().await), 1);
    assert_eq!(retry_after(&auth.login("ada@example.com", PASSWORD).await), 1);
    auth.advance_seconds(1);
    auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD).await.assert_status(204);
    auth.session("ada@example.com", OTHER_PASSWORD).await;
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let auth = Auth::start_with(&[("AUTH_THROTTLE", "off")]).await;
    let tokens = auth.sign_up("ada@example.com").await;
    for _ in 0..2 * FREE_ATTEMPTS {
        auth.login("ada@example.com", OTHER_PASSWORD).await.assert_problem(401, "invalid_credentials");
        auth.change_password(&tokens.access, "not my password", OTHER_PASSWORD)
            .await
            .assert_problem(403, "current_password_wrong");
    }
    auth.session("ada@example.com", PASSWORD).await;
    auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD).await.assert_status(204);
    assert_eq!(auth.count("SELECT count(*) FROM auth.login_failures").await, 0);
}

#[tokio::test]
async fn neither_emails_nor_addresses_are_stored_with_the_failures() {
    let auth = Auth::start().await;
    login_as(&from(&auth, "203.0.113.66"), "ada@example.com", PASSWORD).await.assert_status(401);
    let row: String = auth.admin.query_one("SELECT f::text FROM auth.login_failures f", &[]).await.unwrap().get(0);
    // bytea is shown in hexadecimal: "ada@" and 203.0.113.66.
    for text in ["ada", "61646140", "203.0.113", "cb007142"] {
        assert!(!row.contains(text), "{text} in {row}");
    }
}
