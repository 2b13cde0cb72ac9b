//! The service under test with what it needs: a database of its own, hashing threads of its own, a clock that stands still.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use auth::Config;
use auth::hashing::{Hasher, HashingConfig};
use auth::keys::generate_pem;
use serde_json::{Value, json};
use service_kit::clock::{Clock, ManualClock, SharedClock};
use service_kit::config::{self, Environment};
use service_kit::database::Pool;
use service_kit::service::Service;
use test_support::{App, Caller, Reply, TestDatabase, TestPostgres, eventually};
use time::macros::datetime;
use tokio_postgres::{Client, NoTls};

/// A password that keeps every rule.
pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// Another one.
pub(crate) const OTHER_PASSWORD: &str = "an entirely different one";

/// One task of the service, and what it stands on.
pub(crate) struct Auth {
    pub(crate) app: App,
    pub(crate) hasher: Hasher,
    pub(crate) clock: ManualClock,
    /// The task's own.
    pub(crate) pool: Pool,
    /// As administrator, for looking at and preparing rows.
    pub(crate) admin: Client,
    urls: Urls,
    variables: Vec<(String, String)>,
    /// Kept for as long as any task uses it.
    database: Option<Arc<TestDatabase>>,
}

#[derive(Clone)]
struct Urls {
    auth: String,
    admin: String,
}

/// A session's tokens.
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
}

impl Auth {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With variables of the service set; hashing is cheap unless they say otherwise.
    pub(crate) async fn start_with(variables: &[(&str, &str)]) -> Self {
        let database = Arc::new(TestDatabase::create().await);
        let urls = Urls { auth: database.url("auth"), admin: database.admin_url() };
        let task = Self::serve(urls, new_clock(), with_defaults(variables)).await;
        Self { database: Some(database), ..task }
    }

    /// On a server of its own, which the test may stop.
    pub(crate) async fn start_on_own_server() -> (Self, TestPostgres) {
        let server = TestPostgres::start(&[]).await;
        server.migrate().await;
        let urls = Urls { auth: server.url("auth"), admin: server.admin_url() };
        (Self::serve(urls, new_clock(), with_defaults(&[])).await, server)
    }

    /// Another task of the same service: same database, same clock, same keys.
    pub(crate) async fn another_task(&self) -> Self {
        self.another_task_with(&[]).await
    }

    /// Another task, with some variables set otherwise.
    pub(crate) async fn another_task_with(&self, variables: &[(&str, &str)]) -> Self {
        let mut all = self.variables.clone();
        all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let task = Self::serve(self.urls.clone(), self.clock.clone(), all).await;
        Self { database: self.database.clone(), ..task }
    }

    async fn serve(urls: Urls, clock: ManualClock, variables: Vec<(String, String)>) -> Self {
        let environment = environment(&urls, &variables);
        let hashing = config::load(&environment, HashingConfig::read).expect("the test's variables are valid");
        let hasher = Hasher::start(&hashing).expect("threads");
        let service = service(&environment, hasher.clone(), &clock);
        let pool = service.pool.clone().expect("a database");
        let admin = connect(&urls.admin).await;
        Self { app: App::serve(service).await, hasher, clock, pool, admin, urls, variables, database: None }
    }

    /// The same service, served once more with variables of the server set.
    pub(crate) async fn serve_again(&self, server_variables: &[(&str, &str)]) -> App {
        let environment = environment(&self.urls, &self.variables);
        App::serve_with(service(&environment, self.hasher.clone(), &self.clock), server_variables).await
    }

    /// Another connection as administrator, for transactions beside [`Auth::admin`].
    pub(crate) async fn another_admin(&self) -> Client {
        connect(&self.urls.admin).await
    }

    pub(crate) fn now(&self) -> time::OffsetDateTime {
        self.clock.now()
    }

    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn register(&self, email: &str, password: &str) -> Reply {
        let body = json!({"email": email, "password": password});
        self.app.anonymous().post_json("/v1/auth/register", body).await
    }

    pub(crate) async fn login(&self, email: &str, password: &str) -> Reply {
        login_as(&self.app.anonymous(), email, password).await
    }

    /// Registers with [`PASSWORD`] and logs in.
    pub(crate) async fn sign_up(&self, email: &str) -> Tokens {
        self.register(email, PASSWORD).await.assert_status(201);
        self.session(email, PASSWORD).await
    }

    /// Logs in, which must succeed.
    pub(crate) async fn session(&self, email: &str, password: &str) -> Tokens {
        let reply = self.login(email, password).await;
        Tokens::of(reply.assert_status(200))
    }

    pub(crate) async fn refresh(&self, token: &str) -> Reply {
        self.app.anonymous().post_json("/v1/auth/refresh", json!({"refresh_token": token})).await
    }

    pub(crate) async fn logout(&self, token: &str) -> Reply {
        self.app.anonymous().post_json("/v1/auth/logout", json!({"refresh_token": token})).await
    }

    pub(crate) async fn change_password(&self, access: &str, current: &str, new: &str) -> Reply {
        let body = json!({"current_password": current, "new_password": new});
        self.app.as_bearer(access).post_json("/v1/auth/password", body).await
    }

    /// A count, as administrator.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.admin.query_one(sql, &[]).await.expect("a count").get(0)
    }

    /// Sets the account of an email to locked, as an operator does.
    pub(crate) async fn lock_account(&self, email: &str) {
        const SQL: &str = "UPDATE auth.users SET disabled_at = now() WHERE email = $1";
        assert_eq!(self.admin.execute(SQL, &[&email]).await.expect("an update"), 1);
    }

    /// The stored hash of the only account.
    pub(crate) async fn stored_hash(&self) -> String {
        self.admin.query_one("SELECT password_hash FROM auth.users", &[]).await.expect("one account").get(0)
    }

    /// Waits until this many sessions of the database wait for a lock.
    pub(crate) async fn until_waiting_for_locks(&self, sessions: i64) {
        const SQL: &str = "
            SELECT count(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
             WHERE NOT l.granted AND a.datname = current_database()";
        eventually("a wait for a lock", async || self.count(SQL).await >= sessions).await;
    }
}

fn new_clock() -> ManualClock {
    ManualClock::at(datetime!(2026-03-01 12:00 UTC))
}

fn with_defaults(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    let key = generate_pem().expect("a key");
    let defaults = [
        ("AUTH_ISSUER", "https://datum.test"),
        ("AUTH_SIGNING_KEYS", key.as_str()),
        ("AUTH_ARGON2_MEMORY_KIB", "64"),
        ("AUTH_ARGON2_ITERATIONS", "1"),
        ("DB_POOL_MIN", "0"),
        // No test may depend on the speed of the machine; those about deadlines set their own.
        ("DB_POOL_ACQUIRE_TIMEOUT_MS", "60000"),
        ("AUTH_HASH_DEADLINE_MS", "60000"),
    ];
    defaults.iter().chain(variables).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn environment(urls: &Urls, variables: &[(String, String)]) -> Environment {
    let url = [("DATABASE_URL".to_owned(), urls.auth.clone())];
    Environment::from_pairs(url.into_iter().chain(variables.iter().cloned()))
}

fn service(environment: &Environment, hasher: Hasher, clock: &ManualClock) -> Service {
    let config = config::load(environment, Config::read).expect("the test's variables are valid");
    let clock: SharedClock = Arc::new(clock.clone());
    auth::assemble(config, hasher, clock).expect("a service")
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the administrator can connect");
    tokio::spawn(connection);
    client
}

impl Tokens {
    pub(crate) fn of(reply: &Reply) -> Self {
        let text = |body: &Value, name: &str| body[name].as_str().expect("a token").to_owned();
        let body = reply.json();
        Self { access: text(&body, "access_token"), refresh: text(&body, "refresh_token") }
    }
}

pub(crate) async fn login_as(caller: &Caller, email: &str, password: &str) -> Reply {
    caller.post_json("/v1/auth/login", json!({"email": email, "password": password})).await
}

/// How many replies have which status.
pub(crate) fn statuses(replies: &[Reply]) -> BTreeMap<u16, usize> {
    replies.iter().fold(BTreeMap::new(), |mut counts, reply| {
        *counts.entry(reply.status.as_u16()).or_default() += 1;
        counts
    })
}
