//! Refreshing and ending sessions.

use serde_json::json;
use test_support::CognitoAnswer;

use super::served::OnCognito;
use crate::served::Tokens;

#[tokio::test]
async fn without_rotation_the_token_stays_and_with_it_the_new_one_counts() {
    let task = OnCognito::start().await;
    let session = task.session().await;
    let mut result = task.result();
    result.as_object_mut().unwrap().remove("RefreshToken");
    task.stub.answer("InitiateAuth", CognitoAnswer::Ok(json!({"AuthenticationResult": result})));
    let refreshed = Tokens::of(task.refresh(&session.refresh).await.assert_status(200));
    assert_eq!(refreshed.refresh, session.refresh);
    assert_eq!(
        task.stub.calls_of("InitiateAuth").last(),
        Some(&json!({
            "AuthFlow": "REFRESH_TOKEN_AUTH", "ClientId": "test-client",
            "AuthParameters": {"REFRESH_TOKEN": "cognitos.own.token"},
        }))
    );

    result["RefreshToken"] = json!("the.next.one");
    task.stub.answer("InitiateAuth", CognitoAnswer::Ok(json!({"AuthenticationResult": result})));
    let refreshed = Tokens::of(task.refresh(&session.refresh).await.assert_status(200));
    assert_ne!(refreshed.refresh, session.refresh);
    task.refresh(&refreshed.refresh).await.assert_status(200);
    let sent = task.stub.calls_of("InitiateAuth").pop().unwrap();
    assert_eq!(sent["AuthParameters"]["REFRESH_TOKEN"], "the.next.one");
}

#[tokio::test]
async fn a_client_that_rotates_is_asked_in_the_way_that_it_demands() {
    let variables = [("COGNITO_REFRESH_TOKEN_ROTATION", "on"), ("COGNITO_CLIENT_SECRET", "hunter2")];
    let task = OnCognito::start_with(&variables).await;
    let session = task.session().await;
    task.stub.answer("GetTokensFromRefreshToken", task.tokens());
    task.refresh(&session.refresh).await.assert_status(200);
    assert_eq!(
        task.stub.calls_of("GetTokensFromRefreshToken"),
        [json!({"ClientId": "test-client", "ClientSecret": "hunter2", "RefreshToken": "cognitos.own.token"})]
    );
    task.stub.answer("GetTokensFromRefreshToken", CognitoAnswer::error("RefreshTokenReuseException", ""));
    task.refresh(&session.refresh).await.assert_problem(401, "invalid_refresh_token");
}

#[tokio::test]
async fn logout_revokes_cognitos_token() {
    let task = OnCognito::start_with(&[("COGNITO_CLIENT_SECRET", "hunter2")]).await;
    let session = task.session().await;
    task.stub.answer("RevokeToken", CognitoAnswer::Ok(json!({})));
    task.logout(&session.refresh).await.assert_status(204);
    assert_eq!(
        task.stub.calls_of("RevokeToken"),
        [json!({"ClientId": "test-client", "ClientSecret": "hunter2", "Token": "cognitos.own.token"})]
    );
}

#[tokio::test]
async fn what_cannot_be_a_refresh_token_is_not_sent_on() {
    let task = OnCognito::start().await;
    let access = task.access_token();
    for token in ["", "dc_", "dr_GcLQ2bPmmPOmU1Mgrz4p8YkKvKtMT9Vp8kO6GgWOhv8", "cognitos.own.token", &access] {
        task.refresh(token).await.assert_problem(401, "invalid_refresh_token");
        task.logout(token).await.assert_problem(401, "invalid_refresh_token");
    }
    assert!(task.stub.calls().is_empty());
    // Nor is a refresh token an access token.
    let session = task.session().await;
    task.change_password(&session.refresh, "an entirely different one").await.assert_problem(401, "token_invalid");
}
