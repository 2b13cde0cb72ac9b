//! The S3 client: one method an operation, each with the deadlines of [`config`] and counted as stage `s3` of the request it
//! serves. What is stored where, and when something may be deleted, is decided elsewhere.

mod config;
mod download;
mod error;
mod key;
mod listing;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use service_kit::stages::{Stage, timed};

pub(crate) use config::StorageConfig;
pub(crate) use download::Download;
pub(crate) use error::StorageError;
pub use key::DocumentKey;
pub(crate) use listing::OpenMultipart;

use crate::range::ByteRange;
use crate::upload::buffer::Part;

type Result<T> = std::result::Result<T, StorageError>;

/// SHA-256 of some bytes.
pub(crate) type Sha256Hash = [u8; 32];

/// The documents' part of a bucket. Clones share the client and its connections.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    client: aws_sdk_s3::Client,
    bucket: String,
}

/// A multipart upload that has begun.
#[derive(Debug)]
pub(crate) struct Multipart {
    id: String,
    parts: Vec<CompletedPart>,
}

impl Multipart {
    /// What names it, together with its key.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Storage {
    /// Builds the client; nothing is connected yet.
    pub(crate) async fn new(config: &StorageConfig) -> Self {
        Self { client: config.client().await, bucket: config.bucket().to_owned() }
    }

    /// Stores a whole object. The store computes the hash as well and refuses what differs.
    pub(crate) async fn put(&self, key: DocumentKey, content: &Part, sha256: &Sha256Hash) -> Result<()> {
        let request = self.client.put_object().bucket(&self.bucket).key(key.to_string());
        let request = request.checksum_sha256(STANDARD.encode(sha256)).body(replayable(content));
        call("PutObject", request.send()).await.map(|_| ())
    }

    /// Begins an upload in parts.
    pub(crate) async fn begin_multipart(&self, key: DocumentKey) -> Result<Multipart> {
        const OPERATION: &str = "CreateMultipartUpload";
        let request = self.client.create_multipart_upload().bucket(&self.bucket).key(key.to_string());
        let answer = call(OPERATION, request.checksum_algorithm(ChecksumAlgorithm::Sha256).send()).await?;
        let id = answer.upload_id.ok_or_else(|| StorageError::unexpected(OPERATION, "no upload id"))?;
        Ok(Multipart { id, parts: Vec::new() })
    }

    /// Sends the next part. Every part but the last has [`crate::upload::buffer::PART_BYTES`].
    pub(crate) async fn put_part(
        &self,
        key: DocumentKey,
        multipart: &mut Multipart,
        content: &Part,
        sha256: &Sha256Hash,
    ) -> Result<()> {
        const OPERATION: &str = "UploadPart";
        // S3 takes 10,000 parts; the configured maximum of a document stays below.
        let number = i32::try_from(multipart.parts.len() + 1).unwrap_or(i32::MAX);
        let checksum = STANDARD.encode(sha256);
        let request = self.client.upload_part().bucket(&self.bucket).key(key.to_string());
        let request = request.upload_id(&multipart.id).part_number(number).checksum_sha256(&checksum);
        let answer = call(OPERATION, request.body(replayable(content)).send()).await?;
        let e_tag = answer.e_tag.ok_or_else(|| StorageError::unexpected(OPERATION, "no entity tag"))?;
        let part = CompletedPart::builder().part_number(number).e_tag(e_tag).checksum_sha256(checksum);
        multipart.parts.push(part.build());
        Ok(())
    }

    /// Makes the parts one object of `length` bytes.
    pub(crate) async fn complete_multipart(&self, key: DocumentKey, multipart: &Multipart, length: u64) -> Result<()> {
        let parts = CompletedMultipartUpload::builder().set_parts(Some(multipart.parts.clone())).build();
        let request = self.client.complete_multipart_upload().bucket(&self.bucket).key(key.to_string());
        let request = request.upload_id(&multipart.id).multipart_upload(parts);
        match call("CompleteMultipartUpload", request.send()).await {
            Ok(_) => Ok(()),
            // The first attempt may have succeeded with its answer lost; the retry then finds the upload gone.
            Err(error @ StorageError::NoSuchUpload { .. }) => match self.length(key).await? {
                Some(stored) if stored == length => Ok(()),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Drops the parts of an upload; one that does not exist is dropped already.
    pub(crate) async fn abort_multipart(&self, key: DocumentKey, upload_id: &str) -> Result<()> {
        let request = self.client.abort_multipart_upload().bucket(&self.bucket).key(key.to_string());
        match call("AbortMultipartUpload", request.upload_id(upload_id).send()).await {
            Ok(_) | Err(StorageError::NoSuchUpload { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object; one that does not exist is deleted already.
    pub(crate) async fn delete(&self, key: DocumentKey) -> Result<()> {
        let request = self.client.delete_object().bucket(&self.bucket).key(key.to_string());
        match call("DeleteObject", request.send()).await {
            Ok(_) | Err(StorageError::Missing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens a range of an object for reading.
    async fn open(&self, key: DocumentKey, range: ByteRange) -> Result<ByteStream> {
        const OPERATION: &str = "GetObject";
        let request = self.client.get_object().bucket(&self.bucket).key(key.to_string());
        let answer = call(OPERATION, request.range(format!("bytes={}-{}", range.first, range.last)).send()).await?;
        let expected = i64::try_from(range.length()).ok();
        if answer.content_length != expected {
            return Err(StorageError::unexpected(OPERATION, "the object has another length than its row"));
        }
        Ok(answer.body)
    }

    /// Length of an object in bytes; `None` where there is none.
    async fn length(&self, key: DocumentKey) -> Result<Option<u64>> {
        let request = self.client.head_object().bucket(&self.bucket).key(key.to_string());
        match timed(Stage::S3, Box::pin(request.send())).await {
            Ok(answer) => Ok(answer.content_length.and_then(|length| u64::try_from(length).ok())),
            // An answer to HEAD has no body, so that the code has another spelling here.
            Err(SdkError::ServiceError(error)) if error.raw().status().as_u16() == 404 => Ok(None),
            Err(error) => Err(StorageError::of("HeadObject", &error)),
        }
    }
}

/// Boxes the request before anything awaits it: the SDK's futures are some 20 KiB, which each request would carry along.
fn call<T, E: ProvideErrorMetadata>(
    operation: &'static str,
    request: impl Future<Output = std::result::Result<T, SdkError<E>>> + Send,
) -> impl Future<Output = Result<T>> + Send {
    let request = Box::pin(request);
    async move { timed(Stage::S3, request).await.map_err(|error| StorageError::of(operation, &error)) }
}

/// A body that the SDK can send again after a failed attempt. It is a stream on purpose: of bytes in memory the SDK would
/// compute a second SHA-256 for the signature, although the checksum header is signed already.
fn replayable(content: &Part) -> ByteStream {
    if content.length() == 0 {
        return ByteStream::from_static(b"");
    }
    let content = content.clone();
    ByteStream::new(SdkBody::retryable(move || SdkBody::from_body_1_x(content.to_body())))
}
