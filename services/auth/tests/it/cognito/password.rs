//! Changing a password.

use serde_json::json;
use test_support::CognitoAnswer;

use super::served::OnCognito;
use crate::served::{OTHER_PASSWORD, PASSWORD};

#[tokio::test]
async fn the_password_is_changed_in_the_callers_name_and_all_sessions_end() {
    let task = OnCognito::start().await;
    task.stub.answer("ChangePassword", CognitoAnswer::Ok(json!({})));
    task.stub.answer("GlobalSignOut", CognitoAnswer::Ok(json!({})));
    let access = task.access_token();
    task.change_password(&access, OTHER_PASSWORD).await.assert_status(204);
    assert_eq!(
        task.stub.calls_of("ChangePassword"),
        [json!({"AccessToken": access, "PreviousPassword": PASSWORD, "ProposedPassword": OTHER_PASSWORD})]
    );
    assert_eq!(task.stub.calls_of("GlobalSignOut"), [json!({"AccessToken": access})]);
}

#[tokio::test]
async fn a_wrong_current_password_ends_no_session() {
    let task = OnCognito::start().await;
    task.stub
        .answer("ChangePassword", CognitoAnswer::error("NotAuthorizedException", "Incorrect username or password."));
    let reply = task.change_password(&task.access_token(), OTHER_PASSWORD).await;
    reply.assert_problem(403, "current_password_wrong");
    assert!(task.stub.calls_of("GlobalSignOut").is_empty());
}

#[tokio::test]
async fn only_an_access_token_of_our_client_may_and_cognito_is_not_asked_about_others() {
    let task = OnCognito::start().await;
    let token = task.issuer.build(super::served::SUBJECT);
    for token in [
        token.clone().claim("token_use", "id").sign(),
        token.clone().claim("client_id", "another").sign(),
        token.clone().claim("iss", "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_other").sign(),
    ] {
        task.change_password(&token, OTHER_PASSWORD).await.assert_problem(401, "token_invalid");
    }
    task.change_password(&task.access_token(), PASSWORD)
        .await
        .assert_invalid(&[("/new_password", "password_unchanged")]);
    assert!(task.stub.calls().is_empty());
}
