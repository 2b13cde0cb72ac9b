//! A double of Amazon Cognito user pools, for measuring: the calls that Datum makes, with their true shapes, errors and token claims, and
//! with latency, quotas and errors that can be set.
//!
//! It is written after AWS's public documentation, and held against two emulators that others wrote by the suite in
//! `tests/cognito`; `docs/cognito-conformance.md` lists where they differ and who is right. What belongs here is what a user pool
//! does; how Datum answers to it is the auth service's. RSA signatures are most of a login's cost: aws-lc makes two of them
//! (access and ID token). It has threads of its own, so that signing holds up nobody else in the process.

mod behaviour;
mod calls;
mod client;
mod control;
mod operation;
mod pool;
mod server;
mod stats;
mod tokens;
mod wire;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use service_kit::clock::{SharedClock, SystemClock};
use service_kit::config::{Secret, Settings};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use behaviour::{Behaviour, Faults, Latencies, Latency, Quotas};
pub use client::{ControlClient, ControlError};
pub use control::{BehaviourText, ImportedUser};
pub use operation::{Category, Operation};
pub use pool::{PasswordPolicy, PoolOptions};
use server::Double;
pub use stats::{CallStats, Stats};
pub use wire::CognitoError;

/// What to serve, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// The pool and its app client.
    pub pool: PoolOptions,
    /// What is set beyond that.
    pub behaviour: Behaviour,
    /// Threads that work; more than one keeps a signature from holding up other answers.
    pub threads: usize,
    /// Tells the time of tokens, codes and lock-outs.
    pub clock: SharedClock,
}

impl Default for Options {
    /// A pool in memory on a free port of 127.0.0.1, which confirms accounts by itself and limits nothing.
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            pool: PoolOptions {
                region: "us-east-1".to_owned(),
                pool_id: "us-east-1_DatumTwin".to_owned(),
                client_id: "datumtwin0client0000000000".to_owned(),
                client_secret: None,
                auto_confirm: true,
                password_policy: PasswordPolicy::default(),
                hides_users: true,
                access_token_ttl: Duration::from_hours(1),
                refresh_token_ttl: Duration::from_hours(30 * 24),
                data_dir: None,
            },
            behaviour: Behaviour::default(),
            threads: 2,
            clock: Arc::new(SystemClock),
        }
    }
}

impl Options {
    /// Reads the variables of a double that runs as its own process.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Cognito double");
        let address =
            settings.parsed("COGNITO_DOUBLE_ADDRESS", "127.0.0.1:9230", "Address and port to listen on", |text| {
                text.parse::<SocketAddr>().map_err(|_| "must be ADDRESS:PORT".to_owned())
            });
        let region = settings.text("COGNITO_DOUBLE_REGION", "us-east-1", "The AWS region in the issuer's name");
        let pool_id = settings.text("COGNITO_DOUBLE_POOL_ID", "us-east-1_DatumTwin", "The user pool's id");
        let client_id = settings.text("COGNITO_DOUBLE_CLIENT_ID", "datumtwin0client0000000000", "The app client's id");
        let client_secret = settings.secret("COGNITO_DOUBLE_CLIENT_SECRET", "The app client's secret, if it has one");
        let auto_confirm = settings.switch(
            "COGNITO_DOUBLE_AUTO_CONFIRM",
            true,
            "Whether accounts are confirmed when they sign up; else by code, which GET /-/users/EMAIL shows",
        );
        let password_policy = settings.parsed(
            "COGNITO_DOUBLE_PASSWORD_POLICY",
            "8",
            "Shortest password, and what it must have: 8 or 8,upper,lower,number,symbol",
            str::parse,
        );
        let hides_users = settings.switch(
            "COGNITO_DOUBLE_HIDES_USERS",
            true,
            "Whether unknown users are answered like wrong passwords (PreventUserExistenceErrors)",
        );
        let access_token_ttl = settings.seconds(
            "COGNITO_DOUBLE_ACCESS_TOKEN_TTL_SECONDS",
            3_600,
            300..=86_400,
            "How long access and ID tokens are valid",
        );
        let refresh_token_ttl = settings.seconds(
            "COGNITO_DOUBLE_REFRESH_TOKEN_TTL_SECONDS",
            2_592_000,
            3_600..=315_360_000,
            "How long refresh tokens are valid",
        );
        let data_dir =
            settings.optional_text("COGNITO_DOUBLE_DIR", "Folder of users and keys; unset keeps them in memory");
        let latency = settings.parsed(
            "COGNITO_DOUBLE_LATENCY",
            "",
            "Time of calls: InitiateAuth=400ms,SignUp=p50:120ms/p99:400ms,*=20ms",
            str::parse,
        );
        let quotas = settings.parsed(
            "COGNITO_DOUBLE_QUOTAS",
            "",
            "Calls a second: default (AWS's own), or UserAuthentication=120,UserCreation=50,user=10; unnamed: no limit",
            str::parse,
        );
        let faults = settings.parsed(
            "COGNITO_DOUBLE_FAULTS",
            "",
            "Errors on purpose: InitiateAuth=InternalErrorException:0.01,*=TooManyRequestsException:5x; also html, disconnect",
            str::parse,
        );
        let seed = settings.number("COGNITO_DOUBLE_SEED", 1, 0..=u64::MAX, "Seed of everything drawn by lot");
        let threads = settings.number("COGNITO_DOUBLE_THREADS", 2, 1..=256, "Threads that work");
        Self {
            address: address.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()),
            pool: PoolOptions {
                region,
                pool_id,
                client_id,
                client_secret,
                auto_confirm,
                password_policy: password_policy.unwrap_or_default(),
                hides_users,
                access_token_ttl,
                refresh_token_ttl,
                data_dir: data_dir.map(PathBuf::from),
            },
            behaviour: Behaviour {
                latency: latency.unwrap_or_default(),
                quotas: quotas.unwrap_or_default(),
                faults: faults.unwrap_or_default(),
                seed,
            },
            threads,
            clock: Arc::new(SystemClock),
        }
    }
}

/// Why the double did not start.
#[derive(Debug, thiserror::Error)]
pub enum CognitoDoubleError {
    /// Something listens there already, or the address is not this machine's.
    #[error("cannot listen on {address}: {source}; stop what listens there, or choose another port")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// Its folder cannot be used.
    #[error("the Cognito double's users and keys: {0:#}")]
    Kept(anyhow::Error),
    /// Its threads do not start.
    #[error("the Cognito double's threads: {0}")]
    Threads(std::io::Error),
}

/// What whoever uses the pool must know.
#[derive(Debug, Clone)]
pub struct PoolAccess {
    /// `http://address:port`, for `COGNITO_ENDPOINT_URL`.
    pub endpoint: String,
    /// The `iss` of its tokens, which is AWS's.
    pub issuer: String,
    /// Where its keys are.
    pub jwks_url: String,
    /// The region.
    pub region: String,
    /// The pool's id.
    pub pool_id: String,
    /// The app client's id.
    pub client_id: String,
    /// The app client's secret.
    pub client_secret: Option<Secret>,
}

impl PoolAccess {
    /// Of a double that serves this pool at `http://address:port`.
    #[must_use]
    pub fn new(options: &PoolOptions, endpoint: String) -> Self {
        Self {
            jwks_url: format!("{endpoint}/{}/.well-known/jwks.json", options.pool_id),
            endpoint,
            issuer: options.issuer(),
            region: options.region.clone(),
            pool_id: options.pool_id.clone(),
            client_id: options.client_id.clone(),
            client_secret: options.client_secret.clone(),
        }
    }
}

/// A running double. Dropping it ends it at once; [`CognitoDouble::stop`] lets requests finish.
pub struct CognitoDouble {
    address: SocketAddr,
    double: Arc<Double>,
    shutdown: CancellationToken,
    ended: oneshot::Receiver<()>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl std::fmt::Debug for CognitoDouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CognitoDouble").field("address", &self.address).finish_non_exhaustive()
    }
}

impl CognitoDouble {
    /// Opens the pool and serves on threads of its own.
    ///
    /// # Errors
    ///
    /// [`CognitoDoubleError`], each with what to do about it.
    pub async fn start(options: Options) -> Result<Self, CognitoDoubleError> {
        let Options { address, pool, behaviour, threads, clock } = options;
        let listen = |source| CognitoDoubleError::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        // Two RSA keys, the first time.
        let opened = tokio::task::spawn_blocking(move || pool::Pool::open(pool, clock)).await;
        let pool = opened
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
            .map_err(CognitoDoubleError::Kept)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("cognito-double")
            .enable_all()
            .build()
            .map_err(CognitoDoubleError::Threads)?;
        let double = Arc::new(Double::new(pool, behaviour));
        let shutdown = CancellationToken::new();
        let (end, ended) = oneshot::channel();
        let (served, stop) = (Arc::clone(&double), shutdown.clone());
        runtime.spawn(async move {
            match TcpListener::from_std(listener) {
                Ok(listener) => server::serve(listener, served, stop).await,
                Err(error) => tracing::error!(%error, "the Cognito double cannot listen"),
            }
            let _ = end.send(());
        });
        Ok(Self { address: bound, double, shutdown, ended, runtime: Some(runtime) })
    }

    /// `http://address:port`, for `COGNITO_ENDPOINT_URL`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What whoever uses the pool must know.
    #[must_use]
    pub fn access(&self) -> PoolAccess {
        PoolAccess::new(&self.double.pool.options, self.endpoint())
    }

    /// Changes how it behaves, from the next call on.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        self.double.set_behaviour(behaviour);
    }

    /// What it has seen.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.double.meter.stats(self.double.pool.user_count())
    }

    /// Accepts nothing more, lets requests finish for 5 s, closes everything.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        let _ = (&mut self.ended).await;
    }
}

impl Drop for CognitoDouble {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for threads is not allowed in an async context.
            runtime.shutdown_background();
        }
    }
}

/// Serves until `shutdown` ends, for a double that is a process of its own.
///
/// # Errors
///
/// [`CognitoDoubleError`] when it does not start.
pub async fn run(options: Options, shutdown: impl Future<Output = ()>) -> Result<(), CognitoDoubleError> {
    let double = CognitoDouble::start(options).await?;
    let access = double.access();
    tracing::info!(
        endpoint = access.endpoint,
        issuer = access.issuer,
        jwks_url = access.jwks_url,
        user_pool_id = access.pool_id,
        client_id = access.client_id,
        "the Cognito double is ready"
    );
    shutdown.await;
    double.stop().await;
    Ok(())
}
