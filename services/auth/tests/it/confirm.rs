//! `POST /v1/auth/confirm` and `POST /v1/auth/resend` where accounts are kept here. With Cognito: `cognito/confirm.rs`.

use serde_json::json;

use crate::served::{Auth, PASSWORD};

#[tokio::test]
async fn local_accounts_need_no_confirmation() {
    let auth = Auth::start().await;
    let registered = auth.register("ada@example.com", PASSWORD).await;
    assert!(registered.assert_status(201).json().get("confirmation_required").is_none());
    let anyone = auth.app.anonymous();
    for email in ["ada@example.com", "nobody@example.com"] {
        let body = json!({"email": email, "code": "123456"});
        anyone.post_json("/v1/auth/confirm", body).await.assert_problem(409, "confirmation_not_needed");
        let body = json!({"email": email});
        anyone.post_json("/v1/auth/resend", body).await.assert_problem(409, "confirmation_not_needed");
    }
}

#[tokio::test]
async fn fields_are_checked_as_everywhere() {
    let auth = Auth::start().await;
    let anyone = auth.app.anonymous();
    let confirm = async |body| anyone.post_json("/v1/auth/confirm", body).await;
    confirm(json!({})).await.assert_invalid(&[("/email", "missing"), ("/code", "missing")]);
    for code in ["", " ", "12 34", "1\u{0}2", &"1".repeat(2_049)] {
        let body = json!({"email": "ada@example.com", "code": code});
        confirm(body).await.assert_invalid(&[("/code", "invalid_code")]);
    }
    let body = json!({"email": "ada", "code": 123_456, "force": true});
    confirm(body).await.assert_invalid(&[
        ("/email", "invalid_email"),
        ("/code", "wrong_type"),
        ("/force", "unknown_field"),
    ]);
    anyone.post_json("/v1/auth/resend", json!({})).await.assert_invalid(&[("/email", "missing")]);
}
