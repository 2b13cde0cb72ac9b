//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use service_kit::Result;
use service_kit::auth::Verifier;
use service_kit::clock::{SharedClock, uuid_v7};
use service_kit::database::Pool;
use service_kit::problem::Problem;
use service_kit::stages::{Stage, timed};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::Config;
use crate::config::UploadConfig;
use crate::removal::Removal;
use crate::storage::Storage;
use crate::sweeper::Sweeper;

/// Gauge: part buffers in use.
const BUFFERS_IN_USE: &str = "document_upload_buffers_in_use";

/// Cheap to clone: handles only.
#[derive(Clone)]
pub struct DocumentState {
    pub(crate) pool: Pool,
    pub(crate) verifier: Verifier,
    pub(crate) clock: SharedClock,
    pub(crate) storage: Storage,
    pub(crate) removal: Removal,
    pub(crate) uploads: Arc<UploadConfig>,
    buffers: Arc<Semaphore>,
    sweeper: Sweeper,
}

impl DocumentState {
    /// Puts the handles together; opens no connection.
    pub(crate) async fn new(config: Config, verifier: Verifier, clock: SharedClock) -> anyhow::Result<Self> {
        let pool = Pool::new(config.database)?;
        let storage = Storage::new(&config.storage).await;
        let removal = Removal::new(pool.clone(), storage.clone());
        Ok(Self {
            verifier,
            sweeper: Sweeper::new(config.sweeper, pool.clone(), storage.clone(), removal.clone(), clock.clone()),
            buffers: Arc::new(Semaphore::new(config.uploads.buffers)),
            uploads: Arc::new(config.uploads),
            pool,
            clock,
            storage,
            removal,
        })
    }

    /// What removes leftovers; the runner lets it run, tests call it.
    #[must_use]
    pub fn sweeper(&self) -> &Sweeper {
        &self.sweeper
    }

    /// Waits until everything that outlives its request (an upload being taken back, a deletion, a commit) is done.
    pub async fn settled(&self) {
        self.removal.settled().await;
    }

    /// A permit to hold one part in memory.
    ///
    /// # Errors
    /// 503 `uploads_busy` when none became free in time.
    pub(crate) async fn admit_upload(&self) -> Result<UploadPermit> {
        let free = tokio::time::timeout(self.uploads.wait, self.buffers.clone().acquire_owned());
        if let Ok(Ok(permit)) = timed(Stage::Admission, free).await {
            return Ok(UploadPermit::new(permit));
        }
        let detail = "As many uploads as fit into memory are on their way; try again in a moment.";
        Err(Problem::unavailable("uploads_busy", detail, Duration::from_secs(2)))
    }

    /// An id for a new document.
    pub(crate) fn new_id(&self) -> Uuid {
        uuid_v7(&*self.clock)
    }
}

/// The right to hold one part in memory.
#[derive(Debug)]
pub(crate) struct UploadPermit {
    _permit: OwnedSemaphorePermit,
}

impl UploadPermit {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        metrics::gauge!(BUFFERS_IN_USE).increment(1);
        Self { _permit: permit }
    }
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        metrics::gauge!(BUFFERS_IN_USE).decrement(1);
    }
}

impl FromRef<DocumentState> for Verifier {
    fn from_ref(state: &DocumentState) -> Self {
        state.verifier.clone()
    }
}
