//! Keeps the stack's own PostgreSQL running: a server that dies is started again on the same port, with back-off.

use std::sync::Arc;
use std::time::Duration;

use service_kit::config::Secret;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::backoff::Backoff;
use crate::board::Board;
use crate::error::StackError;
use crate::postgres::{Options, Postgres, PostgresError};
use crate::status::{Health, PostgresStatus};

/// The database of a stack.
pub(crate) const DATABASE: &str = "datum";

/// How long a start that is under way may go on after the stack was told to stop: a new cluster is nearly made by then,
/// and half of one need not be cleaned up; a download is given up.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// The running server and who watches it.
#[derive(Debug)]
pub(crate) struct PostgresKeeper {
    /// An administrator's URL of the database.
    pub(crate) admin_url: Secret,
    /// What was found, for the progress line.
    pub(crate) description: String,
    stop: CancellationToken,
    keeping: AbortOnDropHandle<()>,
}

impl PostgresKeeper {
    /// Starts the server with its database.
    pub(crate) async fn start(
        options: Options,
        board: Arc<Board>,
        cancel: &CancellationToken,
    ) -> Result<Self, StackError> {
        let mut starting = tokio::spawn(start_with_database(options.clone()));
        let postgres = tokio::select! {
            started = &mut starting => joined(started)?,
            () = cancel.cancelled() => {
                if let Ok(Ok(Ok(postgres))) = tokio::time::timeout(START_PATIENCE, &mut starting).await {
                    postgres.stop().await;
                }
                starting.abort();
                return Err(StackError::Interrupted);
            }
        };
        let description = format!("version {} from {}", postgres.major_version(), postgres.binaries().display());
        let admin_url = Secret::new(postgres.url(DATABASE));
        let stop = CancellationToken::new();
        let keeper = Keeper { options: Options { port: Some(postgres.port()), ..options }, board, stop: stop.clone() };
        keeper.show(Health::Healthy, postgres.pid(), 0);
        Ok(Self { admin_url, description, stop, keeping: AbortOnDropHandle::new(tokio::spawn(keeper.keep(postgres))) })
    }

    /// Stops the server; ends when it has ended.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let _ = self.keeping.await;
    }
}

async fn start_with_database(options: Options) -> Result<Postgres, PostgresError> {
    let postgres = Postgres::start(options).await?;
    postgres.ensure_database(DATABASE).await?;
    Ok(postgres)
}

fn joined<T>(result: Result<Result<T, PostgresError>, tokio::task::JoinError>) -> Result<T, StackError> {
    match result {
        Ok(result) => Ok(result?),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

struct Keeper {
    options: Options,
    board: Arc<Board>,
    stop: CancellationToken,
}

impl Keeper {
    async fn keep(self, mut postgres: Postgres) {
        let mut backoff = Backoff::default();
        let mut restarts = 0;
        loop {
            let started = Instant::now();
            let status = tokio::select! {
                status = postgres.exited() => status,
                () = self.stop.cancelled() => {
                    postgres.stop().await;
                    self.show(Health::Stopped, None, restarts);
                    return;
                }
            };
            // Free its folder before the next start.
            drop(postgres);
            let mut wait = backoff.after_death(started.elapsed());
            self.board.notice(format!("PostgreSQL ended ({status}); starting it again"));
            postgres = loop {
                self.show(Health::Restarting, None, restarts);
                if self.stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                    self.show(Health::Stopped, None, restarts);
                    return;
                }
                restarts += 1;
                match start_with_database(self.options.clone()).await {
                    Ok(postgres) => break postgres,
                    Err(error) => {
                        self.board.notice(format!("PostgreSQL does not start: {error}"));
                        wait = backoff.after_death(Duration::ZERO);
                    }
                }
            };
            self.show(Health::Healthy, postgres.pid(), restarts);
        }
    }

    fn show(&self, health: Health, pid: Option<u32>, restarts: u32) {
        self.board.set_postgres(PostgresStatus { health, port: self.options.port.unwrap_or_default(), pid, restarts });
    }
}
