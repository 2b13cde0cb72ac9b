//! Sessions: login, renewal, revocation.

use serde_json::json;
use uuid::Uuid;

use super::{Case, case};
use crate::user_pool::{OTHER_PASSWORD, PASSWORD, UserPool};

pub(super) static CASES: [Case; 16] = [
    case("login", "200 AccessToken ExpiresIn IdToken RefreshToken TokenType", "InitiateAuth"),
    case("login-with-a-wrong-password", "400 NotAuthorizedException", "InitiateAuth"),
    case("login-of-nobody", "400 NotAuthorizedException", "Managing user existence error responses"),
    case("nobody-and-a-wrong-password-are-told-apart", "no", "Managing user existence error responses"),
    case("login-in-another-case", "200", "User pool case sensitivity"),
    case("login-with-the-sub", "200", "Customizing sign-in attributes"),
    case("login-unconfirmed", "400 UserNotConfirmedException", "InitiateAuth"),
    case("login-unconfirmed-with-a-wrong-password", "400 UserNotConfirmedException", "not stated; aws/aws-sdk-js#4608"),
    case("login-without-a-password", "400 InvalidParameterException", "InitiateAuth"),
    case("login-with-an-unknown-client", "400 ResourceNotFoundException", "InitiateAuth"),
    case(
        "right-password-after-five-failures",
        "400 NotAuthorizedException",
        "Lockout behavior for failed sign-in attempts",
    ),
    case("renew", "200 AccessToken ExpiresIn IdToken TokenType", "Refresh tokens"),
    case("renew-with-no-token-of-ours", "400 NotAuthorizedException", "InitiateAuth"),
    case("revoke", "200, renewal then 400 NotAuthorizedException", "RevokeToken"),
    case("revoke-twice", "200", "not stated"),
    case("revoke-an-access-token", "400 UnsupportedTokenTypeException", "RevokeToken"),
];

pub(super) async fn observe(name: &str, pool: &UserPool) -> String {
    let client = &pool.open;
    let revoke = async |token: &str| {
        pool.call(client, "RevokeToken", json!({"ClientId": client.id, "Token": token})).await.verdict()
    };
    let nobody = format!("{}@example.com", Uuid::new_v4().simple());
    match name {
        "login" => {
            let account = pool.confirmed(client).await;
            let answer = pool.log_in(client, &account.email, PASSWORD).await;
            format!("{} {}", answer.verdict(), answer.members("/AuthenticationResult"))
        }
        "login-with-a-wrong-password" => {
            let account = pool.confirmed(client).await;
            pool.log_in(client, &account.email, OTHER_PASSWORD).await.verdict()
        }
        "login-of-nobody" => pool.log_in(client, &nobody, PASSWORD).await.verdict(),
        "nobody-and-a-wrong-password-are-told-apart" => {
            let account = pool.confirmed(client).await;
            let wrong = pool.log_in(client, &account.email, OTHER_PASSWORD).await;
            let unknown = pool.log_in(client, &nobody, PASSWORD).await;
            if wrong.body == unknown.body { "no" } else { "yes" }.to_owned()
        }
        "login-in-another-case" => {
            let account = pool.confirmed(client).await;
            pool.log_in(client, &account.email.to_uppercase(), PASSWORD).await.verdict()
        }
        "login-with-the-sub" => {
            let account = pool.confirmed(client).await;
            pool.log_in(client, &account.sub, PASSWORD).await.verdict()
        }
        "login-unconfirmed" => {
            let account = pool.signed_up(client).await;
            pool.log_in(client, &account.email, PASSWORD).await.verdict()
        }
        "login-unconfirmed-with-a-wrong-password" => {
            let account = pool.signed_up(client).await;
            pool.log_in(client, &account.email, OTHER_PASSWORD).await.verdict()
        }
        "login-without-a-password" => {
            let parameters = json!({"USERNAME": nobody});
            let input = json!({"ClientId": client.id, "AuthFlow": "USER_PASSWORD_AUTH", "AuthParameters": parameters});
            pool.call(client, "InitiateAuth", input).await.verdict()
        }
        "login-with-an-unknown-client" => {
            let mut input = client.log_in(&nobody, PASSWORD);
            input["ClientId"] = "unknown0client00000000000".into();
            pool.call(client, "InitiateAuth", input).await.verdict()
        }
        "right-password-after-five-failures" => {
            let account = pool.confirmed(client).await;
            for _ in 0..5 {
                pool.log_in(client, &account.email, OTHER_PASSWORD).await;
            }
            pool.log_in(client, &account.email, PASSWORD).await.verdict()
        }
        "renew" => {
            let (_, tokens) = pool.logged_in(client).await;
            let answer = pool.renew(client, &tokens.refresh, None).await;
            format!("{} {}", answer.verdict(), answer.members("/AuthenticationResult"))
        }
        "renew-with-no-token-of-ours" => pool.renew(client, "no-token.of.ours", None).await.verdict(),
        "revoke" => {
            let (_, tokens) = pool.logged_in(client).await;
            let revoked = revoke(&tokens.refresh).await;
            format!("{revoked}, renewal then {}", pool.renew(client, &tokens.refresh, None).await.verdict())
        }
        "revoke-twice" => {
            let (_, tokens) = pool.logged_in(client).await;
            revoke(&tokens.refresh).await;
            revoke(&tokens.refresh).await
        }
        "revoke-an-access-token" => {
            let (_, tokens) = pool.logged_in(client).await;
            revoke(&tokens.access).await
        }
        _ => unreachable!("{name}"),
    }
}
