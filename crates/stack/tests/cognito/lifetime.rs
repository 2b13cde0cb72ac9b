//! The double's start, end, and what survives both.

use serde_json::json;
use stack::cognito::{CognitoDouble, ControlClient, ImportedUser, Options};
use uuid::Uuid;

async fn started(options: &Options) -> (CognitoDouble, ControlClient) {
    let double = CognitoDouble::start(options.clone()).await.unwrap();
    let control = ControlClient::new(double.endpoint());
    (double, control)
}

async fn log_in(double: &CognitoDouble, email: &str) -> (u16, serde_json::Value) {
    let access = double.access();
    let input = json!({
        "ClientId": access.client_id,
        "AuthFlow": "USER_PASSWORD_AUTH",
        "AuthParameters": {"USERNAME": email, "PASSWORD": "populated password 3 of 1"},
    });
    call(double, "InitiateAuth", input).await
}

async fn call(double: &CognitoDouble, operation: &str, input: serde_json::Value) -> (u16, serde_json::Value) {
    let request = reqwest::Client::new()
        .post(double.endpoint())
        .header("x-amz-target", format!("AWSCognitoIdentityProviderService.{operation}"))
        .body(input.to_string());
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn imported(sub: Uuid) -> ImportedUser {
    ImportedUser { email: "a@example.com".into(), password: "populated password 3 of 1".into(), sub: Some(sub) }
}

#[tokio::test]
async fn imported_users_log_in_with_the_id_that_they_were_given() {
    let (double, control) = started(&Options::default()).await;
    let sub = Uuid::from_u128(7);
    control.import(&[imported(sub)]).await.unwrap();
    control.import(&[imported(sub)]).await.unwrap();
    assert_eq!(control.stats().await.unwrap().users, 1);
    let (status, tokens) = log_in(&double, "A@example.com").await;
    assert_eq!(status, 200, "{tokens}");
    let access = tokens["AuthenticationResult"]["AccessToken"].as_str().unwrap();
    let (_, user) = call(&double, "GetUser", json!({"AccessToken": access})).await;
    assert_eq!(user["Username"], sub.to_string());
}

#[tokio::test]
async fn users_keys_and_revocations_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.pool.data_dir = Some(folder.path().join("cognito"));
    let (double, control) = started(&options).await;
    control.import(&[imported(Uuid::from_u128(7))]).await.unwrap();
    let (_, first) = log_in(&double, "a@example.com").await;
    let (_, second) = log_in(&double, "a@example.com").await;
    let client_id = double.access().client_id;
    let token = |tokens: &serde_json::Value, name: &str| tokens["AuthenticationResult"][name].clone();
    let revoked = call(&double, "RevokeToken", json!({"ClientId": client_id, "Token": token(&first, "RefreshToken")}));
    assert_eq!(revoked.await.0, 200);
    double.stop().await;

    let (double, _) = started(&options).await;
    assert_eq!(log_in(&double, "a@example.com").await.0, 200);
    let get_user =
        async |tokens| call(&double, "GetUser", json!({"AccessToken": token(tokens, "AccessToken")})).await.0;
    assert_eq!((get_user(&first).await, get_user(&second).await), (400, 200));
    let renew = async |tokens| {
        let parameters = json!({"REFRESH_TOKEN": token(tokens, "RefreshToken")});
        let input = json!({"ClientId": client_id, "AuthFlow": "REFRESH_TOKEN_AUTH", "AuthParameters": parameters});
        call(&double, "InitiateAuth", input).await.0
    };
    assert_eq!((renew(&first).await, renew(&second).await), (400, 200));
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let (double, _) = started(&Options::default()).await;
    let address = double.endpoint().trim_start_matches("http://").parse().unwrap();
    let error = CognitoDouble::start(Options { address, ..Options::default() }).await.unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
