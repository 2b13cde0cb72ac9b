//! A user pool as its callers see it, whoever runs it.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use stack::cognito::{CognitoDouble, Options};
use test_support::{Emulator, TestEmulator};
use uuid::Uuid;

/// A password that every policy here accepts.
pub(crate) const PASSWORD: &str = "Correct-horse-8-battery";
/// Another.
pub(crate) const OTHER_PASSWORD: &str = "Staple-9-and-a-half-more";

const CREDENTIALS: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/cognito-idp/aws4_request, \
                           SignedHeaders=host, Signature=00";

/// An app client.
#[derive(Debug, Clone)]
pub(crate) struct AppClient {
    pub(crate) endpoint: String,
    pub(crate) pool_id: String,
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
}

/// A user pool with two app clients.
pub(crate) struct UserPool {
    /// Without a secret.
    pub(crate) open: AppClient,
    /// With one.
    pub(crate) secret: AppClient,
    http: reqwest::Client,
    /// What must live as long.
    _running: (Option<TestEmulator>, Vec<CognitoDouble>),
}

impl UserPool {
    /// The double, once for each client; its accounts are confirmed by code.
    pub(crate) async fn double() -> Self {
        let mut running = Vec::new();
        let mut clients = Vec::new();
        for secret in [None, Some("a secret of the client")] {
            let mut options = Options::default();
            options.pool.auto_confirm = false;
            options.pool.client_secret = secret.map(|it| service_kit::config::Secret::new(it.to_owned()));
            let double = CognitoDouble::start(options).await.unwrap();
            let access = double.access();
            clients.push(AppClient {
                endpoint: access.endpoint,
                pool_id: access.pool_id,
                id: access.client_id,
                secret: secret.map(str::to_owned),
            });
            running.push(double);
        }
        let [open, secret] = clients.try_into().unwrap();
        Self { open, secret, http: reqwest::Client::new(), _running: (None, running) }
    }

    /// An emulator, where it is installed.
    pub(crate) async fn emulator(emulator: Emulator, test: &str) -> Option<Self> {
        let running = TestEmulator::start(emulator, test).await?;
        let client = |id: &str, secret: Option<&str>| AppClient {
            endpoint: running.endpoint.clone(),
            pool_id: running.pool_id.clone(),
            id: id.to_owned(),
            secret: secret.map(str::to_owned),
        };
        let (id, secret) = &running.secret_client;
        Some(Self {
            open: client(&running.client_id, None),
            secret: client(id, Some(secret)),
            http: reqwest::Client::new(),
            _running: (Some(running), Vec::new()),
        })
    }

    /// One call; signed, for those that need it.
    pub(crate) async fn call(&self, client: &AppClient, operation: &str, input: Value) -> Answer {
        let request = self.request(client, operation, &input);
        Self::send(if operation.starts_with("Admin") { request.header("authorization", CREDENTIALS) } else { request })
            .await
    }

    /// One call without credentials, whichever it is.
    pub(crate) async fn unsigned(&self, client: &AppClient, operation: &str, input: Value) -> Answer {
        Self::send(self.request(client, operation, &input)).await
    }

    fn request(&self, client: &AppClient, operation: &str, input: &Value) -> reqwest::RequestBuilder {
        self.http
            .post(&client.endpoint)
            .header("x-amz-target", format!("AWSCognitoIdentityProviderService.{operation}"))
            .header("content-type", "application/x-amz-json-1.1")
            .body(input.to_string())
    }

    async fn send(request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.text().await.unwrap();
        Answer { status, headers, body: serde_json::from_str(&body).unwrap_or_default() }
    }

    pub(crate) async fn jwks(&self) -> Value {
        let AppClient { endpoint, pool_id, .. } = &self.open;
        let url = format!("{endpoint}/{pool_id}/.well-known/jwks.json");
        self.http.get(url).send().await.unwrap().json().await.unwrap()
    }

    /// An account that waits for its confirmation.
    pub(crate) async fn signed_up(&self, client: &AppClient) -> Account {
        let email = format!("{}@example.com", Uuid::new_v4().simple());
        let answer = self.call(client, "SignUp", client.sign_up(&email, PASSWORD)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        Account { sub: answer.text("/UserSub"), email }
    }

    /// An account that can log in.
    pub(crate) async fn confirmed(&self, client: &AppClient) -> Account {
        let account = self.signed_up(client).await;
        let input = json!({"UserPoolId": client.pool_id, "Username": account.email});
        let answer = self.call(client, "AdminConfirmSignUp", input).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        account
    }

    pub(crate) async fn log_in(&self, client: &AppClient, email: &str, password: &str) -> Answer {
        self.call(client, "InitiateAuth", client.log_in(email, password)).await
    }

    /// An account with a session.
    pub(crate) async fn logged_in(&self, client: &AppClient) -> (Account, Tokens) {
        let account = self.confirmed(client).await;
        let answer = self.log_in(client, &account.email, PASSWORD).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let token = |name: &str| answer.text(&format!("/AuthenticationResult/{name}"));
        let tokens = Tokens { access: token("AccessToken"), id: token("IdToken"), refresh: token("RefreshToken") };
        (account, tokens)
    }

    pub(crate) async fn renew(&self, client: &AppClient, token: &str, hash_of: Option<&str>) -> Answer {
        let mut parameters = json!({"REFRESH_TOKEN": token});
        if let Some(username) = hash_of {
            parameters["SECRET_HASH"] = client.secret_hash(username).into();
        }
        let input = json!({"ClientId": client.id, "AuthFlow": "REFRESH_TOKEN_AUTH", "AuthParameters": parameters});
        self.call(client, "InitiateAuth", input).await
    }

    pub(crate) async fn with_token(&self, operation: &str, access_token: &str) -> Answer {
        self.call(&self.open, operation, json!({"AccessToken": access_token})).await
    }
}

impl AppClient {
    /// "Computing secret hash values".
    pub(crate) fn secret_hash(&self, username: &str) -> String {
        let secret = self.secret.clone().unwrap_or_default();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        STANDARD.encode(hmac::sign(&key, format!("{username}{}", self.id).as_bytes()))
    }

    pub(crate) fn sign_up(&self, email: &str, password: &str) -> Value {
        let attributes = json!([{"Name": "email", "Value": email}, {"Name": "name", "Value": "Ada"}]);
        let mut input =
            json!({"ClientId": self.id, "Username": email, "Password": password, "UserAttributes": attributes});
        if self.secret.is_some() {
            input["SecretHash"] = self.secret_hash(email).into();
        }
        input
    }

    pub(crate) fn log_in(&self, email: &str, password: &str) -> Value {
        let mut parameters = json!({"USERNAME": email, "PASSWORD": password});
        if self.secret.is_some() {
            parameters["SECRET_HASH"] = self.secret_hash(email).into();
        }
        json!({"ClientId": self.id, "AuthFlow": "USER_PASSWORD_AUTH", "AuthParameters": parameters})
    }
}

pub(crate) struct Account {
    pub(crate) email: String,
    pub(crate) sub: String,
}

pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) id: String,
    pub(crate) refresh: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn text(&self, pointer: &str) -> String {
        let text = self.body.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("{pointer} is no text: {self:?}")).to_owned()
    }

    /// `200`, or `400 NotAuthorizedException`.
    pub(crate) fn verdict(&self) -> String {
        let kind = self.body["__type"].as_str().map(|kind| kind.rsplit('#').next().unwrap_or(kind));
        match kind {
            Some(kind) => format!("{} {kind}", self.status),
            None => self.status.to_string(),
        }
    }

    /// Its members, sorted.
    pub(crate) fn members(&self, pointer: &str) -> String {
        let members = self.body.pointer(pointer).and_then(Value::as_object);
        let mut names: Vec<&str> = members.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.join(" ")
    }
}

/// One of the first two parts of a token.
pub(crate) fn part(token: &str, index: usize) -> Value {
    let part = token.split('.').nth(index).unwrap_or_default();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap_or_default()).unwrap_or_default()
}
