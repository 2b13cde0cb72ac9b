//! `POST /v1/auth/refresh`

use futures_util::future::join_all;
use serde_json::json;

use crate::jwks::claims;
use crate::served::{Auth, Tokens, statuses};

const REFRESH: &str = "/v1/auth/refresh";
const GRACE_SECONDS: u64 = 10;
const THIRTY_DAYS_SECONDS: u64 = 30 * 24 * 3_600;

#[tokio::test]
async fn a_refresh_token_is_exchanged_for_the_next_pair() {
    let auth = Auth::start().await;
    let first = auth.sign_up("ada@example.com").await;
    auth.advance_seconds(600);
    let reply = auth.refresh(&first.refresh).await;
    reply.assert_status(200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let second = Tokens::of(&reply);
    assert_ne!(second.refresh, first.refresh);
    let (before, after) = (claims(&first.access), claims(&second.access));
    assert_eq!(after["sub"], before["sub"]);
    assert_eq!(after["iat"], before["iat"].as_i64().unwrap() + 600);
    assert_ne!(after["jti"], before["jti"]);
    auth.refresh(&second.refresh).await.assert_status(200);
}

#[tokio::test]
async fn tokens_are_stored_as_hashes_only() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    let dump = "SELECT string_agg(t::text, ' ') || (SELECT string_agg(f::text, ' ') FROM auth.refresh_families f)
                  FROM auth.refresh_tokens t";
    let rows: String = auth.admin.query_one(dump, &[]).await.unwrap().get(0);
    assert!(!rows.contains(&tokens.refresh[3..]), "{rows}");
    assert_eq!(auth.count("SELECT octet_length(token_hash)::bigint FROM auth.refresh_tokens").await, 32);
}

#[tokio::test]
async fn within_the_grace_period_a_used_token_gives_another_usable_pair() {
    let auth = Auth::start().await;
    let first = auth.sign_up("ada@example.com").await;
    let lost = Tokens::of(&auth.refresh(&first.refresh).await);
    auth.advance_seconds(GRACE_SECONDS - 1);
    let again = Tokens::of(auth.refresh(&first.refresh).await.assert_status(200));
    assert_ne!(lost.refresh, again.refresh);
    for tokens in [lost, again] {
        auth.refresh(&tokens.refresh).await.assert_status(200);
    }
}

#[tokio::test]
async fn the_grace_period_counts_from_the_first_use() {
    let auth = Auth::start().await;
    let first = auth.sign_up("ada@example.com").await;
    auth.refresh(&first.refresh).await.assert_status(200);
    auth.advance_seconds(GRACE_SECONDS - 1);
    auth.refresh(&first.refresh).await.assert_status(200);
    auth.advance_seconds(1);
    auth.refresh(&first.refresh).await.assert_problem(401, "invalid_refresh_token");
}

#[tokio::test]
async fn later_reuse_ends_the_whole_session_but_no_other() {
    let auth = Auth::start().await;
    let zeroth = auth.sign_up("ada@example.com").await;
    let other = auth.session("ada@example.com", crate::served::PASSWORD).await;
    let first = Tokens::of(&auth.refresh(&zeroth.refresh).await);
    let second = Tokens::of(&auth.refresh(&first.refresh).await);
    auth.advance_seconds(GRACE_SECONDS + 1);
    auth.refresh(&zeroth.refresh).await.assert_problem(401, "invalid_refresh_token");
    for tokens in [&second, &first, &zeroth] {
        auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
    }
    auth.refresh(&other.refresh).await.assert_status(200);
    assert_eq!(auth.count("SELECT count(*) FROM auth.refresh_families WHERE revoke_reason = 'reuse'").await, 1);
}

#[tokio::test]
async fn parallel_use_of_one_token_leaves_everybody_logged_in() {
    let one = Auth::start().await;
    let two = one.another_task().await;
    let first = one.sign_up("ada@example.com").await;
    let uses = (0..20).map(|n| if n % 2 == 0 { one.refresh(&first.refresh) } else { two.refresh(&first.refresh) });
    let replies = join_all(uses).await;
    assert_eq!(statuses(&replies), [(200, 20)].into());
    assert_eq!(one.count("SELECT count(*) FROM auth.refresh_tokens WHERE first_used_at IS NOT NULL").await, 1);
    assert_eq!(one.count("SELECT count(*) FROM auth.refresh_tokens WHERE parent_hash IS NOT NULL").await, 20);
    for reply in &replies {
        one.refresh(&Tokens::of(reply).refresh).await.assert_status(200);
    }
}

#[tokio::test]
async fn a_session_ends_30_days_after_its_login_however_often_it_is_refreshed() {
    let auth = Auth::start().await;
    let mut tokens = auth.sign_up("ada@example.com").await;
    for _ in 0..2 {
        auth.advance_seconds(THIRTY_DAYS_SECONDS / 2 - 1);
        tokens = Tokens::of(auth.refresh(&tokens.refresh).await.assert_status(200));
    }
    auth.advance_seconds(2);
    auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
}

#[tokio::test]
async fn a_locked_account_ends_its_sessions_and_they_stay_ended() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    auth.lock_account("ada@example.com").await;
    auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
    auth.admin.execute("UPDATE auth.users SET disabled_at = NULL", &[]).await.unwrap();
    auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
    auth.session("ada@example.com", crate::served::PASSWORD).await;
}

#[tokio::test]
async fn a_session_of_an_account_that_is_gone_is_401() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    auth.admin.execute("DELETE FROM auth.users", &[]).await.unwrap();
    auth.refresh(&tokens.refresh).await.assert_problem(401, "invalid_refresh_token");
}

#[tokio::test]
async fn what_is_no_token_of_ours_is_401_with_one_code() {
    let auth = Auth::start().await;
    let elsewhere = Auth::start().await.sign_up("ada@example.com").await;
    let tokens = auth.sign_up("ada@example.com").await;
    let cut = &tokens.refresh[..tokens.refresh.len() - 1];
    for token in ["", " ", "nonsense", "nul\u{0}", "' OR 1=1 --", cut, &elsewhere.refresh, &tokens.access] {
        auth.refresh(token).await.assert_problem(401, "invalid_refresh_token");
    }
    auth.refresh(&tokens.refresh).await.assert_status(200);
}

#[tokio::test]
async fn a_missing_token_is_422() {
    let auth = Auth::start().await;
    let caller = auth.app.anonymous();
    for (body, code) in [
        (json!({}), "missing"),
        (json!({"refresh_token": null}), "wrong_type"),
        (json!({"refresh_token": ["dr_"]}), "wrong_type"),
    ] {
        caller.post_json(REFRESH, body).await.assert_invalid(&[("/refresh_token", code)]);
    }
}

#[tokio::test]
async fn refresh_tokens_are_no_access_tokens() {
    let auth = Auth::start().await;
    let tokens = auth.sign_up("ada@example.com").await;
    auth.change_password(&tokens.refresh, "a", "does not matter").await.assert_problem(401, "token_invalid");
}
