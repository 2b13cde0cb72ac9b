//! Receiving a file: count, hash, cut into parts, send.

use bytes::Bytes;
use service_kit::Result;
use service_kit::problem::Problem;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::buffer::{Part, PartBuffer};
use super::open::OpenUpload;
use super::request::{FileHead, IncomingFile};
use crate::queries::documents::Document;
use crate::state::{DocumentState, UploadPermit};
use crate::storage::{DocumentKey, Sha256Hash};

/// Up to this length an upload needs no buffer of the bounded set: it costs no more than its socket does anyway.
const UNBUFFERED_BYTES: u64 = 64 * 1024;

/// Counter: bytes of documents that were stored.
const STORED_BYTES: &str = "document_stored_bytes_total";

/// One file being received. A file that fits into one part is sent with one request once all of it is here, so that a client
/// that breaks off before has left nothing anywhere; a longer one goes part by part, the next one read only when the last one
/// is stored.
pub(crate) struct Intake<'s> {
    state: &'s DocumentState,
    owner_id: Uuid,
    file: IncomingFile,
    buffer: PartBuffer,
    length: u64,
    /// Of the whole file.
    hash: Sha256,
    /// Of the part in the buffer, from the second one on; the first part's is the file's so far.
    part_hash: Option<Sha256>,
    permit: Option<UploadPermit>,
    open: Option<OpenUpload>,
}

impl<'s> Intake<'s> {
    pub(crate) fn new(state: &'s DocumentState, owner_id: Uuid, file: IncomingFile) -> Self {
        Self {
            state,
            owner_id,
            file,
            buffer: PartBuffer::default(),
            length: 0,
            hash: Sha256::new(),
            part_hash: None,
            permit: None,
            open: None,
        }
    }

    /// Receives the file and stores it.
    ///
    /// # Errors
    /// What [`IncomingFile::next`] gives; 413 over the limit; 503 where no buffer becomes free, or the store or the database
    /// cannot take it. Nothing is left of a failed upload, or the sweeper finds it.
    pub(crate) async fn store(mut self) -> Result<Document> {
        while let Some(mut data) = self.file.next().await? {
            self.length += data.len() as u64;
            if self.length > self.state.uploads.max_bytes {
                return Err(Problem::too_large(self.state.uploads.max_bytes));
            }
            if self.length > UNBUFFERED_BYTES && self.permit.is_none() {
                self.permit = Some(self.state.admit_upload().await?);
            }
            self.absorb(&mut data).await?;
        }
        let (part, part_hash) = self.cut();
        let sha256: Sha256Hash = self.hash.clone().finalize().into();
        let open = match self.open.take() {
            None => {
                let mut open = begin(self.state, self.owner_id, &self.file.head).await?;
                open.put(&part, &sha256).await?;
                open
            }
            Some(mut open) => {
                open.put_part(&part, &part_hash).await?;
                open.complete(self.length).await?;
                open
            }
        };
        // The buffer's memory is free; the commit needs none.
        drop((part, self.permit.take()));
        let document = open.commit(self.length, sha256).await?;
        metrics::counter!(STORED_BYTES).increment(self.length);
        Ok(document)
    }

    /// Takes `data` in. A full part is sent only when there is more: so the last part is never empty, and a file of exactly one
    /// part is no multipart upload.
    async fn absorb(&mut self, data: &mut Bytes) -> Result<()> {
        while !data.is_empty() {
            if self.buffer.is_full() {
                let (part, part_hash) = self.cut();
                self.part_hash = Some(Sha256::new());
                let mut open = match self.open.take() {
                    Some(open) => open,
                    None => begin(self.state, self.owner_id, &self.file.head).await?,
                };
                open.put_part(&part, &part_hash).await?;
                self.open = Some(open);
                self.buffer.reclaim(part);
            }
            let taken = self.buffer.take_from(data);
            self.hash.update(&taken);
            if let Some(part_hash) = &mut self.part_hash {
                part_hash.update(&taken);
            }
        }
        Ok(())
    }

    /// The part in the buffer with its hash.
    fn cut(&mut self) -> (Part, Sha256Hash) {
        let hash = self.part_hash.as_ref().unwrap_or(&self.hash).clone();
        (self.buffer.take(), hash.finalize().into())
    }
}

/// Writes the row of a file that has an id from now on.
async fn begin(state: &DocumentState, owner_id: Uuid, file: &FileHead) -> Result<OpenUpload> {
    let key = DocumentKey { owner_id, id: state.new_id() };
    OpenUpload::begin(state, key, file).await
}
