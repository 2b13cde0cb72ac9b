//! Finds and removes what crashes, aborts and failed dependencies have left: unfinished rows, open multipart uploads, objects
//! without a row. Any number of tasks may sweep at once.
//!
//! Nothing acknowledged can be lost: rows are claimed by a statement that never touches a stored one, and an object counts as
//! one without a row only if it was there before its row was looked for, is older than any upload may take, and has none in any
//! state. (A row is written before its object.) So a bucket belongs to one database: under another one, every object of ours
//! would be without a row.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use service_kit::clock::SharedClock;
use service_kit::database::Pool;

use crate::config::SweeperConfig;
use crate::queries::documents::{self, Leftovers};
use crate::removal::{Removal, RemovalError};
use crate::storage::{DocumentKey, OpenMultipart, Storage, StorageError};

/// Rows that one sweep takes on, and how many of anything it removes at once: a sweep must not crowd out requests.
const ROWS_A_SWEEP: u16 = 200;
const AT_ONCE: usize = 4;

/// Pages of a thousand objects that one sweep looks at. The next one goes on where this one stopped: listing a large bucket once
/// a minute would cost more than it finds.
const PAGES_A_SWEEP: usize = 10;

/// A deletion that nobody has worked on for this long is taken on again: longer than all attempts at it take.
const DELETION_LEASE: Duration = Duration::from_mins(2);

/// Counter: what sweeps removed, by `kind` (`row`, `multipart`, `object`).
const REMOVED: &str = "document_sweep_removed_total";
/// Counter: removals that failed and will be tried again, by `kind`.
const FAILED: &str = "document_sweep_failures_total";

/// What one sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Unfinished rows removed, each with its object.
    pub rows: usize,
    /// Open multipart uploads aborted.
    pub multiparts: usize,
    /// Objects without a row deleted.
    pub objects: usize,
    /// What could not be removed, or not be looked for, and will be tried again.
    pub failures: usize,
}

/// Sweeps. Clones share the position in the bucket.
#[derive(Clone)]
pub struct Sweeper {
    config: SweeperConfig,
    pool: Pool,
    storage: Storage,
    removal: Removal,
    clock: SharedClock,
    /// Name of the last object that was looked at; `None`: begin at the front.
    position: Arc<Mutex<Option<String>>>,
}

impl Sweeper {
    pub(crate) fn new(
        config: SweeperConfig,
        pool: Pool,
        storage: Storage,
        removal: Removal,
        clock: SharedClock,
    ) -> Self {
        Self { config, pool, storage, removal, clock, position: Arc::default() }
    }

    /// Sweeps again and again.
    pub(crate) async fn run(self) {
        loop {
            tokio::time::sleep(self.config.interval).await;
            let swept = self.sweep().await;
            if swept != Swept::default() {
                tracing::info!(?swept, "swept");
            }
        }
    }

    /// One sweep. What fails is counted and left for the next one.
    pub async fn sweep(&self) -> Swept {
        let mut swept = Swept::default();
        tally("row", self.sweep_rows().await, &mut swept.rows, &mut swept.failures);
        tally("multipart", self.sweep_multiparts().await, &mut swept.multiparts, &mut swept.failures);
        tally("object", self.sweep_objects().await, &mut swept.objects, &mut swept.failures);
        swept
    }

    /// Claims unfinished rows and removes what they stand for. The claim's connection is free again before the store is asked.
    async fn sweep_rows(&self) -> Result<Outcomes, RemovalError> {
        let now = self.clock.now();
        let leftovers = Leftovers { pending_before: now - self.config.age, deleting_before: now - DELETION_LEASE };
        let claimed = {
            let mut connection = self.pool.acquire().await?;
            documents::claim_leftovers(&mut connection, leftovers, now, ROWS_A_SWEEP).await?
        };
        Ok(each(claimed, |key| self.removal.remove(key)).await)
    }

    /// Aborts multipart uploads that no upload can still be sending to.
    async fn sweep_multiparts(&self) -> Result<Outcomes, RemovalError> {
        let oldest_in_use = self.clock.now() - self.config.age;
        let (mut outcomes, mut marker) = (Outcomes::new(), None);
        for _ in 0..PAGES_A_SWEEP {
            let page = self.storage.list_multiparts(marker).await?;
            let old = page.items.into_iter().filter(|multipart| multipart.initiated_at < oldest_in_use).collect();
            outcomes.extend(each(old, |multipart: OpenMultipart| self.abort(multipart)).await);
            marker = page.next;
            if marker.is_none() {
                break;
            }
        }
        Ok(outcomes)
    }

    async fn abort(&self, multipart: OpenMultipart) -> Result<(), RemovalError> {
        Ok(self.storage.abort_multipart(multipart.key, &multipart.upload_id).await?)
    }

    /// Deletes old objects without a row.
    async fn sweep_objects(&self) -> Result<Outcomes, RemovalError> {
        let oldest_in_use = self.clock.now() - self.config.age;
        let mut outcomes = Outcomes::new();
        for _ in 0..PAGES_A_SWEEP {
            let after = self.position.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let page = self.storage.list_objects(after).await?;
            let old = page.items.into_iter().filter(|object| object.modified_at < oldest_in_use);
            let orphans = self.without_rows(old.map(|object| object.key).collect()).await?;
            outcomes.extend(each(orphans, |key| self.delete(key)).await);
            let is_last = page.next.is_none();
            *self.position.lock().unwrap_or_else(PoisonError::into_inner) = page.next;
            if is_last {
                break;
            }
        }
        Ok(outcomes)
    }

    async fn without_rows(&self, mut keys: Vec<DocumentKey>) -> Result<Vec<DocumentKey>, RemovalError> {
        if !keys.is_empty() {
            let mut connection = self.pool.acquire().await?;
            let known = documents::with_rows(&mut connection, &keys).await?;
            keys.retain(|key| !known.contains(key));
        }
        Ok(keys)
    }

    async fn delete(&self, key: DocumentKey) -> Result<(), RemovalError> {
        Ok(self.storage.delete(key).await?)
    }
}

/// One result a removal.
type Outcomes = Vec<Result<(), RemovalError>>;

async fn each<T, F: Future<Output = Result<(), RemovalError>>>(items: Vec<T>, remove: impl Fn(T) -> F) -> Outcomes {
    stream::iter(items).map(remove).buffer_unordered(AT_ONCE).collect().await
}

fn tally(kind: &'static str, outcomes: Result<Outcomes, RemovalError>, removed: &mut usize, failures: &mut usize) {
    // A store that cannot list multipart uploads has a rule of its own for them, or nobody can help it.
    let outcomes = match outcomes {
        Err(RemovalError::Storage(StorageError::Unsupported { .. })) => Outcomes::new(),
        Err(error) => vec![Err(error)],
        Ok(outcomes) => outcomes,
    };
    for outcome in outcomes {
        match outcome {
            Ok(()) => {
                *removed += 1;
                metrics::counter!(REMOVED, "kind" => kind).increment(1);
            }
            Err(error) => {
                *failures += 1;
                metrics::counter!(FAILED, "kind" => kind).increment(1);
                tracing::warn!(kind, %error, "could not be swept now");
            }
        }
    }
}
