//! The service under test with a stub for Cognito, another for its keys, and a clock that stands still.

use std::sync::Arc;

use auth::Config;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use service_kit::clock::ManualClock;
use service_kit::config::{self, Environment};
use test_support::{App, CognitoAnswer, CognitoStub, JwksAnswer, JwksStub, Reply, TestIssuer};
use time::macros::datetime;
use uuid::Uuid;

use crate::served::{PASSWORD, Tokens, login_as};

/// The stub user's id.
pub(super) const SUBJECT: Uuid = Uuid::from_u128(0x018f_4e9a_0000_7000_8000_0000_0000_0001);

/// What the stub user registers and logs in with.
pub(super) const EMAIL: &str = "ada@example.com";

/// One task of the service on a pool.
pub(super) struct OnCognito {
    pub(super) app: App,
    pub(super) stub: CognitoStub,
    pub(super) issuer: TestIssuer,
    pub(super) keys: JwksStub,
    access_token: String,
}

impl OnCognito {
    pub(super) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With variables of the service set. Nothing depends on the machine's speed unless they say so.
    pub(super) async fn start_with(variables: &[(&str, &str)]) -> Self {
        let clock = Arc::new(ManualClock::at(datetime!(2026-03-01 12:00 UTC)));
        let issuer = TestIssuer::cognito(clock.clone());
        let keys = JwksStub::start(JwksAnswer::Keys(issuer.jwks())).await;
        let stub = CognitoStub::start().await;
        let (policy, jwks_url) = (issuer.policy(), keys.url());
        let wiring = [
            ("AUTH_IDENTITY_PROVIDER", "cognito"),
            ("AUTH_ISSUER", policy.issuer()),
            ("AUTH_JWKS_URL", jwks_url.as_str()),
            ("COGNITO_CLIENT_ID", "test-client"),
            ("COGNITO_ENDPOINT_URL", stub.url()),
            ("COGNITO_ADMISSION_TIMEOUT_MS", "60000"),
            ("COGNITO_CONNECT_TIMEOUT_MS", "60000"),
            ("COGNITO_ATTEMPT_TIMEOUT_MS", "60000"),
            ("COGNITO_OPERATION_TIMEOUT_MS", "60000"),
        ];
        let environment = Environment::from_pairs(wiring.into_iter().chain(variables.iter().copied()));
        let config = config::load(&environment, Config::read).expect("the test's variables are valid");
        let service = auth::build(config, clock).await.expect("a service");
        assert!(service.pool.is_none(), "no database is needed");
        let access_token = issuer.token(SUBJECT);
        Self { app: App::serve(service).await, stub, issuer, keys, access_token }
    }

    pub(super) async fn register(&self) -> Reply {
        let body = json!({"email": EMAIL, "password": PASSWORD, "display_name": "Ada"});
        self.app.anonymous().post_json("/v1/auth/register", body).await
    }

    pub(super) async fn login(&self) -> Reply {
        login_as(&self.app.anonymous(), EMAIL, PASSWORD).await
    }

    /// Logs in on a stub that gives tokens, which must succeed.
    pub(super) async fn session(&self) -> Tokens {
        self.stub.answer("InitiateAuth", self.tokens());
        Tokens::of(self.login().await.assert_status(200))
    }

    pub(super) async fn refresh(&self, token: &str) -> Reply {
        self.app.anonymous().post_json("/v1/auth/refresh", json!({"refresh_token": token})).await
    }

    pub(super) async fn logout(&self, token: &str) -> Reply {
        self.app.anonymous().post_json("/v1/auth/logout", json!({"refresh_token": token})).await
    }

    pub(super) async fn change_password(&self, access: &str, new: &str) -> Reply {
        let body = json!({"current_password": PASSWORD, "new_password": new});
        self.app.as_bearer(access).post_json("/v1/auth/password", body).await
    }

    /// The access token of the stub user.
    pub(super) fn access_token(&self) -> String {
        self.access_token.clone()
    }

    /// The answer of a good login.
    pub(super) fn tokens(&self) -> CognitoAnswer {
        CognitoAnswer::Ok(json!({"AuthenticationResult": self.result(), "ChallengeParameters": {}}))
    }

    /// Its tokens.
    pub(super) fn result(&self) -> Value {
        json!({
            "AccessToken": self.access_token(), "ExpiresIn": 3_600, "IdToken": "id.to.ken",
            "RefreshToken": "cognitos.own.token", "TokenType": "Bearer",
        })
    }
}

/// The answer of a good registration.
pub(super) fn signed_up(confirmed: bool) -> CognitoAnswer {
    CognitoAnswer::Ok(json!({"UserConfirmed": confirmed, "UserSub": SUBJECT}))
}

/// What a client with the secret `hunter2` has to send.
pub(super) fn secret_hash(username: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"hunter2");
    STANDARD.encode(hmac::sign(&key, format!("{username}test-client").as_bytes()))
}
