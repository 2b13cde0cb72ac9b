//! An upload that has a row: from here on something may be left behind, and this is who takes it back.

use service_kit::clock::SharedClock;
use service_kit::database::Pool;
use service_kit::problem::Problem;
use service_kit::{Result, extract};
use time::OffsetDateTime;
use uuid::Uuid;

use super::buffer::Part;
use super::request::FileHead;
use crate::queries::documents::{self, Document, NewDocument};
use crate::removal::{Remains, Removal, Sent};
use crate::state::DocumentState;
use crate::storage::{DocumentKey, Multipart, Sha256Hash, Storage, StorageError};

/// The time that an id carries, in milliseconds: what is sorted by one is sorted by the other.
fn made_at(id: Uuid) -> Option<OffsetDateTime> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let seconds = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()?;
    seconds.replace_nanosecond(nanos).ok()
}

/// Responsible for a pending row and for what was sent to the object store under its key. Dropped before it is committed (the
/// client has gone, a part failed, time is up), it has all of that removed.
pub(super) struct OpenUpload {
    pool: Pool,
    storage: Storage,
    removal: Removal,
    clock: SharedClock,
    key: DocumentKey,
    multipart: Option<Multipart>,
    sent_object: bool,
    maybe_stored: bool,
    settled: bool,
}

impl OpenUpload {
    /// Writes the pending row.
    pub(super) async fn begin(state: &DocumentState, key: DocumentKey, file: &FileHead) -> Result<Self> {
        // It is responsible before the statement runs: the request may be dropped while it does.
        let open = Self {
            pool: state.pool.clone(),
            storage: state.storage.clone(),
            removal: state.removal.clone(),
            clock: state.clock.clone(),
            key,
            multipart: None,
            sent_object: false,
            maybe_stored: false,
            settled: false,
        };
        let new = NewDocument {
            key,
            name: file.name.as_str(),
            content_type: file.content_type.as_str(),
            created_at: made_at(key.id).unwrap_or_else(|| state.clock.now()),
        };
        let mut connection = open.pool.acquire().await?;
        documents::insert_pending(&mut connection, &new).await?;
        Ok(open)
    }

    /// Sends a file that is no longer than one part. The SDK repeats a failed attempt: the body is in memory.
    pub(super) async fn put(&mut self, content: &Part, sha256: &Sha256Hash) -> Result<()> {
        self.sent_object = true;
        let put = self.storage.put(self.key, content, sha256).await;
        self.or_give_up(put).await
    }

    /// Sends the next part of a longer file.
    pub(super) async fn put_part(&mut self, content: &Part, sha256: &Sha256Hash) -> Result<()> {
        let put = async {
            if self.multipart.is_none() {
                self.multipart = Some(self.storage.begin_multipart(self.key).await?);
            }
            match &mut self.multipart {
                Some(multipart) => self.storage.put_part(self.key, multipart, content, sha256).await,
                None => Ok(()),
            }
        };
        let put = put.await;
        self.or_give_up(put).await
    }

    /// Makes the parts one object.
    pub(super) async fn complete(&mut self, length: u64) -> Result<()> {
        let Some(multipart) = &self.multipart else { return Ok(()) };
        let completed = self.storage.complete_multipart(self.key, multipart, length).await;
        self.or_give_up(completed).await
    }

    /// Makes the document visible. Once it has begun it runs to its end, even if the client disconnects meanwhile: all bytes
    /// are there, and half a statement would leave it open whether they count.
    pub(super) async fn commit(mut self, size_bytes: u64, sha256: Sha256Hash) -> Result<Document> {
        let removal = self.removal.clone();
        let committed = removal.spawn(async move { self.mark_stored(size_bytes, &sha256).await });
        committed.await.map_err(Problem::internal)?
    }

    async fn mark_stored(&mut self, size_bytes: u64, sha256: &Sha256Hash) -> Result<Document> {
        let mut connection = self.pool.acquire().await?;
        self.maybe_stored = true;
        let now = self.clock.now();
        let stored = documents::mark_stored(&mut connection, self.key, size_bytes, sha256, now).await?;
        self.settled = stored.is_some();
        // Without a row the sweeper has given it up: it took longer than any upload may.
        stored.ok_or_else(extract::slow_body)
    }

    /// After a failure of the store the row goes before the answer does, so that a client that is told 503 finds nothing.
    async fn or_give_up(&mut self, result: Result<(), StorageError>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        if let Ok(mut connection) = self.pool.acquire().await {
            // Where this fails, the destructor's task tries once more, and then the sweeper.
            let _ = documents::discard_pending(&mut connection, self.key).await;
        }
        Err(error.into())
    }
}

impl Drop for OpenUpload {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let sent = match self.multipart.take() {
            Some(multipart) => Sent::Parts { upload_id: multipart.id().to_owned() },
            None if self.sent_object => Sent::Object,
            None => Sent::Nothing,
        };
        self.removal.spawn_take_back(Remains { key: self.key, sent, maybe_stored: self.maybe_stored });
    }
}
