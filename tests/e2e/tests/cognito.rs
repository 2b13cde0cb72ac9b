//! The same journey with accounts in a user pool: in the double that `datum up` starts, in moto's and in ministack's.
//!
//! Where an emulator lies, [`Truth`] says so, and the journey asserts the lie: an emulator that is mended makes it fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use e2e::{Datum, PASSWORD, Person, new_email};
use serde_json::{Value, json};
use stack::cognito::{ControlClient, ImportedUser};
use test_support::{Caller, Emulator, Reply, TestEmulator};
use tokio::task::JoinSet;

const DATUM: &str = env!("CARGO_BIN_EXE_e2e-datum");
const NEW_PASSWORD: &str = "a wholly new passphrase";

/// What a pool does.
#[derive(Clone, Copy)]
struct Truth {
    /// `RevokeToken` works. moto's answers 500: a logout is then 503, and the session goes on.
    revokes: bool,
    /// Codes are checked. Neither emulator does.
    checks_codes: bool,
}

const DOUBLE: Truth = Truth { revokes: true, checks_codes: true };
const MOTO: Truth = Truth { revokes: false, checks_codes: false };
const MINISTACK: Truth = Truth { revokes: true, checks_codes: false };

fn text(reply: &Reply, name: &str) -> String {
    reply.json()[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {}", reply.text())).to_owned()
}

struct Journey<'a> {
    anyone: Caller,
    truth: Truth,
    /// Where the double shows what it has sent.
    mailbox: Option<&'a str>,
}

impl Journey<'_> {
    async fn log_in(&self, email: &str, password: &str) -> Reply {
        self.anyone.post_json("/v1/auth/login", json!({"email": email, "password": password})).await
    }

    async fn refresh(&self, token: &str) -> Reply {
        self.anyone.post_json("/v1/auth/refresh", json!({"refresh_token": token})).await
    }

    async fn confirm(&self, email: &str, code: &str) -> Reply {
        self.anyone.post_json("/v1/auth/confirm", json!({"email": email, "code": code})).await
    }

    /// The code that was sent; an emulator takes any.
    async fn code(&self, email: &str) -> String {
        let Some(endpoint) = self.mailbox else { return "123456".to_owned() };
        let user: Value = reqwest::get(format!("{endpoint}/-/users/{email}")).await.unwrap().json().await.unwrap();
        user["confirmation_code"].as_str().unwrap().to_owned()
    }

    async fn walk(&self) {
        let anyone = &self.anyone;
        let email = new_email("ada");

        let registered = Person::register(anyone, &email).await;
        registered.assert_status(201);
        assert_eq!(registered.json()["confirmation_required"], true, "{}", registered.text());
        let id = text(&registered, "id");
        Person::register(anyone, &email).await.assert_problem(409, "email_taken");
        self.log_in(&email, PASSWORD).await.assert_problem(401, "invalid_credentials");
        if self.truth.checks_codes {
            self.confirm(&email, "no-code").await.assert_invalid(&[("/code", "code_not_accepted")]);
        }
        self.confirm(&email, &self.code(&email).await).await.assert_status(204);

        // Nobody and a wrong password are one and the same.
        let wrong = self.log_in(&email, "not the password").await;
        let nobody = self.log_in(&new_email("nobody"), PASSWORD).await;
        for refused in [&wrong, &nobody] {
            refused.assert_problem(401, "invalid_credentials");
        }
        assert_eq!(wrong.json()["detail"], nobody.json()["detail"]);

        let login = self.log_in(&email, PASSWORD).await;
        login.assert_status(200);
        assert_eq!(text(&login, "token_type"), "Bearer");
        let ada = anyone.bearing(text(&login, "access_token"));
        let me = ada.get("/v1/actors/me").await;
        me.assert_status(200);
        // The access token says no email: the actor service has asked for it.
        assert_eq!((text(&me, "id"), text(&me, "email")), (id.clone(), email.clone()));

        let renewed = self.refresh(&text(&login, "refresh_token")).await;
        renewed.assert_status(200);
        let ada = anyone.bearing(text(&renewed, "access_token"));
        let uploaded = ada.post_raw("/v1/documents?name=a.txt", "text/plain", "a text of Ada's").await;
        let document = text(&uploaded, "id");
        uploaded.assert_status(201);
        let content = ada.get(&format!("/v1/documents/{document}/content")).await;
        assert_eq!(content.assert_status(200).text(), "a text of Ada's");

        let token = text(&renewed, "refresh_token");
        let logout = anyone.post_json("/v1/auth/logout", json!({"refresh_token": token})).await;
        let afterwards = self.refresh(&token).await;
        if self.truth.revokes {
            logout.assert_status(204);
            afterwards.assert_problem(401, "invalid_refresh_token");
        } else {
            logout.assert_problem(503, "identity_unavailable");
            afterwards.assert_status(200);
        }

        let login = self.log_in(&email, PASSWORD).await;
        let ada = anyone.bearing(text(&login, "access_token"));
        let change = |current: &str| json!({"current_password": current, "new_password": NEW_PASSWORD});
        let refused = ada.post_json("/v1/auth/password", change("not the password")).await;
        refused.assert_problem(403, "current_password_wrong");
        ada.post_json("/v1/auth/password", change(PASSWORD)).await.assert_status(204);
        self.log_in(&email, PASSWORD).await.assert_problem(401, "invalid_credentials");
        self.log_in(&email, NEW_PASSWORD).await.assert_status(200);
    }
}

async fn on_an_emulator(emulator: Emulator, truth: Truth, test: &str) {
    let Some(pool) = TestEmulator::start(emulator, test).await else { return };
    let settings = [
        ("COGNITO_USER_POOL_ID", pool.pool_id.as_str()),
        ("COGNITO_CLIENT_ID", &pool.client_id),
        ("COGNITO_ENDPOINT_URL", &pool.endpoint),
        ("COGNITO_CONFIRMATION", "code"),
    ];
    let settings = settings.map(|(name, value)| format!("{name}={value}"));
    let mut arguments = vec!["--ephemeral", "--identity", "cognito"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let system = Datum::up(DATUM, &arguments);
    let identity = system.status()["identity"].clone();
    assert_eq!((&identity["provider"], &identity["endpoint"]), (&json!("cognito"), &json!(pool.endpoint)));
    Journey { anyone: system.anyone(), truth, mailbox: None }.walk().await;
}

#[tokio::test]
async fn the_journey_on_moto() {
    on_an_emulator(Emulator::Moto, MOTO, "the_journey_on_moto").await;
}

#[tokio::test]
async fn the_journey_on_ministack() {
    on_an_emulator(Emulator::Ministack, MINISTACK, "the_journey_on_ministack").await;
}

/// Where the double of a system listens.
fn double_of(system: &Datum) -> String {
    let identity = system.status()["identity"].clone();
    assert_eq!(identity["provider"], "cognito_double", "{identity}");
    assert!(system.printed().contains("Users  Cognito double at"), "{}", system.printed());
    identity["endpoint"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_journey_on_the_double() {
    let arguments = ["--ephemeral", "--identity", "cognito", "--set", "COGNITO_CONFIRMATION=code"];
    let system = Datum::up(DATUM, &arguments);
    let endpoint = double_of(&system);
    Journey { anyone: system.anyone(), truth: DOUBLE, mailbox: Some(&endpoint) }.walk().await;
    let stats = ControlClient::new(&endpoint).stats().await.unwrap();
    for call in ["SignUp", "ConfirmSignUp", "InitiateAuth", "RevokeToken", "GetUser", "ChangePassword"] {
        assert!(stats.calls.get(call).is_some_and(|calls| calls.succeeded > 0), "{call}: {stats:?}");
    }
}

#[tokio::test]
async fn accounts_in_the_double_survive_a_restart_and_sessions_with_them() {
    let arguments = ["--identity", "cognito"];
    let system = Datum::up(DATUM, &arguments);
    let workplace = system.workplace();
    let imported = ImportedUser { email: new_email("imported"), password: PASSWORD.into(), sub: None };
    ControlClient::new(double_of(&system)).import(std::slice::from_ref(&imported)).await.unwrap();
    // The double confirms accounts by itself where nobody asks for codes.
    let ada = Person::new(&system.anyone(), "ada").await;
    assert!(system.stop().status.success());

    let system = Datum::up_in(DATUM, &arguments, workplace);
    let anyone = system.anyone();
    anyone.bearing(&ada.access_token).get("/v1/actors/me").await.assert_status(200);
    let renewed = anyone.post_json("/v1/auth/refresh", json!({"refresh_token": ada.refresh_token})).await;
    renewed.assert_status(200);
    assert_eq!(Person::log_in(&anyone, &ada.email).await.id, ada.id);
    Person::log_in(&anyone, &imported.email).await;
}

#[tokio::test]
async fn a_thousand_logins_open_no_more_connections_than_the_pool_may_have() {
    const CONNECTIONS: u64 = 4;
    let setting = format!("COGNITO_MAX_CONNECTIONS={CONNECTIONS}");
    let patience = "COGNITO_ADMISSION_TIMEOUT_MS=60000";
    let system = Datum::up(DATUM, &["--ephemeral", "--identity", "cognito", "--set", &setting, "--set", patience]);
    let control = ControlClient::new(double_of(&system));
    let email = new_email("ada");
    let imported = ImportedUser { email: email.clone(), password: PASSWORD.into(), sub: None };
    control.import(&[imported]).await.unwrap();
    let before = control.stats().await.unwrap();

    let mut people = JoinSet::new();
    for _ in 0..50 {
        let (anyone, login) = (system.anyone(), json!({"email": email, "password": PASSWORD}));
        people.spawn(async move {
            for _ in 0..20 {
                anyone.post_json("/v1/auth/login", &login).await.assert_status(200);
            }
        });
    }
    people.join_all().await;
    let after = control.stats().await.unwrap();
    assert_eq!(after.calls["InitiateAuth"].succeeded, 1_000);
    // And one of our own, if the one that asked before was closed.
    let opened = after.connections - before.connections;
    assert!(opened <= CONNECTIONS + 1, "{opened} connections");
}
