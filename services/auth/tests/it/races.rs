//! What ends sessions wins, however requests interleave.
//!
//! Each interleaving is forced: a transaction of the test's own does to the rows what the other request would do, holds them until
//! the request under test waits for them, and then commits.

use futures_util::future::join_all;
use tokio_postgres::Client;

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD, Tokens, statuses};

const END_FAMILIES: &str = "UPDATE auth.refresh_families SET revoked_at = now(), revoke_reason = 'logout'";

/// Runs `statement` and keeps its transaction open.
async fn begin(other: &Client, statement: &str) {
    other.batch_execute("BEGIN").await.unwrap();
    other.batch_execute(statement).await.unwrap();
}

#[tokio::test]
async fn a_refresh_that_waits_for_a_logout_sees_it() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let other = auth.another_admin().await;
    begin(&other, END_FAMILIES).await;
    let refresh = auth.refresh(&tokens.refresh);
    let commit = async {
        auth.until_waiting_for_locks(1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(refresh, commit).0.assert_problem(401, "invalid_refresh_token");
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_tokens").await, 1, "no child was made");
}

#[tokio::test]
async fn a_refresh_that_waits_for_another_of_the_same_token_is_the_second() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let other = auth.another_admin().await;
    let used_earlier = auth.now() - time::Duration::seconds(11);
    other.batch_execute("BEGIN").await.unwrap();
    other.execute("UPDATE auth.refresh_tokens SET first_used_at = $1", &[&used_earlier]).await.unwrap();
    let refresh = auth.refresh(&tokens.refresh);
    let commit = async {
        auth.until_waiting_for_locks(1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(refresh, commit).0.assert_problem(401, "invalid_refresh_token");
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoke_reason = 'reuse'").await, 1);
}

#[tokio::test]
async fn a_logout_that_waits_for_a_refresh_ends_the_child_too() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let other = auth.another_admin().await;
    begin(&other, "SELECT FROM auth.refresh_families FOR UPDATE").await;
    let refresh = auth.refresh(&tokens.refresh);
    let rest = async {
        auth.until_waiting_for_locks(1).await;
        let logout = auth.logout(&tokens.refresh);
        let commit = async {
            auth.until_waiting_for_locks(2).await;
            other.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(logout, commit).0
    };
    let (refreshed, logged_out) = tokio::join!(refresh, rest);
    logged_out.assert_status(204);
    if refreshed.status == 200 {
        auth.refresh(&Tokens::of(&refreshed).refresh).await.assert_problem(401, "invalid_refresh_token");
    }
}

#[tokio::test]
async fn a_login_that_waits_for_a_password_change_does_not_get_in_with_the_old_one() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let new = auth.hasher.hash(auth::password::Password::attempt(OTHER_PASSWORD.to_owned()).unwrap()).await.unwrap();
    let other = auth.another_admin().await;
    other.batch_execute("BEGIN").await.unwrap();
    other.execute("UPDATE auth.users SET password_hash = $1", &[&new.as_str()]).await.unwrap();
    let login = auth.login("ada@example.com", PASSWORD);
    let commit = async {
        auth.until_waiting_for_locks(1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(login, commit).0.assert_problem(401, "invalid_credentials");
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families").await, 0);
    auth.session("ada@example.com", OTHER_PASSWORD).await;
}

#[tokio::test]
async fn a_login_that_waits_for_the_account_to_be_locked_does_not_get_in() {
    let auth = Auth::start().await;
    auth.register("ada@example.com", PASSWORD).await.assert_status(201);
    let other = auth.another_admin().await;
    begin(&other, "UPDATE auth.users SET disabled_at = now()").await;
    let login = auth.login("ada@example.com", PASSWORD);
    let commit = async {
        auth.until_waiting_for_locks(1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(login, commit).0.assert_problem(401, "invalid_credentials");
}

#[tokio::test]
async fn a_login_whose_hash_another_login_replaces_meanwhile_succeeds() {
    let old = Auth::start_with(&[("AUTH_ARGON2_MEMORY_KIB", "128")]).await;
    old.register("ada@example.com", PASSWORD).await.assert_status(201);
    let auth = old.another_task_with(&[("AUTH_ARGON2_MEMORY_KIB", "64")]).await;
    let upgraded = auth.hasher.hash(auth::password::Password::attempt(PASSWORD.to_owned()).unwrap()).await.unwrap();
    let other = auth.another_admin().await;
    other.batch_execute("BEGIN").await.unwrap();
    other.execute("UPDATE auth.users SET password_hash = $1", &[&upgraded.as_str()]).await.unwrap();
    let login = auth.login("ada@example.com", PASSWORD);
    let change = async {
        auth.until_waiting_for_locks(1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(login, change).0.assert_status(200);
    assert_eq!(auth.stored_hash().await, upgraded.as_str());
}

#[tokio::test]
async fn parallel_first_logins_after_a_change_of_cost_all_succeed() {
    let old = Auth::start_with(&[("AUTH_ARGON2_MEMORY_KIB", "128")]).await;
    old.register("ada@example.com", PASSWORD).await.assert_status(201);
    let auth = old.another_task_with(&[("AUTH_ARGON2_MEMORY_KIB", "64"), ("AUTH_THROTTLE", "off")]).await;
    let replies = join_all((0..10).map(|_| auth.login("ada@example.com", PASSWORD))).await;
    assert_eq!(statuses(&replies), [(200, 10)].into());
}

#[tokio::test]
async fn a_password_change_that_waits_for_a_login_ends_its_session() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let other = auth.another_admin().await;
    // What a login does after the hash.
    begin(&other, "SELECT FROM auth.users FOR SHARE").await;
    other
        .batch_execute(
            "INSERT INTO auth.refresh_families (id, user_id, created_at, expires_at)
             SELECT gen_random_uuid(), id, now(), now() + interval '1 day' FROM auth.users",
        )
        .await
        .unwrap();
    let change = auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD);
    let commit = async {
        auth.until_waiting_for_locks(1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(change, commit).0.assert_status(204);
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoked_at IS NULL").await, 0);
}

#[tokio::test]
async fn a_password_change_whose_hash_a_login_replaces_meanwhile_succeeds() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let upgraded = auth.hasher.hash(auth::password::Password::attempt(PASSWORD.to_owned()).unwrap()).await.unwrap();
    let other = auth.another_admin().await;
    other.batch_execute("BEGIN").await.unwrap();
    other.execute("UPDATE auth.users SET password_hash = $1", &[&upgraded.as_str()]).await.unwrap();
    let change = auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD);
    let commit = async {
        auth.until_waiting_for_locks(1).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(change, commit).0.assert_status(204);
    auth.session("ada@example.com", OTHER_PASSWORD).await;
}

#[tokio::test]
async fn of_two_password_changes_at_once_one_wins_and_the_other_is_told_so() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let (one, two) = tokio::join!(
        auth.change_password(&tokens.access, PASSWORD, "the first new password"),
        auth.change_password(&tokens.access, PASSWORD, "the second new password"),
    );
    let (winner, loser) =
        if one.status == 204 { ("the first new password", two) } else { ("the second new password", one) };
    loser.assert_problem(403, "current_password_wrong");
    auth.session("ada@example.com", winner).await;
}

#[tokio::test]
async fn no_token_survives_a_password_change_among_refreshes_and_logins() {
    let auth = Auth::start_with(&[("AUTH_THROTTLE", "off")]).await;
    let tokens = auth.sign_up("ada@example.com").await;
    let children = join_all((0..10).map(|_| auth.refresh(&tokens.refresh)));
    let logins = join_all((0..10).map(|_| auth.login("ada@example.com", PASSWORD)));
    let change = auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD);
    let (refreshed, logged_in, changed) = tokio::join!(children, logins, change);
    changed.assert_status(204);
    for reply in refreshed.iter().chain(&logged_in) {
        if reply.status == 200 {
            auth.refresh(&Tokens::of(reply).refresh).await.assert_problem(401, "invalid_refresh_token");
        } else {
            assert_eq!(reply.status, 401);
        }
    }
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoked_at IS NULL").await, 0);
}
