//! First sight of people whose tokens state neither email nor name: Cognito is asked, and get-user never fails for it.

use std::sync::Arc;
use std::time::Duration;

use actor::Config;
use serde_json::{Value, json};
use service_kit::clock::ManualClock;
use service_kit::config::{self, Environment};
use test_support::{App, CognitoAnswer, CognitoStub, JwksAnswer, JwksStub, Reply, TestDatabase, TestIssuer};
use time::macros::datetime;
use uuid::Uuid;

struct OnCognito {
    app: App,
    stub: CognitoStub,
    issuer: TestIssuer,
    clock: ManualClock,
    _keys: JwksStub,
    _database: TestDatabase,
}

impl OnCognito {
    async fn start() -> Self {
        let database = TestDatabase::create().await;
        let clock = ManualClock::at(datetime!(2026-03-01 12:00 UTC));
        let issuer = TestIssuer::cognito(Arc::new(clock.clone()));
        let keys = JwksStub::start(JwksAnswer::Keys(issuer.jwks())).await;
        let stub = CognitoStub::start().await;
        let (policy, jwks_url, database_url) = (issuer.policy(), keys.url(), database.url("actor"));
        let environment = Environment::from_pairs([
            ("DATABASE_URL", database_url.as_str()),
            ("DB_POOL_MIN", "0"),
            // A waiting request must not hold the one connection there is.
            ("DB_POOL_MAX", "1"),
            ("DB_POOL_ACQUIRE_TIMEOUT_MS", "60000"),
            ("AUTH_IDENTITY_PROVIDER", "cognito"),
            ("AUTH_ISSUER", policy.issuer()),
            ("AUTH_JWKS_URL", jwks_url.as_str()),
            ("COGNITO_CLIENT_ID", "test-client"),
            ("COGNITO_ENDPOINT_URL", stub.url()),
            ("COGNITO_ATTEMPT_TIMEOUT_MS", "60000"),
            ("COGNITO_OPERATION_TIMEOUT_MS", "60000"),
            ("COGNITO_MAX_ATTEMPTS", "1"),
        ]);
        let config = config::load(&environment, Config::read).expect("a valid configuration");
        let service = actor::build(config, Arc::new(clock.clone())).await.expect("a service");
        Self { app: App::serve(service).await, stub, issuer, clock, _keys: keys, _database: database }
    }

    async fn me(&self, token: &str) -> Reply {
        self.app.as_bearer(token).get("/v1/actors/me").await
    }

    fn asked(&self) -> usize {
        self.stub.calls_of("GetUser").len()
    }
}

fn user(attributes: &[(&str, &str)]) -> CognitoAnswer {
    let attributes: Vec<_> = attributes.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect();
    CognitoAnswer::Ok(json!({"Username": "018f", "UserAttributes": attributes}))
}

fn ada() -> CognitoAnswer {
    user(&[("sub", "018f"), ("email_verified", "true"), ("email", "ada@example.com"), ("name", "Ada")])
}

fn person(reply: &Reply) -> (Value, Value) {
    let body = reply.assert_status(200).json();
    (body["email"].clone(), body["display_name"].clone())
}

#[tokio::test]
async fn at_first_sight_cognito_is_asked_in_the_callers_name_and_never_again() {
    let actors = OnCognito::start().await;
    actors.stub.answer("GetUser", ada());
    let id = Uuid::new_v4();
    let token = actors.issuer.token(id);
    let first = actors.me(&token).await;
    assert_eq!(person(&first), (json!("ada@example.com"), json!("Ada")));
    assert!(first.stages().contains_key("idp"));
    assert_eq!(actors.stub.calls_of("GetUser"), [json!({"AccessToken": token})]);
    assert!(!actors.stub.calls()[0].signed);

    for reply in [actors.me(&token).await, actors.me(&actors.issuer.token(id)).await] {
        assert_eq!(reply.json(), first.json());
        assert!(!reply.stages().contains_key("idp"));
    }
    assert_eq!(actors.asked(), 1);
}

#[tokio::test]
async fn a_failure_leaves_the_email_open_and_it_is_filled_later() {
    let actors = OnCognito::start().await;
    for answer in [
        CognitoAnswer::Html(502),
        CognitoAnswer::error("NotAuthorizedException", "Access Token does not have required scopes"),
        CognitoAnswer::error("InternalErrorException", ""),
        user(&[("phone_number", "+1")]),
        user(&[("email", "")]),
    ] {
        let asked = actors.asked();
        let token = actors.issuer.token(Uuid::new_v4());
        actors.stub.answer("GetUser", answer);
        assert_eq!(person(&actors.me(&token).await), (Value::Null, Value::Null));
        actors.stub.answer("GetUser", ada());
        assert_eq!(person(&actors.me(&token).await).0, Value::Null, "not asked again at once");
        assert_eq!(actors.asked(), asked + 1);
        actors.clock.advance(Duration::from_secs(30));
        let reply = actors.me(&token).await;
        assert_eq!(person(&reply).0, json!("ada@example.com"));
        assert!(reply.header("etag").unwrap().ends_with(".2\""), "one change of a row that was there");
        assert_eq!(actors.asked(), asked + 2);
    }
}

#[tokio::test]
async fn fifty_first_sights_at_once_are_one_question() {
    let actors = OnCognito::start().await;
    let token = actors.issuer.token(Uuid::new_v4());
    for (answer, email) in [(CognitoAnswer::Html(500), Value::Null), (ada(), json!("ada@example.com"))] {
        let asked = actors.asked();
        actors.stub.answer("GetUser", answer);
        actors.stub.hold();
        let first_sights = futures_util::future::join_all((0..50).map(|_| actors.me(&token)));
        let meanwhile = async {
            actors.stub.called(asked + 1).await;
            // Nobody holds the one connection while Cognito takes its time.
            let other = actors.app.as_bearer(actors.issuer.build(Uuid::new_v4()).scope("actors:read").sign());
            other.get(&format!("/v1/actors/{}", Uuid::new_v4())).await.assert_problem(404, "not_found");
            actors.stub.release();
        };
        let (replies, ()) = tokio::join!(first_sights, meanwhile);
        for reply in replies {
            assert_eq!(person(&reply).0, email);
        }
        assert_eq!(actors.asked(), asked + 1);
        actors.clock.advance(Duration::from_secs(30));
    }
}

#[tokio::test]
async fn a_throttled_provider_is_left_alone_for_everybody() {
    let actors = OnCognito::start().await;
    actors.stub.answer("GetUser", CognitoAnswer::error("TooManyRequestsException", "Rate exceeded"));
    let tokens: Vec<_> = (0..3).map(|_| actors.issuer.token(Uuid::new_v4())).collect();
    for token in &tokens {
        assert_eq!(person(&actors.me(token).await).0, Value::Null);
    }
    assert_eq!(actors.asked(), 1);
    actors.stub.answer("GetUser", ada());
    actors.clock.advance(Duration::from_secs(1));
    assert_eq!(person(&actors.me(&tokens[1]).await).0, json!("ada@example.com"));
    assert_eq!(person(&actors.me(&tokens[0]).await).0, Value::Null, "who was asked about waits longer");
    actors.clock.advance(Duration::from_secs(29));
    assert_eq!(person(&actors.me(&tokens[0]).await).0, json!("ada@example.com"));
}

#[tokio::test]
async fn a_token_that_states_an_email_is_believed_without_asking() {
    let actors = OnCognito::start().await;
    // A pool can put claims into access tokens (pre token generation trigger, version 2).
    let token = actors.issuer.build(Uuid::new_v4()).claim("email", "ada@example.com").sign();
    assert_eq!(person(&actors.me(&token).await).0, json!("ada@example.com"));
    assert_eq!(actors.asked(), 0);
}
