//! An object on its way to a client.

use aws_sdk_s3::primitives::ByteStream;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;

use super::{DocumentKey, Result, Storage, StorageError};
use crate::range::ByteRange;

/// How often one download may ask for the rest after its stream broke. A reader slower than the store's patience is cut off by
/// the store, and would otherwise see a torn answer.
const RESUMPTIONS: u32 = 3;

/// An open range of an object. It is read only as fast as the client reads; dropping it ends the transfer.
#[derive(Debug)]
pub(crate) struct Download {
    storage: Storage,
    key: DocumentKey,
    next: u64,
    last: u64,
    stream: ByteStream,
    resumptions_left: u32,
}

impl Download {
    /// Opens the range.
    ///
    /// # Errors
    /// [`StorageError::Missing`] where there is no object, else what hinders the store.
    pub(crate) async fn open(storage: &Storage, key: DocumentKey, range: ByteRange) -> Result<Self> {
        Ok(Self {
            storage: storage.clone(),
            key,
            next: range.first,
            last: range.last,
            stream: storage.open(key, range).await?,
            resumptions_left: RESUMPTIONS,
        })
    }

    /// The bytes of the range. A body that cannot be completed ends with an error, so that the connection breaks and nobody
    /// takes a part for the whole.
    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::try_unfold(self, |mut download| async move {
            let bytes = download.read().await.inspect_err(|error| tracing::warn!(%error, "a download broke off"))?;
            Ok::<_, StorageError>(bytes.map(|bytes| (bytes, download)))
        }))
    }

    async fn read(&mut self) -> Result<Option<Bytes>> {
        while self.next <= self.last {
            match self.stream.next().await {
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(mut bytes)) => {
                    let left = usize::try_from(self.last - self.next + 1).unwrap_or(usize::MAX);
                    bytes.truncate(left);
                    self.next += bytes.len() as u64;
                    return Ok(Some(bytes));
                }
                broken => self.resume(broken.is_none()).await?,
            }
        }
        Ok(None)
    }

    async fn resume(&mut self, ended: bool) -> Result<()> {
        self.resumptions_left = self.resumptions_left.checked_sub(1).ok_or_else(|| {
            StorageError::unexpected("GetObject", if ended { "the stream ended early" } else { "the stream broke" })
        })?;
        self.stream = self.storage.open(self.key, ByteRange { first: self.next, last: self.last }).await?;
        Ok(())
    }
}
