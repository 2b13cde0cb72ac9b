//! The server all tests share, and a database of its own for each test.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use service_kit::config::{Environment, load};
use service_kit::database::{DatabaseConfig, Pool};
use stack::postgres::{Options, Postgres, ServerCertificate};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// The one name in the server's certificate.
pub(crate) const HOST: &str = "db.internal";

/// The role that pools log in as. Not a superuser: those are exempt from connection limits.
const ROLE: &str = "app";
const PASSWORD: &str = "app password";

/// Patience with a pool that opens its connections; only a test that has failed anyway needs it.
pub(crate) const WARM: Duration = Duration::from_secs(30);

static DATABASES: AtomicU32 = AtomicU32::new(1);

/// The server, and the files that say whom to trust.
pub(crate) struct Server {
    pub(crate) postgres: Postgres,
    /// The authority that signed the server's certificate, as a PEM file.
    pub(crate) authority: String,
    /// Another authority of the same name.
    pub(crate) other_authority: String,
    _folder: TempDir,
}

/// Lives until the process ends, and not longer: its lifeline is ours.
static SERVER: LazyLock<Server> = LazyLock::new(|| {
    // Each test has its own runtime, which the server's start must outlive.
    std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(start())).join().unwrap()
});

async fn start() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let [ours, other] = ["authority.pem", "other.pem"].map(|name| {
        let authority = authority();
        let path = folder.path().join(name);
        std::fs::write(&path, authority.pem()).unwrap();
        (authority, path.to_str().unwrap().to_owned())
    });
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([HOST.to_owned()]).unwrap().signed_by(&key, &ours.0).unwrap();
    let options = Options {
        ephemeral: true,
        remove_when_stopped: true,
        tls: Some(ServerCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() }),
        ..Options::new(folder.path().join("postgres"))
    };
    let postgres = Postgres::start(options).await.unwrap();
    let admin = connect(&postgres.url("postgres")).await;
    create_role(&admin).await;
    Server { postgres, authority: ours.1, other_authority: other.1, _folder: folder }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

pub(crate) fn server() -> &'static Server {
    &SERVER
}

pub(crate) async fn create_role(admin: &Client) {
    admin.batch_execute(&format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")).await.unwrap();
}

/// A connection beside the pool.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// How to reach a database as the pool's role: `key=value` pairs, to which more can be added.
pub(crate) fn pairs(port: u16, database: &str) -> String {
    format!("host={HOST} hostaddr=127.0.0.1 port={port} user={ROLE} password='{PASSWORD}' dbname={database}")
}

/// A pool with these settings besides the address. It is patient unless told otherwise: a slow machine is no failure.
pub(crate) fn pool(url: &str, settings: &[(&str, &str)]) -> Pool {
    let patience = [("DB_POOL_ACQUIRE_TIMEOUT_MS", "30000"), ("DB_CONNECT_TIMEOUT_MS", "30000"), ("DATABASE_URL", url)];
    let variables = patience.into_iter().chain(settings.iter().copied());
    let config = load(&Environment::from_pairs(variables), DatabaseConfig::read).unwrap();
    Pool::new(config.for_service("test")).unwrap()
}

/// An empty database.
pub(crate) struct Database {
    pub(crate) name: String,
    /// A superuser's connection to it.
    pub(crate) admin: Client,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let postgres = &server().postgres;
        let maintenance = connect(&postgres.url("postgres")).await;
        maintenance.batch_execute(&format!("CREATE DATABASE {name} OWNER {ROLE}")).await.unwrap();
        let admin = connect(&postgres.url(&name)).await;
        Self { name, admin }
    }

    /// A database with these tables, which belong to the pool's role.
    pub(crate) async fn with(sql: &str) -> Self {
        let database = Self::create().await;
        database.admin.batch_execute(&format!("SET ROLE {ROLE}; {sql}; RESET ROLE")).await.unwrap();
        database
    }

    pub(crate) fn pairs(&self) -> String {
        pairs(server().postgres.port(), &self.name)
    }

    pub(crate) fn pool(&self, settings: &[(&str, &str)]) -> Pool {
        pool(&self.pairs(), settings)
    }

    /// A pool of exactly one connection, so that the next borrower gets what the last one left.
    pub(crate) fn pool_of_one(&self, settings: &[(&str, &str)]) -> Pool {
        self.pool(&[settings, &[("DB_POOL_MAX", "1"), ("DB_POOL_MIN", "0")]].concat())
    }

    /// The server processes that serve the pool's role here.
    pub(crate) async fn backends(&self) -> Vec<i32> {
        backends(&self.admin, &self.name).await
    }

    /// Ends them from the server's side, as an administrator or a failover would.
    pub(crate) async fn terminate(&self, pids: &[i32]) {
        for pid in pids {
            self.admin.query("SELECT pg_terminate_backend($1)", &[pid]).await.unwrap();
        }
    }

    /// How many of the pool's statements with this text run at the moment.
    pub(crate) async fn running(&self, text: &str) -> i64 {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND datname = $1 \
                   AND state = 'active' AND query LIKE '%' || $2 || '%'";
        self.admin.query_one(sql, &[&self.name, &text]).await.unwrap().get(0)
    }
}

pub(crate) async fn backends(admin: &Client, database: &str) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE usename = 'app' AND datname = $1 ORDER BY pid";
    admin.query(sql, &[&database]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Waits until something holds that another process brings about. The limit only ends a test that has failed anyway.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds().await {
        assert!(Instant::now() < deadline, "it did not come to pass: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The server process behind a pool's next connection.
pub(crate) async fn backend_of(pool: &Pool) -> i32 {
    pool.acquire().await.unwrap().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}
