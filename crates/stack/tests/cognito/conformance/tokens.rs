//! What tokens say, and which keys verify them.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::{Case, case};
use crate::user_pool::{Answer, UserPool, part};

pub(super) static CASES: [Case; 9] = [
    case("access-token-claims", "all of Cognito's", "Understanding the access token"),
    case("access-token-audience", "client_id, no aud", "Understanding the access token"),
    case("access-token-user", "username and sub are the same UUID", "Understanding the access token"),
    case("id-token-claims", "all of Cognito's", "Understanding the identity (ID) token"),
    case("id-token-audience", "aud, no client_id", "Understanding the identity (ID) token"),
    case("issuer", "https://cognito-idp.REGION.amazonaws.com/POOL", "Understanding the access token"),
    case("signatures", "RS256, both verify with the published key that kid names", "Verifying JSON web tokens"),
    case("keys-of-access-and-id-tokens", "two", "Understanding the access token"),
    case("errors-on-the-wire", "__type and x-amzn-errortype", "Common Errors"),
];

/// The documented claims of a token of a login by the API. `device_key` and `cognito:groups` are there where a user has them, and
/// `version` in the page's example.
const ACCESS: [&str; 12] = [
    "auth_time",
    "client_id",
    "event_id",
    "exp",
    "iat",
    "iss",
    "jti",
    "origin_jti",
    "scope",
    "sub",
    "token_use",
    "username",
];
const ID: [&str; 11] = [
    "aud",
    "auth_time",
    "cognito:username",
    "email",
    "email_verified",
    "event_id",
    "exp",
    "iat",
    "iss",
    "sub",
    "token_use",
];

fn claims(token: &str, documented: &[&str]) -> String {
    let claims = part(token, 1);
    let missing: Vec<&str> = documented.iter().copied().filter(|name| claims[*name].is_null()).collect();
    if missing.is_empty() { "all of Cognito's".to_owned() } else { format!("without {}", missing.join(" ")) }
}

fn audience(token: &str, one: &str, other: &str) -> String {
    let claims = part(token, 1);
    let has = |name: &str| if claims[name].is_null() { format!("no {name}") } else { name.to_owned() };
    format!("{}, {}", has(one), has(other))
}

/// Whether a key of the set with the token's `kid` verifies it.
fn is_signed(token: &str, jwks: &Value) -> bool {
    let kid = &part(token, 0)["kid"];
    let key = jwks["keys"].as_array().and_then(|keys| keys.iter().find(|key| key["kid"] == *kid));
    let component = |name: &str| URL_SAFE_NO_PAD.decode(key?[name].as_str()?).ok();
    let (Some(n), Some(e)) = (component("n"), component("e")) else { return false };
    let Some((message, signature)) = token.rsplit_once('.') else { return false };
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
    RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message.as_bytes(), &signature).is_ok()
}

pub(super) async fn observe(name: &str, pool: &UserPool) -> String {
    let client = &pool.open;
    let (account, tokens) = pool.logged_in(client).await;
    match name {
        "access-token-claims" => claims(&tokens.access, &ACCESS),
        "access-token-audience" => audience(&tokens.access, "client_id", "aud"),
        "access-token-user" => {
            let claims = part(&tokens.access, 1);
            let same = claims["username"] == claims["sub"] && claims["sub"] == account.sub;
            if same { "username and sub are the same UUID" } else { "username is not the sub" }.to_owned()
        }
        "id-token-claims" => claims(&tokens.id, &ID),
        "id-token-audience" => audience(&tokens.id, "aud", "client_id"),
        "issuer" => {
            let issuer = part(&tokens.access, 1)["iss"].as_str().unwrap_or_default().to_owned();
            let region = client.pool_id.split('_').next().unwrap_or_default();
            issuer.replace(&client.pool_id, "POOL").replace(region, "REGION").replace(&client.endpoint, "ENDPOINT")
        }
        "signatures" => {
            let (jwks, algorithm) = (pool.jwks().await, part(&tokens.access, 0)["alg"].clone());
            let verifies = |token: &str| if is_signed(token, &jwks) { "verifies" } else { "does not verify" };
            match (verifies(&tokens.access), verifies(&tokens.id)) {
                ("verifies", "verifies") => {
                    format!(
                        "{}, both verify with the published key that kid names",
                        algorithm.as_str().unwrap_or("none")
                    )
                }
                (access, id) => format!("the access token {access}, the ID token {id}"),
            }
        }
        "keys-of-access-and-id-tokens" => {
            if part(&tokens.access, 0)["kid"] == part(&tokens.id, 0)["kid"] { "one" } else { "two" }.to_owned()
        }
        "errors-on-the-wire" => {
            let answer: Answer = pool.with_token("GetUser", "no.token.ours").await;
            let in_body = if answer.body["__type"].is_string() { "__type" } else { "no __type" };
            let header = answer.headers.contains_key("x-amzn-errortype");
            format!("{in_body} and {}", if header { "x-amzn-errortype" } else { "no x-amzn-errortype" })
        }
        _ => unreachable!("{name}"),
    }
}
