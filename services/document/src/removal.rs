//! Taking things away: the only code that deletes objects.
//!
//! The rule that keeps acknowledged documents safe: an object is deleted only after its row has left `pending` or `stored` in a
//! committed statement, or where there is no row. What fails here is left for the sweeper, which starts from the same rule.

use std::sync::Arc;

use service_kit::context;
use service_kit::database::{DatabaseError, Pool};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::queries::documents;
use crate::storage::{DocumentKey, Storage, StorageError};

/// Uploads that are being taken back at once, and that may wait for it: a thousand clients that vanish together must neither
/// crowd out the requests of others nor pile up here. What does not fit is the sweeper's.
const AT_ONCE: usize = 8;
const WAITING_MAX: usize = 1_024;

/// Counter: uploads that ended without a document.
const ABANDONED: &str = "document_uploads_abandoned_total";
/// Counter: of those, the ones left to the sweeper.
const LEFT: &str = "document_uploads_left_to_sweeper_total";

/// Removes documents and the remains of uploads, in tasks that outlive the requests that ask for it.
#[derive(Clone)]
pub(crate) struct Removal {
    pool: Pool,
    storage: Storage,
    tasks: TaskTracker,
    permits: Arc<Semaphore>,
}

/// What an upload that ended early may have left.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) key: DocumentKey,
    pub(crate) sent: Sent,
    /// Whether the statement that makes the document visible may have been executed.
    pub(crate) maybe_stored: bool,
}

/// What was sent to the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Nothing.
    Nothing,
    /// A whole object, or an attempt at one.
    Object,
    /// Parts of a multipart upload of this id, complete or not.
    Parts { upload_id: String },
}

/// Why something could not be removed now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemovalError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl Removal {
    pub(crate) fn new(pool: Pool, storage: Storage) -> Self {
        Self { pool, storage, tasks: TaskTracker::new(), permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Removes the object and then the row of a document whose row says `deleting`.
    pub(crate) async fn remove(&self, key: DocumentKey) -> Result<(), RemovalError> {
        self.storage.delete(key).await?;
        let mut connection = self.pool.acquire().await?;
        documents::finish_deletion(&mut connection, key).await?;
        Ok(())
    }

    /// [`Removal::remove`] in a task of its own, which goes on when nobody waits for it any longer.
    pub(crate) fn spawn_remove(&self, key: DocumentKey) -> JoinHandle<Result<(), RemovalError>> {
        let this = self.clone();
        self.spawn(async move { this.remove(key).await })
    }

    /// Runs `work` for the current request, to its end even if the request is dropped.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.tasks.spawn(context::carried(work))
    }

    /// Takes an upload back in a task of its own. It may be called from a destructor.
    pub(crate) fn spawn_take_back(&self, remains: Remains) {
        metrics::counter!(ABANDONED).increment(1);
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| self.tasks.len() < WAITING_MAX);
        // Outside a runtime the process is ending.
        let Some(runtime) = runtime else {
            metrics::counter!(LEFT).increment(1);
            return;
        };
        let this = self.clone();
        let work = async move {
            let _permit = this.permits.acquire().await;
            if let Err(error) = this.take_back(&remains).await {
                metrics::counter!(LEFT).increment(1);
                tracing::warn!(document = %remains.key.id, %error, "an abandoned upload is left to the sweeper");
            }
        };
        self.tasks.spawn_on(work, &runtime);
    }

    /// The row goes first, so that a failed upload leaves none even while the object store is down.
    async fn take_back(&self, remains: &Remains) -> Result<(), RemovalError> {
        let discarded = self.discard_row(remains.key).await;
        if remains.maybe_stored && !matches!(discarded, Ok(true)) {
            // Either it is stored, or nobody can tell. Its object stays.
            return discarded.map(|_| ()).map_err(RemovalError::from);
        }
        match &remains.sent {
            Sent::Nothing => {}
            Sent::Object => self.storage.delete(remains.key).await?,
            Sent::Parts { upload_id } => {
                self.storage.abort_multipart(remains.key, upload_id).await?;
                self.storage.delete(remains.key).await?;
            }
        }
        discarded?;
        Ok(())
    }

    async fn discard_row(&self, key: DocumentKey) -> Result<bool, DatabaseError> {
        let mut connection = self.pool.acquire().await?;
        documents::discard_pending(&mut connection, key).await
    }

    /// Waits until no task of this is running. New ones may begin meanwhile and are waited for.
    pub(crate) async fn settled(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}
