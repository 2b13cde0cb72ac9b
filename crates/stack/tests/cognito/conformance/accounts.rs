//! Accounts: sign-up and confirmation.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Case, case};
use crate::user_pool::{Account, AppClient, OTHER_PASSWORD, PASSWORD, UserPool};

pub(super) static CASES: [Case; 15] = [
    case("sign-up", "200 unconfirmed, UserSub is a UUID, code to EMAIL", "SignUp"),
    case("sign-up-twice", "400 UsernameExistsException", "SignUp"),
    case("sign-up-in-another-case", "400 UsernameExistsException", "User pool case sensitivity"),
    case(
        "sign-up-with-less-than-six-characters",
        "400 InvalidParameterException",
        "not stated; trackit/aws-cognito-boilerplate#24",
    ),
    case("sign-up-against-the-password-policy", "400 InvalidPasswordException", "SignUp"),
    case("sign-up-with-what-is-no-email", "400 InvalidParameterException", "Customizing sign-in attributes"),
    case("sign-up-with-an-unknown-client", "400 ResourceNotFoundException", "SignUp"),
    case("confirm-with-a-wrong-code", "400 CodeMismatchException", "ConfirmSignUp"),
    case("confirm-a-confirmed-user", "400 NotAuthorizedException", "not stated"),
    case("resend-a-code", "200 code to EMAIL", "ResendConfirmationCode"),
    case("resend-to-a-confirmed-user", "400 InvalidParameterException", "not stated"),
    case("admin-confirm-twice", "400 NotAuthorizedException", "not stated"),
    case("admin-confirm-an-unknown-user", "400 UserNotFoundException", "AdminConfirmSignUp"),
    case("unsigned-admin-call", "400 MissingAuthenticationTokenException", "Common Errors"),
    case(
        "new-password-required",
        "200 challenge NEW_PASSWORD_REQUIRED, answered 200, again 400",
        "RespondToAuthChallenge",
    ),
];

fn delivery(body: &Value) -> String {
    format!("code to {}", body["CodeDeliveryDetails"]["DeliveryMedium"].as_str().unwrap_or("nowhere"))
}

pub(super) async fn observe(name: &str, pool: &UserPool) -> String {
    let client = &pool.open;
    let sign_up =
        async |email: &str, password: &str| pool.call(client, "SignUp", client.sign_up(email, password)).await;
    let confirm = async |account: &Account, code: &str| {
        let input = json!({"ClientId": client.id, "Username": account.email, "ConfirmationCode": code});
        pool.call(client, "ConfirmSignUp", input).await.verdict()
    };
    let resend = async |account: &Account| {
        let input = json!({"ClientId": client.id, "Username": account.email});
        pool.call(client, "ResendConfirmationCode", input).await
    };
    let admin_confirm = async |email: &str| {
        let input = json!({"UserPoolId": client.pool_id, "Username": email});
        pool.call(client, "AdminConfirmSignUp", input).await.verdict()
    };
    let email = format!("{}@example.com", Uuid::new_v4().simple());
    match name {
        "sign-up" => {
            let answer = sign_up(&email, PASSWORD).await;
            let confirmed = if answer.body["UserConfirmed"] == false { "unconfirmed" } else { "confirmed" };
            let sub = answer.body["UserSub"].as_str().unwrap_or_default().parse::<Uuid>();
            let sub = if sub.is_ok() { "UserSub is a UUID" } else { "UserSub is no UUID" };
            format!("{} {confirmed}, {sub}, {}", answer.verdict(), delivery(&answer.body))
        }
        "sign-up-twice" => {
            let account = pool.signed_up(client).await;
            sign_up(&account.email, OTHER_PASSWORD).await.verdict()
        }
        "sign-up-in-another-case" => {
            let account = pool.signed_up(client).await;
            sign_up(&account.email.to_uppercase(), PASSWORD).await.verdict()
        }
        "sign-up-with-less-than-six-characters" => sign_up(&email, "Ab1-x").await.verdict(),
        "sign-up-against-the-password-policy" => sign_up(&email, "Ab1-xyz").await.verdict(),
        "sign-up-with-what-is-no-email" => sign_up("ada", PASSWORD).await.verdict(),
        "sign-up-with-an-unknown-client" => {
            let unknown = AppClient { id: "unknown0client00000000000".into(), ..client.clone() };
            pool.call(&unknown, "SignUp", unknown.sign_up(&email, PASSWORD)).await.verdict()
        }
        "confirm-with-a-wrong-code" => confirm(&pool.signed_up(client).await, "no code").await,
        "confirm-a-confirmed-user" => confirm(&pool.confirmed(client).await, "000000").await,
        "resend-a-code" => {
            let answer = resend(&pool.signed_up(client).await).await;
            if answer.status == 200 { format!("200 {}", delivery(&answer.body)) } else { answer.verdict() }
        }
        "resend-to-a-confirmed-user" => resend(&pool.confirmed(client).await).await.verdict(),
        "admin-confirm-twice" => admin_confirm(&pool.confirmed(client).await.email).await,
        "admin-confirm-an-unknown-user" => admin_confirm(&email).await,
        "unsigned-admin-call" => {
            let account = pool.signed_up(client).await;
            let input = json!({"UserPoolId": client.pool_id, "Username": account.email});
            pool.unsigned(client, "AdminConfirmSignUp", input).await.verdict()
        }
        "new-password-required" => new_password(pool, client, &email).await,
        _ => unreachable!("{name}"),
    }
}

async fn new_password(pool: &UserPool, client: &AppClient, email: &str) -> String {
    let input = json!({
        "UserPoolId": client.pool_id,
        "Username": email,
        "TemporaryPassword": PASSWORD,
        "MessageAction": "SUPPRESS",
        "UserAttributes": [{"Name": "email", "Value": email}],
    });
    let created = pool.call(client, "AdminCreateUser", input).await;
    assert_eq!(created.status, 200, "{created:?}");
    let challenge = pool.log_in(client, email, PASSWORD).await;
    let respond = json!({
        "ClientId": client.id,
        "ChallengeName": "NEW_PASSWORD_REQUIRED",
        "Session": challenge.body["Session"],
        "ChallengeResponses": {"USERNAME": email, "NEW_PASSWORD": OTHER_PASSWORD},
    });
    let answered = pool.call(client, "RespondToAuthChallenge", respond.clone()).await;
    let again = pool.call(client, "RespondToAuthChallenge", respond).await;
    format!(
        "{} challenge {}, answered {}, again {}",
        challenge.verdict(),
        challenge.body["ChallengeName"].as_str().unwrap_or("none"),
        answered.verdict(),
        again.status
    )
}
