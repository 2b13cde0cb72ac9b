//! Whether the database lets this task do its work.
//!
//! Busy is not broken: a load balancer that takes a busy task out gives its requests to the others, which then are busy
//! too. So a task whose connections are all in use is ready as long as the database has answered lately.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::timeout;

use super::error::DatabaseError;
use super::pool::Pool;

/// What a check may wait for a connection.
const PATIENCE: Duration = Duration::from_millis(300);

/// What a check may take altogether.
const BUDGET: Duration = Duration::from_millis(500);

/// For how long an answer of the database says that it is there.
const LATELY: Duration = Duration::from_secs(10);

type Verdict = Result<(), String>;
type Probe = Shared<BoxFuture<'static, Verdict>>;

impl Pool {
    /// A check for [`crate::health::Readiness`]: a connection can be had, and the migrations of `schema` have come at least
    /// to `required_version`. It counts in no request's stages. The reasons have no SQL and no addresses in them.
    pub fn readiness(
        &self,
        schema: &'static str,
        required_version: i64,
    ) -> impl Fn() -> BoxFuture<'static, Verdict> + Send + Sync + 'static {
        let check = Arc::new(Check {
            pool: self.clone(),
            schema,
            required_version,
            schema_is_new_enough: AtomicBool::new(false),
            running: Mutex::new(None),
        });
        move || {
            let check = Arc::clone(&check);
            async move { check.verdict().await }.boxed()
        }
    }
}

struct Check {
    pool: Pool,
    schema: &'static str,
    required_version: i64,
    /// Schemas do not become older: once is enough.
    schema_is_new_enough: AtomicBool,
    /// One probe at a time, shared by all who ask meanwhile.
    running: Mutex<Option<Probe>>,
}

impl Check {
    async fn verdict(self: Arc<Self>) -> Verdict {
        let probe = self.probe();
        match timeout(BUDGET, probe).await {
            Ok(verdict) => verdict,
            // The probe goes on: given up, it would cost the pool a connection each time.
            Err(_elapsed) => self.busy_or("the database does not answer"),
        }
    }

    fn busy_or(&self, reason: &str) -> Verdict {
        if self.pool.0.answered_within(LATELY) { Ok(()) } else { Err(reason.to_owned()) }
    }

    fn probe(self: &Arc<Self>) -> Probe {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = running.as_ref().filter(|probe| probe.peek().is_none()) {
            return probe.clone();
        }
        let check = Arc::clone(self);
        let task = tokio::spawn(async move { check.look().await });
        let probe =
            async move { task.await.unwrap_or_else(|_| Err("the check did not end".to_owned())) }.boxed().shared();
        *running = Some(probe.clone());
        probe
    }

    async fn look(&self) -> Verdict {
        if self.pool.0.is_starting() {
            return Err("the first connections are being opened".to_owned());
        }
        let mut connection = match self.pool.acquire_within(PATIENCE).await {
            Ok(connection) => connection,
            Err(DatabaseError::AcquireTimeout) => {
                return self.busy_or("every connection is in use, and the database does not answer");
            }
            Err(_) => return Err("no connection to the database".to_owned()),
        };
        if self.schema_is_new_enough.load(Ordering::Relaxed) {
            return match connection.probe("SELECT 1").await {
                Ok(_) => Ok(()),
                Err(_) => Err("the database does not answer".to_owned()),
            };
        }
        let sql = format!("SELECT max(version) FROM {}._sqlx_migrations WHERE success", quoted(self.schema));
        let version: Option<i64> = match connection.probe(&sql).await {
            Ok(row) => row.and_then(|row| row.try_get(0).ok().flatten()),
            Err(DatabaseError::Unexpected(_)) => None,
            Err(_) => return Err("the database does not answer".to_owned()),
        };
        match version {
            Some(version) if version >= self.required_version => {
                self.schema_is_new_enough.store(true, Ordering::Relaxed);
                Ok(())
            }
            found => Err(self.too_old(found)),
        }
    }

    fn too_old(&self, found: Option<i64>) -> String {
        let mut reason = format!("schema {} must be at {}", self.schema, self.required_version);
        let _ = match found {
            Some(version) => write!(reason, " and is at {version}"),
            None => write!(reason, " and is not there"),
        };
        reason
    }
}

/// An identifier as SQL writes it.
fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}
