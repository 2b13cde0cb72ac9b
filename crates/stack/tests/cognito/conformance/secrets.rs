//! App clients with a secret.

use serde_json::json;

use super::{Case, case};
use crate::user_pool::{AppClient, PASSWORD, UserPool};

pub(super) static CASES: [Case; 7] = [
    case("secret-sign-up-without-its-hash", "400 NotAuthorizedException", "Computing secret hash values"),
    case("secret-login-without-its-hash", "400 NotAuthorizedException", "Computing secret hash values"),
    case("secret-login-with-another-hash", "400 NotAuthorizedException", "Computing secret hash values"),
    case("secret-login-with-its-hash", "200", "Computing secret hash values"),
    case("secret-renew-with-the-hash-of-the-email", "400 NotAuthorizedException", "Computing secret hash values"),
    case("secret-renew-with-the-hash-of-the-user-name", "200", "Computing secret hash values"),
    case("secret-revoke-without-the-secret", "400 UnauthorizedException", "RevokeToken"),
];

pub(super) async fn observe(name: &str, pool: &UserPool) -> String {
    let client = &pool.secret;
    let account = pool.confirmed(client).await;
    let log_in = async |hash: Option<String>| {
        let mut parameters = json!({"USERNAME": account.email, "PASSWORD": PASSWORD});
        if let Some(hash) = hash {
            parameters["SECRET_HASH"] = hash.into();
        }
        let input = json!({"ClientId": client.id, "AuthFlow": "USER_PASSWORD_AUTH", "AuthParameters": parameters});
        pool.call(client, "InitiateAuth", input).await
    };
    let refresh_token =
        async || log_in(Some(client.secret_hash(&account.email))).await.text("/AuthenticationResult/RefreshToken");
    match name {
        "secret-sign-up-without-its-hash" => {
            let bare = AppClient { secret: None, ..client.clone() };
            let email = format!("another-{}", account.email);
            pool.call(client, "SignUp", bare.sign_up(&email, PASSWORD)).await.verdict()
        }
        "secret-login-without-its-hash" => log_in(None).await.verdict(),
        "secret-login-with-another-hash" => log_in(Some(client.secret_hash("somebody"))).await.verdict(),
        "secret-login-with-its-hash" => log_in(Some(client.secret_hash(&account.email))).await.verdict(),
        "secret-renew-with-the-hash-of-the-email" => {
            pool.renew(client, &refresh_token().await, Some(&account.email)).await.verdict()
        }
        "secret-renew-with-the-hash-of-the-user-name" => {
            pool.renew(client, &refresh_token().await, Some(&account.sub)).await.verdict()
        }
        "secret-revoke-without-the-secret" => {
            let input = json!({"ClientId": client.id, "Token": refresh_token().await});
            pool.call(client, "RevokeToken", input).await.verdict()
        }
        _ => unreachable!("{name}"),
    }
}
