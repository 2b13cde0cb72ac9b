//! Lists: objects by prefix and delimiter, unfinished uploads, their parts. Each in pages.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use s3s::{
    S3Error, S3Result,
    dto::{
        CommonPrefix, ETag, ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectsV2Input,
        ListObjectsV2Output, ListPartsInput, ListPartsOutput, MultipartUpload, Object as ObjectEntry,
        ObjectStorageClass, Part as PartEntry, Timestamp,
    },
    s3_error,
};

use super::{
    api::{Api, checksum_type},
    digests::set_checksums,
    disk::Object,
    multipart::algorithm_name,
};

/// The most entries of any page.
const PAGE: usize = 1000;

fn page_size(asked: Option<i32>) -> S3Result<usize> {
    match asked.map(usize::try_from) {
        None => Ok(PAGE),
        Some(Ok(asked)) => Ok(asked.min(PAGE)),
        Some(Err(_)) => Err(s3_error!(InvalidArgument, "A page size must not be negative")),
    }
}

fn count(entries: usize) -> S3Result<i32> {
    i32::try_from(entries).map_err(S3Error::internal_error)
}

/// An entry of a listing, and where it ends.
enum Entry<'a> {
    Object(&'a Arc<Object>),
    Prefix(String),
}

impl Entry<'_> {
    /// What the next page begins after.
    fn marker(&self) -> &str {
        match self {
            Self::Object(object) => &object.key,
            Self::Prefix(prefix) => prefix,
        }
    }
}

/// Objects and groups after `after`, at most `limit`, and whether there are more.
fn entries<'a>(
    objects: &'a BTreeMap<String, Arc<Object>>,
    prefix: &str,
    delimiter: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> (Vec<Entry<'a>>, bool) {
    let mut found = Vec::new();
    let mut from = match after {
        Some(after) if after >= prefix => Bound::Excluded(after.to_owned()),
        _ => Bound::Included(prefix.to_owned()),
    };
    loop {
        let next = objects.range::<String, _>((from, Bound::Unbounded)).next();
        let Some((key, object)) = next.filter(|(key, _)| key.starts_with(prefix)) else { return (found, false) };
        let group = delimiter.filter(|delimiter| !delimiter.is_empty()).and_then(|delimiter| {
            let end = prefix.len() + key[prefix.len()..].find(delimiter)? + delimiter.len();
            Some(key[..end].to_owned())
        });
        from = match &group {
            Some(group) => Bound::Included(successor(group)),
            None => Bound::Excluded(key.clone()),
        };
        let entry = match group {
            // The last entry of the page before.
            Some(group) if after.is_some_and(|after| group.as_str() <= after) => continue,
            Some(group) => Entry::Prefix(group),
            None => Entry::Object(object),
        };
        if found.len() == limit {
            return (found, true);
        }
        found.push(entry);
    }
}

/// The least string that is greater than every string with this prefix.
fn successor(prefix: &str) -> String {
    let mut next = prefix.to_owned();
    while let Some(last) = next.pop() {
        if let Some(greater) = (last..=char::MAX).nth(1) {
            next.push(greater);
            return next;
        }
    }
    // Nothing is greater than a run of the last code point, except a longer one; keys end at 1,024 bytes.
    char::MAX.to_string().repeat(257)
}

impl Api {
    pub(super) fn list_objects(&self, input: &ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
        let prefix = input.prefix.clone().unwrap_or_default();
        let limit = page_size(input.max_keys)?;
        let token = input.continuation_token.as_deref().map(decode_token).transpose()?;
        let after = token.as_deref().or(input.start_after.as_deref());
        self.store.read(&input.bucket, |bucket| {
            let (found, truncated) = entries(&bucket.objects, &prefix, input.delimiter.as_deref(), after, limit);
            // S3 never calls an empty page truncated, since it could not be followed.
            let truncated = truncated && !found.is_empty();
            let next = found.last().filter(|_| truncated).map(|entry| hex::encode(entry.marker()));
            let (mut contents, mut common_prefixes) = (Vec::new(), Vec::new());
            for entry in &found {
                match entry {
                    Entry::Object(object) => contents.push(object_entry(object)?),
                    Entry::Prefix(prefix) => common_prefixes.push(CommonPrefix { prefix: Some(prefix.clone()) }),
                }
            }
            Ok(ListObjectsV2Output {
                key_count: Some(count(found.len())?),
                max_keys: Some(count(limit)?),
                is_truncated: Some(truncated),
                contents: Some(contents),
                common_prefixes: Some(common_prefixes),
                continuation_token: input.continuation_token.clone(),
                next_continuation_token: next,
                delimiter: input.delimiter.clone(),
                name: Some(input.bucket.clone()),
                prefix: Some(prefix.clone()),
                start_after: input.start_after.clone(),
                ..Default::default()
            })
        })
    }

    pub(super) fn list_uploads(&self, input: &ListMultipartUploadsInput) -> S3Result<ListMultipartUploadsOutput> {
        if input.delimiter.as_ref().is_some_and(|delimiter| !delimiter.is_empty()) {
            return Err(s3_error!(NotImplemented, "A delimiter in a list of uploads is not supported"));
        }
        let prefix = input.prefix.clone().unwrap_or_default();
        let limit = page_size(input.max_uploads)?;
        // Without an upload id, the marker skips every upload of its key.
        let key_marker = input.key_marker.as_deref().unwrap_or_default();
        let id_marker = input.upload_id_marker.as_deref().filter(|_| !key_marker.is_empty());
        let is_after = |key: &str, id: &str| match id_marker {
            Some(id_marker) => (key, id) > (key_marker, id_marker),
            None => key_marker.is_empty() || key > key_marker,
        };
        self.store.read(&input.bucket, |bucket| {
            let wanted = bucket.uploads.values().filter(|upload| upload.key.starts_with(&prefix));
            let mut wanted = wanted.filter(|upload| is_after(&upload.key, &upload.id)).peekable();
            let page: Vec<_> = wanted.by_ref().take(limit).collect();
            let truncated = wanted.peek().is_some() && !page.is_empty();
            let last = page.last().filter(|_| truncated);
            let entry = |upload: &&super::disk::Upload| MultipartUpload {
                key: Some(upload.key.clone()),
                upload_id: Some(upload.id.clone()),
                initiated: Some(Timestamp::from(upload.initiated)),
                checksum_algorithm: upload.algorithm.map(algorithm_name),
                checksum_type: upload.checksum_kind.map(checksum_type),
                ..Default::default()
            };
            Ok(ListMultipartUploadsOutput {
                bucket: Some(input.bucket.clone()),
                is_truncated: Some(truncated),
                key_marker: input.key_marker.clone(),
                max_uploads: Some(count(limit)?),
                next_key_marker: last.map(|upload| upload.key.clone()),
                next_upload_id_marker: last.map(|upload| upload.id.clone()),
                prefix: Some(prefix.clone()),
                upload_id_marker: input.upload_id_marker.clone(),
                uploads: Some(page.iter().map(entry).collect()),
                ..Default::default()
            })
        })
    }

    pub(super) fn list_upload_parts(&self, input: &ListPartsInput) -> S3Result<ListPartsOutput> {
        let limit = page_size(input.max_parts)?;
        let after = input.part_number_marker.unwrap_or(0);
        self.store.read(&input.bucket, |bucket| {
            let upload = bucket.upload(&input.key, &input.upload_id)?;
            let mut wanted = upload.parts.range((Bound::Excluded(after.max(0)), Bound::Unbounded)).peekable();
            let page: Vec<_> = wanted.by_ref().take(limit).collect();
            let truncated = wanted.peek().is_some() && !page.is_empty();
            let mut parts = Vec::with_capacity(page.len());
            for (number, part) in &page {
                let mut entry = PartEntry {
                    part_number: Some(**number),
                    size: Some(i64::try_from(part.segment.size).map_err(S3Error::internal_error)?),
                    e_tag: Some(ETag::Strong(part.etag.clone())),
                    last_modified: Some(Timestamp::from(part.last_modified)),
                    ..Default::default()
                };
                set_checksums!(entry, part.checksums);
                parts.push(entry);
            }
            Ok(ListPartsOutput {
                bucket: Some(input.bucket.clone()),
                key: Some(input.key.clone()),
                upload_id: Some(input.upload_id.clone()),
                max_parts: Some(count(limit)?),
                part_number_marker: input.part_number_marker,
                next_part_number_marker: page.last().filter(|_| truncated).map(|(number, _)| **number),
                is_truncated: Some(truncated),
                checksum_algorithm: upload.algorithm.map(algorithm_name),
                checksum_type: upload.checksum_kind.map(checksum_type),
                parts: Some(parts),
                ..Default::default()
            })
        })
    }
}

fn object_entry(object: &Object) -> S3Result<ObjectEntry> {
    Ok(ObjectEntry {
        key: Some(object.key.clone()),
        size: Some(i64::try_from(object.size).map_err(S3Error::internal_error)?),
        e_tag: Some(ETag::Strong(object.etag.clone())),
        last_modified: Some(Timestamp::from(object.last_modified)),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Default::default()
    })
}

fn decode_token(token: &str) -> S3Result<String> {
    let marker = hex::decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    marker.ok_or_else(|| s3_error!(InvalidArgument, "The continuation token provided is incorrect"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(keys: &[&str], prefix: &str, after: Option<&str>, limit: usize) -> (Vec<String>, bool) {
        let object = |key: &str| Object {
            key: key.to_owned(),
            size: 0,
            etag: String::new(),
            last_modified: time::OffsetDateTime::UNIX_EPOCH,
            attributes: super::super::disk::Attributes::default(),
            checksums: super::super::digests::Checksums::default(),
            checksum_kind: None,
            segments: Vec::new(),
        };
        let objects = keys.iter().map(|key| ((*key).to_owned(), Arc::new(object(key)))).collect();
        let (found, more) = entries(&objects, prefix, Some("/"), after, limit);
        (found.iter().map(|entry| entry.marker().to_owned()).collect(), more)
    }

    #[test]
    fn keys_behind_a_delimiter_are_one_entry() {
        let keys = ["a", "b/1", "b/2", "b0", "c/1"];
        assert_eq!(listing(&keys, "", None, 10), (vec!["a".into(), "b/".into(), "b0".into(), "c/".into()], false));
        assert_eq!(listing(&keys, "b/", None, 10), (vec!["b/1".into(), "b/2".into()], false));
    }

    #[test]
    fn pages_continue_after_the_last_entry_without_gap_or_repetition() {
        let keys = ["a", "b/1", "b/2", "b0", "c/1"];
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, more) = listing(&keys, "", after.as_deref(), 1);
            after = page.last().cloned();
            all.extend(page);
            if !more {
                break;
            }
        }
        assert_eq!(all, ["a", "b/", "b0", "c/"]);
    }

    #[test]
    fn a_successor_is_above_all_with_the_prefix() {
        assert_eq!(successor("a/"), "a0");
        assert_eq!(successor(&format!("a{}", char::MAX)), "b");
        // The code points of surrogates are not characters.
        assert_eq!(successor("\u{d7ff}"), "\u{e000}");
    }
}
