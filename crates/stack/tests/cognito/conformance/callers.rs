//! Calls that an access token authorises.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Case, case};
use crate::user_pool::{OTHER_PASSWORD, PASSWORD, UserPool};

pub(super) static CASES: [Case; 9] = [
    case("get-user", "200 Username is the sub, attributes email name sub", "GetUser"),
    case("get-user-with-no-token-of-ours", "400 NotAuthorizedException", "GetUser"),
    case("get-user-with-an-id-token", "400 NotAuthorizedException", "GetUser"),
    case("get-user-after-revocation", "400 NotAuthorizedException", "RevokeToken"),
    case("global-sign-out", "200, get-user then 400 NotAuthorizedException", "GlobalSignOut"),
    case("renew-after-global-sign-out", "400 NotAuthorizedException", "GlobalSignOut"),
    case("change-password", "200, login with the old one 400, with the new one 200", "ChangePassword"),
    case("change-password-with-a-wrong-one", "400 NotAuthorizedException", "ChangePassword"),
    case("change-password-against-the-policy", "400 InvalidPasswordException", "ChangePassword"),
];

pub(super) async fn observe(name: &str, pool: &UserPool) -> String {
    let client = &pool.open;
    let (account, tokens) = pool.logged_in(client).await;
    let change = async |previous: &str, proposed: &str| {
        let input = json!({"AccessToken": tokens.access, "PreviousPassword": previous, "ProposedPassword": proposed});
        pool.call(client, "ChangePassword", input).await.verdict()
    };
    match name {
        "get-user" => {
            let answer = pool.with_token("GetUser", &tokens.access).await;
            let is_sub = answer.body["Username"] == account.sub;
            let listed = answer.body["UserAttributes"].as_array();
            let mut names: Vec<&str> =
                listed.into_iter().flatten().filter_map(|attribute| attribute["Name"].as_str()).collect();
            // No page says whether an address that nobody has looked at is listed as not verified, or not at all.
            names.retain(|name| *name != "email_verified");
            names.sort_unstable();
            let username = if is_sub { "Username is the sub" } else { "Username is not the sub" };
            format!("{} {username}, attributes {}", answer.verdict(), names.join(" "))
        }
        "get-user-with-no-token-of-ours" => pool.with_token("GetUser", "no.token.ours").await.verdict(),
        "get-user-with-an-id-token" => pool.with_token("GetUser", &tokens.id).await.verdict(),
        "get-user-after-revocation" => {
            let input = json!({"ClientId": client.id, "Token": tokens.refresh});
            pool.call(client, "RevokeToken", input).await;
            pool.with_token("GetUser", &tokens.access).await.verdict()
        }
        "global-sign-out" => {
            let signed_out = pool.with_token("GlobalSignOut", &tokens.access).await.verdict();
            format!("{signed_out}, get-user then {}", pool.with_token("GetUser", &tokens.access).await.verdict())
        }
        "renew-after-global-sign-out" => {
            // ministack compares whole seconds: what was issued in the second of the sign-out goes on working until it is
            // signed out in a later one.
            let patience = Instant::now() + Duration::from_secs(10);
            loop {
                pool.with_token("GlobalSignOut", &tokens.access).await;
                let answer = pool.renew(client, &tokens.refresh, None).await;
                if answer.status != 200 || Instant::now() > patience {
                    return answer.verdict();
                }
            }
        }
        "change-password" => {
            let changed = change(PASSWORD, OTHER_PASSWORD).await;
            let old = pool.log_in(client, &account.email, PASSWORD).await.status;
            let new = pool.log_in(client, &account.email, OTHER_PASSWORD).await.status;
            format!("{changed}, login with the old one {old}, with the new one {new}")
        }
        "change-password-with-a-wrong-one" => change(OTHER_PASSWORD, "Another-7-of-its-kind").await,
        "change-password-against-the-policy" => change(PASSWORD, "Ab1-xyz").await,
        _ => unreachable!("{name}"),
    }
}
