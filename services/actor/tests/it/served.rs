//! The service under test with what it needs: a database of its own, an issuer, and a clock that stands still.

use std::sync::Arc;
use std::time::Duration;

use actor::Config;
use http::StatusCode;
use serde_json::Value;
use service_kit::clock::{Clock, ManualClock};
use service_kit::config::{self, Environment};
use service_kit::database::Pool;
use test_support::{App, JwksAnswer, JwksStub, TestDatabase, TestIssuer, TestKey, TestUser};
use time::format_description::well_known::Rfc3339;
use time::macros::datetime;
use uuid::Uuid;

/// A served actor service. Its keys come from a stub over HTTP, as in production.
pub(crate) struct Actors {
    pub(crate) app: App,
    /// The service's own pool.
    pub(crate) pool: Pool,
    database: Option<TestDatabase>,
    issuer: TestIssuer,
    keys: JwksStub,
    clock: ManualClock,
}

impl Actors {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[], &[]).await
    }

    /// With variables for the service, and others for its server.
    pub(crate) async fn start_with(service: &[(&str, &str)], server: &[(&str, &str)]) -> Self {
        let database = TestDatabase::create().await;
        let actors = Self::start_on(&database.url("actor"), service, server).await;
        Self { database: Some(database), ..actors }
    }

    /// On the migrated database at `url`, which the caller keeps.
    pub(crate) async fn start_on(url: &str, service: &[(&str, &str)], server: &[(&str, &str)]) -> Self {
        let clock = ManualClock::at(datetime!(2026-03-01 12:00:00 UTC));
        let issuer = TestIssuer::local(Arc::new(clock.clone()));
        let keys = JwksStub::start(JwksAnswer::Keys(issuer.jwks())).await;
        let (policy, jwks_url) = (issuer.policy(), keys.url());
        let wiring = [("DATABASE_URL", url), ("AUTH_ISSUER", policy.issuer()), ("AUTH_JWKS_URL", jwks_url.as_str())];
        let environment = Environment::from_pairs(wiring.into_iter().chain(service.iter().copied()));
        let config = config::load(&environment, Config::read).expect("a valid configuration");
        let service = actor::build(config, Arc::new(clock.clone())).await.expect("a service");
        let pool = service.pool.clone().expect("a database");
        Self { app: App::serve_with(service, server).await, pool, database: None, issuer, keys, clock }
    }

    /// Somebody new with this email.
    pub(crate) fn user(&self, email: &str) -> TestUser {
        self.issuer.user(email)
    }

    /// A good token with these claims added or replaced; null takes one away.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let claims = claims.as_object().expect("claims are an object");
        let token = claims.iter().fold(self.issuer.build(Uuid::new_v4()), |token, (name, value)| match value {
            Value::Null => token.without_claim(name),
            value => token.claim(name, value.clone()),
        });
        token.sign()
    }

    /// What somebody else would sign in the issuer's name.
    pub(crate) fn forged_token(&self) -> String {
        self.issuer.build(Uuid::new_v4()).signed_by(&TestKey::p256()).sign()
    }

    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn now_rfc3339(&self) -> String {
        self.clock.now().format(&Rfc3339).expect("a time that can be written")
    }

    /// How often the keys were fetched.
    pub(crate) fn key_fetches(&self) -> usize {
        self.keys.hits()
    }

    pub(crate) fn break_keys(&self) {
        self.keys.answer(JwksAnswer::Status(StatusCode::INTERNAL_SERVER_ERROR));
    }

    pub(crate) fn mend_keys(&self) {
        self.keys.answer(JwksAnswer::Keys(self.issuer.jwks()));
    }

    async fn admin(&self) -> tokio_postgres::Client {
        self.database.as_ref().expect("a database of its own").admin().await
    }

    /// As the administrator.
    pub(crate) async fn execute(&self, statement: &str) {
        self.admin().await.batch_execute(statement).await.expect("a statement that works");
    }

    /// How many actors there are.
    pub(crate) async fn count(&self) -> i64 {
        let admin = self.admin().await;
        admin.query_one("SELECT count(*) FROM actor.actors", &[]).await.expect("a count").get(0)
    }

    /// The version of the only actor's row: another after each write, even of the same values.
    pub(crate) async fn row_version(&self) -> String {
        let admin = self.admin().await;
        let row = admin.query_one("SELECT ctid::text || xmin::text FROM actor.actors", &[]).await;
        row.expect("exactly one actor").get(0)
    }
}
