//! PostgreSQL on this machine: found or downloaded, set up, started, watched, stopped.
//!
//! [`Postgres::start`] gives a server on 127.0.0.1 that lives exactly as long as it is held: it ends when the value is
//! dropped and when this process dies, by whatever cause. Data stays in its folder and is found again by the next start.
//! Nothing here knows Datum's schemas: those are the migrator's.

mod account;
mod binaries;
mod cluster;
mod error;
mod remove;
mod supervise;

use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use nix::fcntl::{Flock, FlockArg};
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls, error::SqlState};

use account::Account;
use binaries::Binaries;
use cluster::Cluster;
use error::Doing;
pub use error::PostgresError;
pub use remove::remove_data;
use supervise::Supervised;

/// How long a server may need to accept connections: recovery after a crash replays up to `max_wal_size`.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// How often another free port is tried when somebody else was faster.
const PORT_ATTEMPTS: usize = 5;

/// What to start, and where its data lives.
#[derive(Debug, Clone)]
pub struct Options {
    /// Holds the data, the superuser's password and the log; made when missing. One server a folder.
    pub data_dir: PathBuf,
    /// Port on 127.0.0.1; `None` takes a free one.
    pub port: Option<u16>,
    /// No waiting for disks: a crash of the server can lose its last moments, one of the machine everything.
    pub ephemeral: bool,
    /// Remove `data_dir` when the server has ended, even when this process could not do it any more.
    pub remove_when_stopped: bool,
    /// PostgreSQL's `max_connections`.
    pub max_connections: u16,
    /// Lines for the configuration file, after ours, so that they win: `log_statement = 'all'`.
    pub extra_config: Vec<String>,
    /// Folder of `postgres` and `initdb`; `None` reads `DATUM_POSTGRES_BIN`, else looks for them.
    pub binaries: Option<PathBuf>,
    /// Where downloaded binaries are kept; `None` is `/var/cache/datum` for root, else `~/.cache/datum`.
    pub cache_dir: Option<PathBuf>,
    /// Serve TLS with this certificate.
    pub tls: Option<ServerCertificate>,
}

impl Options {
    /// A durable server on a free port with PostgreSQL's own 100 connections.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            port: None,
            ephemeral: false,
            remove_when_stopped: false,
            max_connections: 100,
            extra_config: Vec::new(),
            binaries: std::env::var_os("DATUM_POSTGRES_BIN").filter(|path| !path.is_empty()).map(PathBuf::from),
            cache_dir: None,
            tls: None,
        }
    }
}

/// A certificate and its private key, both PEM.
#[derive(Clone)]
pub struct ServerCertificate {
    /// The certificate, with intermediates when there are any.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

impl std::fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerCertificate").finish_non_exhaustive()
    }
}

/// A running server. Dropping it begins a fast shutdown; [`Postgres::stop`] also waits for its end.
#[derive(Debug)]
pub struct Postgres {
    supervised: Supervised,
    port: u16,
    password: String,
    major_version: u32,
    binaries: PathBuf,
    cluster: PathBuf,
    log: PathBuf,
    /// Held while the server runs: a second start on the folder is refused at once.
    _lock: Flock<File>,
}

impl Postgres {
    /// Finds PostgreSQL, sets the cluster up on the first start, starts it, and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// [`PostgresError`], each with what to do about it.
    pub async fn start(options: Options) -> Result<Self, PostgresError> {
        let account = Account::choose()?;
        let cache = options.cache_dir.clone().unwrap_or_else(default_cache);
        let binaries = Binaries::find(options.binaries.as_deref(), &cache).await?;
        account.must_reach(&binaries.folder)?;

        if options.port.is_some() {
            return Self::attempt(&options, &account, &binaries).await;
        }
        // A free port can be taken by another program between finding it and PostgreSQL's own bind.
        let mut attempts = 1;
        loop {
            match Self::attempt(&options, &account, &binaries).await {
                Err(PostgresError::EndedWhileStarting { log, .. })
                    if attempts < PORT_ATTEMPTS && log.contains("Address already in use") =>
                {
                    attempts += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(options: &Options, account: &Account, binaries: &Binaries) -> Result<Self, PostgresError> {
        let prepared = {
            let (options, account, binaries) = (options.clone(), account.clone(), binaries.clone());
            // Files, initdb and waiting for an earlier server are blocking work.
            tokio::task::spawn_blocking(move || prepare(&options, &account, &binaries))
        };
        let postgres = match prepared.await {
            Ok(result) => result?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        postgres.wait_until_ready().await?;
        Ok(postgres)
    }

    async fn wait_until_ready(&self) -> Result<(), PostgresError> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let attempt = tokio::select! {
                attempt = self.connect("postgres") => attempt,
                status = self.supervised.exited() => return Err(self.ended_while_starting(status)),
            };
            let reason = match attempt {
                Ok(_) => return Ok(()),
                // It answers, and will not change its mind.
                Err(error) if error.code() == Some(&SqlState::INVALID_PASSWORD) => return Err(error.into()),
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                return Err(PostgresError::NotReady {
                    seconds: READY_WITHIN.as_secs(),
                    reason: reason.to_string(),
                    log_file: self.log.clone(),
                });
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
                status = self.supervised.exited() => return Err(self.ended_while_starting(status)),
            }
        }
    }

    fn ended_while_starting(&self, status: ExitStatus) -> PostgresError {
        PostgresError::EndedWhileStarting {
            status: status.to_string(),
            log_file: self.log.clone(),
            log: last_lines(&self.log, 8),
        }
    }

    /// A connection as superuser, driven by a task of the current runtime.
    async fn connect(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::Config::new()
            .host("127.0.0.1")
            .port(self.port)
            .user("postgres")
            .password(&self.password)
            .dbname(database)
            .connect_timeout(Duration::from_secs(5))
            .connect(NoTls)
            .await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Makes the database when it is not there yet.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or refuses.
    pub async fn ensure_database(&self, name: &str) -> Result<(), PostgresError> {
        let client = self.connect("postgres").await?;
        let quoted = name.replace('"', "\"\"");
        match client.batch_execute(&format!("CREATE DATABASE \"{quoted}\"")).await {
            Err(error) if error.code() == Some(&SqlState::DUPLICATE_DATABASE) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    /// URL of a database as superuser. Holds the password: not for logs.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// PostgreSQL's major version, such as 15.
    #[must_use]
    pub fn major_version(&self) -> u32 {
        self.major_version
    }

    /// The folder of the binaries in use.
    #[must_use]
    pub fn binaries(&self) -> &Path {
        &self.binaries
    }

    /// The folder of the data (`PGDATA`): in `data_dir`, or aside when PostgreSQL's account cannot enter that.
    #[must_use]
    pub fn cluster(&self) -> &Path {
        &self.cluster
    }

    /// The server's log file.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The postmaster's process id; `None` when the server has ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.cluster.join("postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// Ends when the server has ended, for whatever reason, and says how.
    pub async fn exited(&self) -> ExitStatus {
        self.supervised.exited().await
    }

    /// Whether the server has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.supervised.status().is_none()
    }

    /// Shuts down: sessions are ended, everything is written. Ends when the server has ended, after 20 s by force.
    pub async fn stop(self) -> ExitStatus {
        self.supervised.release();
        self.supervised.exited().await
    }
}

/// The superuser's URL of a database on a server that another process runs, from the folder of its data and its port. Holds the
/// password: not for logs.
///
/// # Errors
///
/// There is no such folder, or this user may not read it.
pub fn superuser_url(data_dir: &Path, port: u16, database: &str) -> std::io::Result<String> {
    let place = match std::fs::read_to_string(data_dir.join("location")) {
        Ok(text) => PathBuf::from(text.trim_end_matches('\n')),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => data_dir.to_owned(),
        Err(error) => return Err(error),
    };
    let password = std::fs::read_to_string(place.join("superuser.password"))?;
    Ok(format!("postgres://postgres:{}@127.0.0.1:{port}/{database}", password.trim()))
}

/// All that is done before the server runs, and its start.
fn prepare(options: &Options, account: &Account, binaries: &Binaries) -> Result<Postgres, PostgresError> {
    let data_dir = &options.data_dir;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(data_dir)
        .doing(|| format!("creating {}", data_dir.display()))?;
    let data_dir = data_dir.canonicalize().doing(|| format!("reading {}", data_dir.display()))?;
    let lock = lock(&data_dir)?;
    let place = account.place(&data_dir)?;
    if options.remove_when_stopped {
        // The account removes the folder at the end; it may, when the folder is its own.
        account.give(&place)?;
    }
    let cluster = Cluster::open(&place, account, binaries)?;
    cluster.await_predecessor()?;
    let port = match options.port {
        Some(port) => bind(port).map_err(|_| PostgresError::PortTaken { port })?,
        None => bind(0).doing(|| "finding a free port".to_owned())?,
    };
    cluster.configure(options, port, account)?;
    let log = data_dir.join("postgres.log");
    let remove = options.remove_when_stopped.then_some(&place);
    let supervised = Supervised::start(account, &binaries.program("postgres"), &cluster.folder, &log, remove)?;
    Ok(Postgres {
        supervised,
        port,
        password: cluster.password,
        major_version: binaries.major,
        binaries: binaries.folder.clone(),
        cluster: cluster.folder,
        log,
        _lock: lock,
    })
}

fn lock(data_dir: &Path) -> Result<Flock<File>, PostgresError> {
    let path = data_dir.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .doing(|| format!("opening {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| PostgresError::FolderInUse { folder: data_dir.to_owned() })
}

/// The port that a bind gives; closed again at once, so that PostgreSQL can have it.
fn bind(port: u16) -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr()?.port())
}

fn default_cache() -> PathBuf {
    let root = nix::unistd::Uid::effective().is_root();
    let home = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    match home {
        // PostgreSQL's account could not enter root's home.
        Some(home) if !root => home,
        _ => PathBuf::from("/var/cache"),
    }
    .join("datum/postgresql")
}

fn last_lines(file: &Path, count: usize) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
