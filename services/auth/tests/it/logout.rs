//! `POST /v1/auth/logout`

use serde_json::json;

use crate::served::{Auth, PASSWORD, Tokens};

const LOGOUT: &str = "/v1/auth/logout";

#[tokio::test]
async fn logging_out_ends_the_session_and_twice_is_fine() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let reply = auth.logout(&tokens.refresh).await;
    assert!(reply.assert_status(204).body.is_empty());
    auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
    auth.logout(&tokens.refresh).await.assert_status(204);
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoke_reason = 'logout'").await, 1);
}

#[tokio::test]
async fn any_token_of_the_session_ends_all_of_it() {
    let auth = Auth::start().await;
    let first = auth.sign_up("ada@example.com").await;
    let second = Tokens::of(&auth.refresh(&first.refresh).await);
    let third = Tokens::of(&auth.refresh(&second.refresh).await);
    auth.logout(&first.refresh).await.assert_status(204);
    for tokens in [&first, &second, &third] {
        auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
    }
}

#[tokio::test]
async fn tokens_of_ended_sessions_are_known_whatever_ended_them() {
    let auth = Auth::start().await;
    let expired = auth.sign_up("ada@example.com").await;
    auth.advance_seconds(31 * 24 * 3_600);
    auth.logout(&expired.refresh).await.assert_status(204);

    let reused = auth.session("ada@example.com", PASSWORD).await;
    auth.refresh(&reused.refresh).await.assert_status(200);
    auth.advance_seconds(60);
    auth.refresh(&reused.refresh).await.assert_problem(401, "invalid_refresh_token");
    auth.logout(&reused.refresh).await.assert_status(204);
    assert_eq!(
        auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoke_reason = 'reuse'").await,
        1,
        "why it ended first is kept"
    );
}

#[tokio::test]
async fn what_is_no_token_of_ours_is_401() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let unknown = format!("dr_{}", "A".repeat(43));
    for token in ["", "nonsense", "nul\u{0}", &unknown, &tokens.access] {
        auth.logout(token).await.assert_problem(401, "invalid_refresh_token");
    }
    auth.refresh(&tokens.refresh).await.assert_status(200);
}

#[tokio::test]
async fn a_missing_token_is_422() {
    let auth = Auth::start().await;
    let caller = auth.app.anonymous();
    caller.post_json(LOGOUT, json!({})).await.assert_invalid(&[("/refresh_token", "missing")]);
    caller.post_json(LOGOUT, json!({"refresh_token": 1})).await.assert_invalid(&[("/refresh_token", "wrong_type")]);
}

#[tokio::test]
async fn access_tokens_outlive_the_session_until_they_expire() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    auth.logout(&tokens.refresh).await.assert_status(204);
    let ask = async || auth.change_password(&tokens.access, "wrong password", "does not matter").await;
    ask().await.assert_problem(403, "current_password_wrong");
    // 900 s of life, 5 s of leeway between clocks.
    auth.advance_seconds(900 + 6);
    ask().await.assert_problem(401, "token_expired");
}
