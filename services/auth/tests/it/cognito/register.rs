//! Making an account.

use serde_json::json;

use super::served::{EMAIL, OnCognito, SUBJECT, secret_hash, signed_up};
use crate::served::PASSWORD;

#[tokio::test]
async fn an_account_is_made_with_its_email_as_name_and_says_that_it_must_be_confirmed() {
    let task = OnCognito::start_with(&[("COGNITO_CLIENT_SECRET", "hunter2")]).await;
    task.stub.answer("SignUp", signed_up(false));
    let reply = task.register().await;
    assert_eq!(reply.assert_status(201).header("location"), Some(format!("/v1/actors/{SUBJECT}").as_str()));
    assert_eq!(
        reply.json(),
        json!({
            "id": SUBJECT, "email": EMAIL, "display_name": "Ada", "created_at": "2026-03-01T12:00:00Z",
            "confirmation_required": true,
        })
    );
    assert_eq!(
        task.stub.calls_of("SignUp"),
        [json!({
            "ClientId": "test-client", "SecretHash": secret_hash(EMAIL), "Username": EMAIL, "Password": PASSWORD,
            "UserAttributes": [{"Name": "email", "Value": EMAIL}, {"Name": "name", "Value": "Ada"}],
        })]
    );
    assert!(!task.stub.calls()[0].signed);
}

#[tokio::test]
async fn a_pool_that_confirms_by_itself_leaves_nothing_to_be_done() {
    let task = OnCognito::start_with(&[("COGNITO_CONFIRMATION", "automatic")]).await;
    task.stub.answer("SignUp", signed_up(true));
    assert!(task.register().await.assert_status(201).json().get("confirmation_required").is_none());
}

#[tokio::test]
async fn as_admin_the_service_confirms_and_only_where_that_is_needed() {
    let task = OnCognito::start_with(&[
        ("COGNITO_CONFIRMATION", "admin"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
    ])
    .await;
    task.stub.answer("AdminConfirmSignUp", test_support::CognitoAnswer::Ok(json!({})));
    for (confirmed, calls) in [(false, 1), (true, 1)] {
        task.stub.answer("SignUp", signed_up(confirmed));
        assert!(task.register().await.assert_status(201).json().get("confirmation_required").is_none());
        assert_eq!(task.stub.calls_of("AdminConfirmSignUp").len(), calls);
    }
}

#[tokio::test]
async fn our_own_rules_come_first() {
    let task = OnCognito::start().await;
    let body = json!({"email": "ada@", "password": "short"});
    let reply = task.app.anonymous().post_json("/v1/auth/register", body).await;
    reply.assert_invalid(&[("/email", "invalid_email"), ("/password", "too_short")]);
    assert!(task.stub.calls().is_empty());
}
