//! A PostgreSQL server of one test, for tests that restart it, break it, or configure it in their own way.

use std::path::PathBuf;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use stack::postgres::{Options, Postgres, ServerCertificate};
use tokio_postgres::Client;
use url::Url;

use crate::{
    background,
    database::{connect, database_url, role_url, test_passwords},
    folders,
};

/// The database in it.
const DATABASE: &str = "datum";

/// A server with a database `datum`. Its port stays the same when it is stopped and started. Dropping it removes it.
#[derive(Debug)]
pub struct TestPostgres {
    options: Options,
    admin: Url,
    server: Option<Postgres>,
    frozen: Vec<Pid>,
}

impl TestPostgres {
    /// Starts a server with lines of configuration of its own (`log_statement = 'all'`).
    pub async fn start(extra_config: &[&str]) -> Self {
        Self::start_with(extra_config, None).await
    }

    /// Starts a server that offers TLS; add `hostssl` rules or `sslmode` as the test needs.
    pub async fn start_with_tls(certificate: ServerCertificate) -> Self {
        Self::start_with(&[], Some(certificate)).await
    }

    async fn start_with(extra_config: &[&str], tls: Option<ServerCertificate>) -> Self {
        let mut options = Options {
            ephemeral: true,
            extra_config: extra_config.iter().map(|line| (*line).to_owned()).collect(),
            tls,
            ..Options::new(folders::new("private-postgres"))
        };
        let server = start(options.clone()).await;
        background::run(async move {
            server.ensure_database(DATABASE).await.expect("the database can be made");
            options.port = Some(server.port());
            let admin = Url::parse(&server.url("postgres")).expect("a URL");
            Self { options, admin, server: Some(server), frozen: Vec::new() }
        })
        .await
    }

    /// Applies all migrations to the database `datum`.
    pub async fn migrate(&self) {
        migrator::run(&self.admin_url(), &test_passwords()).await.unwrap_or_else(|error| panic!("migrating: {error}"));
    }

    /// Stops the server; its port refuses connections.
    pub async fn stop(&mut self) {
        self.thaw();
        if let Some(server) = self.server.take() {
            background::run(server.stop()).await;
        }
    }

    /// Starts it again, with the same data and port.
    pub async fn resume(&mut self) {
        if self.server.is_none() {
            self.server = Some(start(self.options.clone()).await);
        }
    }

    /// Stops and starts it: every session is lost.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.resume().await;
    }

    /// Stops every process of the server where it is: connections stay open, and nothing answers.
    pub async fn freeze(&mut self) {
        let client = self.admin().await;
        let postmaster = self.server.as_ref().and_then(Postgres::pid).expect("the server runs");
        // The postmaster first, so that no process is born between the question and the signals.
        self.signal(postmaster, Signal::SIGSTOP);
        let processes = client.query("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()", &[]).await;
        for process in processes.expect("processes can be listed") {
            self.signal(process.get::<_, i32>(0).unsigned_abs(), Signal::SIGSTOP);
        }
    }

    /// Lets a frozen server go on.
    pub fn thaw(&mut self) {
        for process in std::mem::take(&mut self.frozen) {
            let _ = kill(process, Signal::SIGCONT);
        }
    }

    fn signal(&mut self, process: u32, signal: Signal) {
        let process = Pid::from_raw(process.try_into().expect("a process id"));
        kill(process, signal).expect("the server's processes can be signalled");
        self.frozen.push(process);
    }

    /// URL of the database `datum` as superuser.
    #[must_use]
    pub fn admin_url(&self) -> String {
        database_url(&self.admin, DATABASE).into()
    }

    /// URL of the database `datum` for the role of a service: `auth`, `actor` or `document`.
    #[must_use]
    pub fn url(&self, service: &str) -> String {
        role_url(&self.admin, DATABASE, service)
    }

    /// A connection as superuser. Driven by the current runtime.
    pub async fn admin(&self) -> Client {
        connect(&self.admin_url()).await.expect("the administrator can connect")
    }

    /// What the server has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        let log = std::fs::read(self.options.data_dir.join("postgres.log")).expect("the log can be read");
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.options.port.expect("known since the first start")
    }
}

impl Drop for TestPostgres {
    fn drop(&mut self) {
        self.thaw();
        let server = self.server.take();
        let folder: PathBuf = std::mem::take(&mut self.options.data_dir);
        background::spawn(async move {
            if let Some(server) = server {
                server.stop().await;
            }
            let _ = tokio::fs::remove_dir_all(folder).await;
        });
    }
}

/// In the shared runtime, which the server's tasks need for longer than the test's own.
async fn start(options: Options) -> Postgres {
    background::run(async move {
        Postgres::start(options).await.unwrap_or_else(|error| panic!("tests need PostgreSQL: {error}"))
    })
    .await
}
