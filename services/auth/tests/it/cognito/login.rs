//! Logging in.

use serde_json::{Value, json};
use test_support::CognitoAnswer;

use super::served::{EMAIL, OnCognito, SUBJECT, secret_hash};
use crate::served::{PASSWORD, login_as};

#[tokio::test]
async fn a_login_is_one_call_and_its_time_is_the_providers() {
    let task = OnCognito::start().await;
    task.stub.answer("InitiateAuth", task.tokens());
    let reply = login_as(&task.app.anonymous(), " Ada@Example.com ", PASSWORD).await;
    let body = reply.assert_status(200).json();
    assert_eq!(body["access_token"], json!(task.access_token()));
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("Bearer"), &json!(3_600)));
    assert!(body["refresh_token"].as_str().unwrap().starts_with("dc_"));
    assert!(body.get("id_token").is_none());
    let stages = reply.stages();
    assert!(stages.contains_key("idp") && stages.contains_key("admission"), "{stages:?}");
    assert!(!["pool", "db", "hash"].iter().any(|stage| stages.contains_key(*stage)), "{stages:?}");
    let calls = task.stub.calls();
    assert_eq!(calls.len(), 1);
    assert!(!calls[0].signed, "credentials of AWS are not needed");
    assert_eq!(
        calls[0].parameters,
        json!({
            "AuthFlow": "USER_PASSWORD_AUTH", "ClientId": "test-client",
            "AuthParameters": {"USERNAME": EMAIL, "PASSWORD": PASSWORD},
        })
    );
}

#[tokio::test]
async fn a_client_with_a_secret_proves_it_with_the_name_that_the_call_carries() {
    let task = OnCognito::start_with(&[("COGNITO_CLIENT_SECRET", "hunter2")]).await;
    let session = task.session().await;
    let sent = task.stub.calls_of("InitiateAuth").remove(0);
    assert_eq!(sent["AuthParameters"]["SECRET_HASH"], secret_hash(EMAIL));

    task.refresh(&session.refresh).await.assert_status(200);
    let sent = task.stub.calls_of("InitiateAuth").remove(1);
    let expected = json!({"REFRESH_TOKEN": "cognitos.own.token", "SECRET_HASH": secret_hash(&SUBJECT.to_string())});
    assert_eq!(sent["AuthParameters"], expected, "the pool's own name of the user, not the email");
}

#[tokio::test]
async fn what_an_answer_leaves_out_is_made_good() {
    let task = OnCognito::start().await;
    let without = async |names: &[&str]| {
        let mut result = task.result();
        result.as_object_mut().unwrap().retain(|name, _| !names.contains(&name.as_str()));
        task.stub.answer("InitiateAuth", CognitoAnswer::Ok(json!({"AuthenticationResult": result})));
        task.login().await.assert_status(200).json()
    };
    let whole = without(&[]).await;
    assert_eq!(without(&["TokenType", "IdToken"]).await, whole);
    // The token itself says how long it lives.
    assert_eq!(without(&["ExpiresIn"]).await["expires_in"], json!(900));
    let body = without(&["RefreshToken"]).await;
    assert!(body.get("refresh_token").is_none() && body["access_token"].is_string(), "{body}");

    let mut result = task.result();
    result["TokenType"] = Value::Null;
    result["RefreshToken"] = Value::Null;
    task.stub.answer("InitiateAuth", CognitoAnswer::Ok(json!({"AuthenticationResult": result, "ChallengeName": null})));
    task.login().await.assert_status(200);
}

#[tokio::test]
async fn whoever_it_is_not_the_answer_is_the_same() {
    let task = OnCognito::start().await;
    let mut answers = Vec::new();
    for (code, message) in [
        ("NotAuthorizedException", "Incorrect username or password."),
        ("NotAuthorizedException", "User is disabled."),
        ("NotAuthorizedException", "Password attempts exceeded"),
        ("UserNotFoundException", "User does not exist."),
        ("UserNotConfirmedException", "User is not confirmed."),
        ("InvalidPasswordException", "Invalid password"),
        ("UserLambdaValidationException", "PreAuthentication failed"),
    ] {
        task.stub.answer("InitiateAuth", CognitoAnswer::error(code, message));
        answers.push(task.login().await);
    }
    // What no account can have is answered without asking.
    let calls = task.stub.calls().len();
    answers.push(login_as(&task.app.anonymous(), EMAIL, "").await);
    answers.push(login_as(&task.app.anonymous(), EMAIL, &"x".repeat(1_025)).await);
    assert_eq!(task.stub.calls().len(), calls);
    let mut seen: Vec<_> = answers
        .iter()
        .map(|reply| {
            let mut body = reply.assert_problem(401, "invalid_credentials");
            body["request_id"].take();
            let mut headers = reply.headers.clone();
            for own in ["x-request-id", "server-timing", "date", "content-length"] {
                headers.remove(own);
            }
            format!("{body} {headers:?}")
        })
        .collect();
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:#?}");
}

#[tokio::test]
async fn as_admin_an_unconfirmed_user_is_confirmed_and_then_the_password_counts() {
    let task = OnCognito::start_with(&[
        ("COGNITO_CONFIRMATION", "admin"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
    ])
    .await;
    let unconfirmed = || CognitoAnswer::error("UserNotConfirmedException", "User is not confirmed.");
    task.stub.answer("AdminConfirmSignUp", CognitoAnswer::Ok(json!({})));
    task.stub.answer_in_turn("InitiateAuth", [unconfirmed(), task.tokens()]);
    task.login().await.assert_status(200);
    let calls: Vec<_> = task.stub.calls().iter().map(|call| (call.operation.clone(), call.signed)).collect();
    let expected = [("InitiateAuth", false), ("AdminConfirmSignUp", true), ("InitiateAuth", false)];
    assert_eq!(calls, expected.map(|(operation, signed)| (operation.to_owned(), signed)));
    assert_eq!(
        task.stub.calls_of("AdminConfirmSignUp"),
        [json!({"UserPoolId": "eu-central-1_test", "Username": EMAIL})]
    );

    let wrong = || CognitoAnswer::error("NotAuthorizedException", "Incorrect username or password.");
    task.stub.answer_in_turn("InitiateAuth", [unconfirmed(), wrong()]);
    task.login().await.assert_problem(401, "invalid_credentials");

    // That it cannot be confirmed is not told: of nobody's account it would not have been tried.
    task.stub.answer("InitiateAuth", unconfirmed());
    let throttled = || CognitoAnswer::error("LimitExceededException", "");
    for trouble in [CognitoAnswer::error("AccessDeniedException", ""), CognitoAnswer::Html(500), throttled(), wrong()] {
        task.stub.answer("AdminConfirmSignUp", trouble);
        task.login().await.assert_problem(401, "invalid_credentials");
    }
}

#[tokio::test]
async fn a_refresh_token_that_could_not_be_taken_back_is_not_handed_out() {
    let task = OnCognito::start().await;
    for odd in ["x".repeat(9_000), "a token".to_owned()] {
        let mut result = task.result();
        result["RefreshToken"] = json!(odd);
        task.stub.answer("InitiateAuth", CognitoAnswer::Ok(json!({"AuthenticationResult": result})));
        task.login().await.assert_problem(503, "identity_unavailable");
    }
}

#[tokio::test]
async fn a_server_that_fails_has_judged_nobody_whatever_it_calls_itself() {
    let task = OnCognito::start().await;
    let (code, message) = ("NotAuthorizedException".to_owned(), "Incorrect username or password.".to_owned());
    task.stub.answer("InitiateAuth", CognitoAnswer::Error { status: 503, code, message });
    task.login().await.assert_problem(503, "identity_unavailable");
}
