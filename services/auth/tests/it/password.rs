//! `POST /v1/auth/password`

use serde_json::json;

use crate::served::{Auth, OTHER_PASSWORD, PASSWORD};

const CHANGE: &str = "/v1/auth/password";

#[tokio::test]
async fn the_new_password_works_and_the_old_one_does_not() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let reply = auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD).await;
    assert!(reply.assert_status(204).body.is_empty());
    auth.login("ada@example.com", PASSWORD).await.assert_problem(401, "invalid_credentials");
    auth.session("ada@example.com", OTHER_PASSWORD).await;
}

#[tokio::test]
async fn every_session_of_the_user_ends_and_nobody_elses() {
    let auth = Auth::start().await;
    let here = auth.sign_up("ada@example.com").await;
    let there = auth.session("ada@example.com", PASSWORD).await;
    let bob = auth.sign_up("bob@example.com").await;
    auth.change_password(&here.access, PASSWORD, OTHER_PASSWORD).await.assert_status(204);
    for tokens in [&here, &there] {
        auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
    }
    auth.refresh(&bob.refresh).await.assert_status(200);
    assert_eq!(
        auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoke_reason = 'password_changed'").await,
        2
    );
}

#[tokio::test]
async fn a_wrong_current_password_is_403_and_changes_nothing() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let before = auth.hasher.counters().started();
    auth.change_password(&tokens.access, "not my password", OTHER_PASSWORD)
        .await
        .assert_problem(403, "current_password_wrong");
    assert_eq!(auth.hasher.counters().started() - before, 1, "the new one is hashed only when the old one is right");
    auth.change_password(&tokens.access, &"x".repeat(1_025), OTHER_PASSWORD)
        .await
        .assert_problem(403, "current_password_wrong");
    assert_eq!(auth.hasher.counters().started() - before, 1, "what is over the cap is not hashed");
    auth.refresh(&tokens.refresh).await.assert_status(200);
    auth.session("ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn the_current_password_is_no_new_one() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    auth.change_password(&tokens.access, PASSWORD, PASSWORD)
        .await
        .assert_invalid(&[("/new_password", "password_unchanged")]);
    auth.refresh(&tokens.refresh).await.assert_status(200);
}

#[tokio::test]
async fn the_new_password_keeps_the_rules_and_the_current_one_need_not() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    for (new, code) in
        [("short", "too_short"), ("password1", "too_common"), ("nul \u{0} in the middle", "control_character")]
    {
        auth.change_password(&tokens.access, PASSWORD, new).await.assert_invalid(&[("/new_password", code)]);
    }
    let caller = auth.app.as_bearer(&tokens.access);
    caller.post_json(CHANGE, json!({"new_password": 1, "admin": true})).await.assert_invalid(&[
        ("/current_password", "missing"),
        ("/new_password", "wrong_type"),
        ("/admin", "unknown_field"),
    ]);
    auth.change_password(&tokens.access, "abc", OTHER_PASSWORD).await.assert_problem(403, "current_password_wrong");
}

#[tokio::test]
async fn it_takes_a_valid_access_token_before_anything_else() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    auth.app.anonymous().post_json(CHANGE, json!({})).await.assert_problem(401, "token_missing");
    let (head, signature) = tokens.access.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", signature.chars().rev().collect::<String>());
    for token in ["nonsense", &forged, "a.b.c"] {
        auth.change_password(token, PASSWORD, OTHER_PASSWORD).await.assert_problem(401, "token_invalid");
    }
    auth.session("ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn a_token_of_an_account_that_is_locked_or_gone_is_401() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    auth.lock_account("ada@example.com").await;
    auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD).await.assert_problem(401, "account_unavailable");
    auth.admin.execute("DELETE FROM auth.users", &[]).await.unwrap();
    auth.change_password(&tokens.access, PASSWORD, OTHER_PASSWORD).await.assert_problem(401, "account_unavailable");
}
