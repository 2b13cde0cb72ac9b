//! The S3 operations, from their requests to the store and back.

use std::sync::Arc;

use async_trait::async_trait;
use s3s::{
    S3, S3Error, S3Request, S3Response, S3Result,
    dto::{
        AbortMultipartUploadInput, AbortMultipartUploadOutput, Bucket as BucketEntry, ChecksumMode, ChecksumType,
        CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CreateBucketInput, CreateBucketOutput,
        CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput,
        DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, ETagCondition, GetObjectInput, GetObjectOutput,
        HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput, ListBucketsInput, ListBucketsOutput,
        ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectsV2Input, ListObjectsV2Output, ListPartsInput,
        ListPartsOutput, PutObjectInput, PutObjectOutput, Timestamp, UploadPartInput, UploadPartOutput,
    },
    s3_error,
};

use super::{
    body,
    digests::{Promise, checksums_of, set_checksums},
    disk::{Attributes, Blob, ChecksumKind, Object},
    store::{Precondition, Store},
};

/// Answers as S3 does, from the store. What is not here answers 501.
#[derive(Debug, Clone)]
pub(super) struct Api {
    pub(super) store: Arc<Store>,
}

impl Api {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// A place for new bytes in a bucket that exists.
    pub(super) fn new_blob(&self, bucket: &str) -> S3Result<Arc<Blob>> {
        self.store.read(bucket, |bucket| Ok(Blob::new(bucket.folder())))
    }
}

/// The members of a request that describe the object to be written.
macro_rules! attributes_of {
    ($input:expr) => {
        $crate::object_store::disk::Attributes {
            content_type: $input.content_type.take(),
            content_disposition: $input.content_disposition.take(),
            content_encoding: $crate::object_store::api::content_encoding($input.content_encoding.take()),
            content_language: $input.content_language.take(),
            cache_control: $input.cache_control.take(),
            expires: $input.expires.take().map(Into::into),
            metadata: $input.metadata.take().unwrap_or_default().into_iter().collect(),
        }
    };
}
pub(super) use attributes_of;

/// `aws-chunked` is how the body travels, not what it is.
pub(super) fn content_encoding(header: Option<String>) -> Option<String> {
    let header = header?;
    let kept: Vec<&str> = header.split(',').map(str::trim).filter(|coding| *coding != "aws-chunked").collect();
    (!kept.is_empty()).then(|| kept.join(","))
}

pub(super) fn checksum_type(kind: ChecksumKind) -> ChecksumType {
    ChecksumType::from_static(match kind {
        ChecksumKind::FullObject => ChecksumType::FULL_OBJECT,
        ChecksumKind::Composite => ChecksumType::COMPOSITE,
    })
}

/// The members that the outputs of a GET and a HEAD share.
macro_rules! describe {
    ($output:expr, $object:expr, $with_checksums:expr) => {{
        let Attributes {
            content_type,
            content_disposition,
            content_encoding,
            content_language,
            cache_control,
            expires,
            metadata,
        } = $object.attributes.clone();
        $output.content_type = content_type.or_else(|| Some("binary/octet-stream".to_owned()));
        $output.content_disposition = content_disposition;
        $output.content_encoding = content_encoding;
        $output.content_language = content_language;
        $output.cache_control = cache_control;
        $output.expires = expires.map(Timestamp::from);
        $output.metadata = (!metadata.is_empty()).then(|| metadata.into_iter().collect());
        $output.last_modified = Some(Timestamp::from($object.last_modified));
        $output.e_tag = Some(ETag::Strong($object.etag.clone()));
        $output.accept_ranges = Some("bytes".to_owned());
        if $with_checksums {
            set_checksums!($output, $object.checksums);
            $output.checksum_type = $object.checksum_kind.map(checksum_type);
        }
    }};
}

fn wants_checksums(mode: Option<&ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str() == ChecksumMode::ENABLED)
}

/// The conditional headers of a read (RFC 9110 §13.2.2).
struct Conditions<'a> {
    matches: Option<&'a ETagCondition>,
    none_matches: Option<&'a ETagCondition>,
    modified_since: Option<&'a Timestamp>,
    unmodified_since: Option<&'a Timestamp>,
}

impl Conditions<'_> {
    fn check(&self, object: &Object) -> S3Result<()> {
        let etag = ETag::Strong(object.etag.clone());
        let matches = |condition: &ETagCondition| match condition {
            ETagCondition::Any => true,
            ETagCondition::ETag(wanted) => wanted.weak_cmp(&etag),
        };
        // HTTP dates have no fractions of a second.
        let modified = Timestamp::from(object.last_modified.replace_nanosecond(0).map_err(S3Error::internal_error)?);
        match (self.matches, self.unmodified_since) {
            (Some(condition), _) if !matches(condition) => return Err(s3_error!(PreconditionFailed)),
            (None, Some(since)) if modified > *since => return Err(s3_error!(PreconditionFailed)),
            _ => {}
        }
        match (self.none_matches, self.modified_since) {
            (Some(condition), _) if matches(condition) => Err(s3_error!(NotModified)),
            (None, Some(since)) if modified <= *since => Err(s3_error!(NotModified)),
            _ => Ok(()),
        }
    }
}

fn length(bytes: u64) -> S3Result<i64> {
    i64::try_from(bytes).map_err(S3Error::internal_error)
}

#[async_trait]
impl S3 for Api {
    async fn create_bucket(&self, req: S3Request<CreateBucketInput>) -> S3Result<S3Response<CreateBucketOutput>> {
        self.store.create_bucket(&req.input.bucket)?;
        let location = Some(format!("/{}", req.input.bucket));
        Ok(S3Response::new(CreateBucketOutput { location }))
    }

    async fn head_bucket(&self, req: S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        self.store.read(&req.input.bucket, |_| Ok(()))?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn list_buckets(&self, _req: S3Request<ListBucketsInput>) -> S3Result<S3Response<ListBucketsOutput>> {
        let entry = |name| BucketEntry { name: Some(name), ..Default::default() };
        let buckets = Some(self.store.buckets().into_iter().map(entry).collect());
        Ok(S3Response::new(ListBucketsOutput { buckets, ..Default::default() }))
    }

    async fn put_object(&self, req: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let mut input = req.input;
        let promise = Promise::new(input.content_length, input.content_md5.take(), checksums_of!(input), &req.headers)?;
        let blob = self.new_blob(&input.bucket)?;
        let received = body::receive(blob, input.body.take(), promise, req.trailing_headers, None).await?;

        let etag = hex::encode(&received.digests.md5);
        let checksums = received.digests.checksums;
        let checksum_kind = (!checksums.is_empty()).then_some(ChecksumKind::FullObject);
        let object = Object {
            key: input.key.clone(),
            size: received.segment.size,
            etag: etag.clone(),
            last_modified: self.store.clock.now(),
            attributes: attributes_of!(input),
            checksums: checksums.clone(),
            checksum_kind,
            segments: vec![received.segment],
        };
        let precondition = Precondition { if_match: input.if_match, if_none_match: input.if_none_match };
        self.store.change(&input.bucket, move |bucket| bucket.publish(object, &precondition)).await?;

        let mut output = PutObjectOutput { e_tag: Some(ETag::Strong(etag)), ..Default::default() };
        set_checksums!(output, checksums);
        output.checksum_type = checksum_kind.map(checksum_type);
        Ok(S3Response::new(output))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let input = req.input;
        if input.part_number.is_some() || input.version_id.is_some() {
            return Err(s3_error!(NotImplemented));
        }
        let object = self.store.read(&input.bucket, |bucket| bucket.object(&input.key))?;
        Conditions {
            matches: input.if_match.as_ref(),
            none_matches: input.if_none_match.as_ref(),
            modified_since: input.if_modified_since.as_ref(),
            unmodified_since: input.if_unmodified_since.as_ref(),
        }
        .check(&object)?;
        let range = match input.range {
            Some(range) => range.check(object.size)?,
            None => 0..object.size,
        };
        let mut output = GetObjectOutput {
            content_length: Some(length(range.end - range.start)?),
            content_range: input
                .range
                .map(|_| format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), object.size)),
            ..Default::default()
        };
        let whole = range == (0..object.size);
        describe!(output, object, whole && wants_checksums(input.checksum_mode.as_ref()));
        output.body = Some(body::read(&object, range));
        Ok(S3Response::new(output))
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = req.input;
        if input.part_number.is_some() || input.version_id.is_some() || input.range.is_some() {
            return Err(s3_error!(NotImplemented));
        }
        let object = self.store.read(&input.bucket, |bucket| bucket.object(&input.key))?;
        Conditions {
            matches: input.if_match.as_ref(),
            none_matches: input.if_none_match.as_ref(),
            modified_since: input.if_modified_since.as_ref(),
            unmodified_since: input.if_unmodified_since.as_ref(),
        }
        .check(&object)?;
        let mut output = HeadObjectOutput { content_length: Some(length(object.size)?), ..Default::default() };
        describe!(output, object, wants_checksums(input.checksum_mode.as_ref()));
        Ok(S3Response::new(output))
    }

    async fn delete_object(&self, req: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        let DeleteObjectInput { bucket, key, .. } = req.input;
        self.store.change(&bucket, move |bucket| bucket.delete(&key)).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(&self, req: S3Request<DeleteObjectsInput>) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let DeleteObjectsInput { bucket, delete, .. } = req.input;
        let deleted = self.store.change(&bucket, move |bucket| {
            let delete_one = |object: s3s::dto::ObjectIdentifier| {
                bucket.delete(&object.key)?;
                Ok(DeletedObject { key: Some(object.key), ..Default::default() })
            };
            delete.objects.into_iter().map(delete_one).collect::<S3Result<Vec<_>>>()
        });
        let deleted = Some(deleted.await?);
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..Default::default() }))
    }

    async fn list_objects_v2(&self, req: S3Request<ListObjectsV2Input>) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.list_objects(&req.input).map(S3Response::new)
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        self.create_upload(req.input).await.map(S3Response::new)
    }

    async fn upload_part(&self, req: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        self.receive_part(req).await.map(S3Response::new)
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        self.complete_upload(req.input).await.map(S3Response::new)
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.abort_upload(req.input).await.map(S3Response::new)
    }

    async fn list_parts(&self, req: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        self.list_upload_parts(&req.input).map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        self.list_uploads(&req.input).map(S3Response::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transfer_framing_is_not_part_of_the_content_encoding() {
        assert_eq!(content_encoding(Some("aws-chunked".to_owned())), None);
        assert_eq!(content_encoding(Some("aws-chunked, gzip".to_owned())), Some("gzip".to_owned()));
        assert_eq!(content_encoding(Some("br".to_owned())), Some("br".to_owned()));
    }
}
