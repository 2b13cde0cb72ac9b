//! A database per test, cloned from one that was migrated once.
//!
//! The server is started on first use, one a test process, and ends with the process. `DATUM_TEST_DATABASE_URL` names a
//! server to use instead, as superuser; it must be for tests only, since the services' roles get the tests' passwords.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use migrator::RolePasswords;
use service_kit::config::Secret;
use stack::postgres::{Options, Postgres};
use tokio::sync::{Mutex, OnceCell};
use tokio_postgres::{Client, NoTls, error::SqlState};
use url::Url;

use crate::{background, folders};

/// How long dropping waits until a database is gone from a server that is not ours.
const DROP_PATIENCE: Duration = Duration::from_secs(30);

static SERVER: OnceCell<Server> = OnceCell::const_new();
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A database of one test. Dropping it removes the database, whoever is still connected.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    server: &'static Server,
}

impl TestDatabase {
    /// A database with every migration applied, in its first state.
    pub async fn create() -> Self {
        let server = Server::shared().await;
        background::run(async move {
            let template = server.template().await;
            let database = Self { name: new_name(), server };
            server.execute(&format!("CREATE DATABASE {} TEMPLATE {template}", database.name)).await;
            for statement in migrator::privileges_of_clone(&database.name) {
                server.execute(&statement).await;
            }
            database
        })
        .await
    }

    /// A database without anything in it, for tests of the migrator.
    pub async fn empty() -> Self {
        let server = Server::shared().await;
        background::run(async move {
            let database = Self { name: new_name(), server };
            server.execute(&format!("CREATE DATABASE {}", database.name)).await;
            database
        })
        .await
    }

    /// URL for the role of a service: `auth`, `actor` or `document`.
    #[must_use]
    pub fn url(&self, service: &str) -> String {
        role_url(&self.server.admin, &self.name, service)
    }

    /// URL for the administrator (a superuser).
    #[must_use]
    pub fn admin_url(&self) -> String {
        database_url(&self.server.admin, &self.name).into()
    }

    /// A connection as administrator, for looking at and preparing rows. Driven by the current runtime.
    pub async fn admin(&self) -> Client {
        connect(&self.admin_url()).await.expect("the administrator can connect")
    }

    /// A connection as the role of a service. Driven by the current runtime.
    pub async fn connect(&self, service: &str) -> Client {
        connect(&self.url(service)).await.expect("the service's role can connect")
    }

    /// The database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (done, wait) = std::sync::mpsc::channel();
        let (server, name) = (self.server, std::mem::take(&mut self.name));
        background::spawn(async move {
            let _ = server.try_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
            let _ = done.send(());
        });
        // Our own server ends with the process. Another keeps what the process did not live to remove.
        if server.own.is_none() {
            let _ = wait.recv_timeout(DROP_PATIENCE);
        }
    }
}

/// The passwords that the services' roles have in tests.
#[must_use]
pub fn test_passwords() -> RolePasswords {
    let password = |service: &str| Secret::new(password(service));
    RolePasswords { auth: password("auth"), actor: password("actor"), document: password("document") }
}

struct Server {
    /// Kept for its lifeline.
    own: Option<Postgres>,
    /// Of the maintenance database, as superuser.
    admin: Url,
    template: OnceCell<String>,
    /// One session for all administration, since each login costs a key derivation. Driven by the background runtime.
    session: Mutex<Option<Client>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("own", &self.own.is_some()).finish_non_exhaustive()
    }
}

impl Server {
    async fn shared() -> &'static Self {
        SERVER.get_or_init(|| background::run(Self::start())).await
    }

    async fn start() -> Self {
        let given = std::env::var("DATUM_TEST_DATABASE_URL").ok().filter(|url| !url.is_empty());
        let (own, admin) = if let Some(url) = given {
            (None, url)
        } else {
            let postgres = Postgres::start(Options {
                ephemeral: true,
                remove_when_stopped: true,
                max_connections: 400,
                extra_config: vec!["shared_buffers = '64MB'".to_owned()],
                ..Options::new(folders::new("postgres"))
            })
            .await
            .unwrap_or_else(|error| panic!("tests need PostgreSQL: {error}"));
            let url = postgres.url("postgres");
            (Some(postgres), url)
        };
        let admin = Url::parse(&admin).expect("DATUM_TEST_DATABASE_URL is a URL");
        Self { own, admin, template: OnceCell::new(), session: Mutex::new(None) }
    }

    async fn template(&self) -> &str {
        self.template.get_or_init(|| self.make_template()).await
    }

    /// The template's name says which migrations it holds: on a given server it is kept for later processes.
    async fn make_template(&self) -> String {
        let name = format!("datum_template_{}", migrator::fingerprint());
        let client = connect(self.admin.as_str()).await.expect("the test server accepts connections");
        // Processes of one `cargo nextest` share a given server. The lock ends with the session, here.
        client.batch_execute("SELECT pg_advisory_lock(8097845077)").await.expect("the lock on templates");
        let known = client.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name]).await;
        if known.expect("databases can be listed").is_none() {
            let unfinished = format!("{name}_unfinished");
            self.execute(&format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)")).await;
            self.execute(&format!("CREATE DATABASE {unfinished}")).await;
            let url = database_url(&self.admin, &unfinished);
            migrator::run(url.as_str(), &test_passwords()).await.unwrap_or_else(|error| panic!("migrating: {error}"));
            // Nobody may connect: PostgreSQL does not clone a database that is in use.
            self.execute(&format!("ALTER DATABASE {unfinished} WITH ALLOW_CONNECTIONS false")).await;
            self.execute(&format!("ALTER DATABASE {unfinished} RENAME TO {name}")).await;
        }
        name
    }

    async fn execute(&self, statement: &str) {
        self.try_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }

    async fn try_execute(&self, statement: &str) -> Result<(), tokio_postgres::Error> {
        let mut session = self.session.lock().await;
        let client = match session.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(self.admin.as_str()).await?,
        };
        let client = session.insert(client);
        loop {
            match client.batch_execute(statement).await {
                // Another process clones the same template at this moment.
                Err(error) if error.code() == Some(&SqlState::OBJECT_IN_USE) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                outcome => return outcome,
            }
        }
    }
}

/// A connection without TLS, driven by a task of the current runtime.
pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The URL with another database.
pub(crate) fn database_url(admin: &Url, database: &str) -> Url {
    let mut url = admin.clone();
    url.set_path(database);
    url
}

/// The URL of a database for the role of a service.
pub(crate) fn role_url(admin: &Url, database: &str, service: &str) -> String {
    assert!(["auth", "actor", "document"].contains(&service), "no service {service:?}");
    let mut url = database_url(admin, database);
    url.set_username(&format!("datum_{service}")).expect("a URL with a host");
    url.set_password(Some(&password(service))).expect("a URL with a host");
    url.into()
}

fn password(service: &str) -> String {
    format!("only-in-tests-{service}")
}

fn new_name() -> String {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("datum_test_{}_{number}_{:08x}", std::process::id(), rand::random::<u32>())
}
