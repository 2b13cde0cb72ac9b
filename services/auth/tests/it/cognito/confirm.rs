//! Confirming accounts.

use serde_json::json;
use test_support::CognitoAnswer;

use super::served::{EMAIL, OnCognito, secret_hash};

#[tokio::test]
async fn a_code_is_passed_on_and_another_can_be_asked_for() {
    let task = OnCognito::start_with(&[("COGNITO_CLIENT_SECRET", "hunter2")]).await;
    task.stub.answer("ConfirmSignUp", CognitoAnswer::Ok(json!({})));
    task.stub.answer("ResendConfirmationCode", CognitoAnswer::Ok(json!({})));
    let anyone = task.app.anonymous();
    let body = json!({"email": "Ada@Example.com", "code": " 123456 "});
    anyone.post_json("/v1/auth/confirm", body).await.assert_status(204);
    anyone.post_json("/v1/auth/resend", json!({"email": EMAIL})).await.assert_status(204);
    let hash = secret_hash(EMAIL);
    assert_eq!(
        task.stub.calls_of("ConfirmSignUp"),
        [json!({"ClientId": "test-client", "SecretHash": hash, "Username": EMAIL, "ConfirmationCode": "123456"})]
    );
    assert_eq!(
        task.stub.calls_of("ResendConfirmationCode"),
        [json!({"ClientId": "test-client", "SecretHash": hash, "Username": EMAIL})]
    );
}

#[tokio::test]
async fn where_no_code_is_sent_there_is_none_to_confirm_with() {
    for confirmation in ["automatic", "admin"] {
        let task = OnCognito::start_with(&[
            ("COGNITO_CONFIRMATION", confirmation),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "key"),
        ])
        .await;
        let anyone = task.app.anonymous();
        let body = json!({"email": EMAIL, "code": "123456"});
        anyone.post_json("/v1/auth/confirm", body).await.assert_problem(409, "confirmation_not_needed");
        anyone
            .post_json("/v1/auth/resend", json!({"email": EMAIL}))
            .await
            .assert_problem(409, "confirmation_not_needed");
        assert!(task.stub.calls().is_empty());
    }
}
