//! What the store holds, page by page: for the sweeper.

use aws_sdk_s3::primitives::DateTime;
use time::OffsetDateTime;

use super::key::PREFIX;
use super::{DocumentKey, Result, Storage, call};

/// Objects in one page. S3 gives no more.
const PAGE_OBJECTS: i32 = 1_000;

/// One page, and where the next one begins.
#[derive(Debug)]
pub(crate) struct Page<T, P> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<P>,
}

/// An object of ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredObject {
    pub(crate) key: DocumentKey,
    pub(crate) modified_at: OffsetDateTime,
}

/// An open multipart upload of ours.
#[derive(Debug, Clone)]
pub(crate) struct OpenMultipart {
    pub(crate) key: DocumentKey,
    pub(crate) upload_id: String,
    pub(crate) initiated_at: OffsetDateTime,
}

/// Where a list of multipart uploads goes on.
#[derive(Debug, Clone)]
pub(crate) struct MultipartMarker {
    key: String,
    upload_id: Option<String>,
}

impl Storage {
    /// The objects after the name `after`, in the order of their names. What is not named as we name is left out.
    pub(crate) async fn list_objects(&self, after: Option<String>) -> Result<Page<StoredObject, String>> {
        let request = self.client.list_objects_v2().bucket(&self.bucket).prefix(PREFIX).max_keys(PAGE_OBJECTS);
        let answer = call("ListObjectsV2", request.set_start_after(after).send()).await?;
        let last = answer.contents().last().and_then(|object| object.key().map(str::to_owned));
        let items = answer.contents().iter().filter_map(|object| {
            let key = DocumentKey::parse(object.key()?)?;
            Some(StoredObject { key, modified_at: instant(object.last_modified()?)? })
        });
        Ok(Page { items: items.collect(), next: last.filter(|_| answer.is_truncated() == Some(true)) })
    }

    /// The open multipart uploads after `after`.
    pub(crate) async fn list_multiparts(
        &self,
        after: Option<MultipartMarker>,
    ) -> Result<Page<OpenMultipart, MultipartMarker>> {
        let (key_marker, upload_id_marker) = after.map_or((None, None), |marker| (Some(marker.key), marker.upload_id));
        let request = self.client.list_multipart_uploads().bucket(&self.bucket).prefix(PREFIX);
        let request = request.set_key_marker(key_marker).set_upload_id_marker(upload_id_marker);
        let answer = call("ListMultipartUploads", request.send()).await?;
        let items = answer.uploads().iter().filter_map(|upload| {
            Some(OpenMultipart {
                key: DocumentKey::parse(upload.key()?)?,
                upload_id: upload.upload_id()?.to_owned(),
                initiated_at: instant(upload.initiated()?)?,
            })
        });
        let items = items.collect();
        let upload_id = answer.next_upload_id_marker().map(str::to_owned);
        let next = answer.next_key_marker().filter(|_| answer.is_truncated() == Some(true));
        Ok(Page { items, next: next.map(|key| MultipartMarker { key: key.to_owned(), upload_id }) })
    }
}

fn instant(time: &DateTime) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(time.secs()).ok()
}
