//! What is in the data folder.
//!
//! ```text
//! lock                               held while a server uses the folder
//! BUCKET/blobs/RANDOM                bytes, written once
//! BUCKET/records/SHA256(KEY).json    an object: key, metadata, and the blobs it consists of
//! BUCKET/uploads/ID.json             an unfinished multipart upload
//! ```
//!
//! A blob counts when a record names it: renaming the record into place publishes an object at one stroke, and blobs that
//! no record names are left from a crash and removed at the next start.

use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use super::{
    ObjectStoreError,
    digests::{Algorithm, Checksums},
};

/// Bytes in a file, which goes with the last holder of the value unless it is kept.
#[derive(Debug)]
pub(super) struct Blob {
    name: String,
    path: PathBuf,
    kept: AtomicBool,
}

impl Blob {
    /// A name for new bytes; until they are kept, an error or a cancelled request removes them.
    pub(super) fn new(bucket: &Path) -> Arc<Self> {
        let name = hex::encode(rand::random::<[u8; 16]>());
        Arc::new(Self { path: bucket.join("blobs").join(&name), name, kept: AtomicBool::new(false) })
    }

    fn existing(bucket: &Path, name: &str) -> Arc<Self> {
        Arc::new(Self { path: bucket.join("blobs").join(name), name: name.to_owned(), kept: AtomicBool::new(true) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A record names it now.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// No record names it any more. Whoever still reads it can finish.
    pub(super) fn discard(&self) {
        self.kept.store(false, Ordering::Relaxed);
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A run of an object's bytes.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) blob: Arc<Blob>,
    pub(super) size: u64,
}

/// What a client says about an object and gets back with it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Attributes {
    pub(super) content_type: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) content_encoding: Option<String>,
    pub(super) content_language: Option<String>,
    pub(super) cache_control: Option<String>,
    #[serde(with = "time::serde::rfc3339::option")]
    pub(super) expires: Option<OffsetDateTime>,
    /// `x-amz-meta-*`.
    pub(super) metadata: BTreeMap<String, String>,
}

/// An object.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) key: String,
    pub(super) size: u64,
    pub(super) etag: String,
    pub(super) last_modified: OffsetDateTime,
    pub(super) attributes: Attributes,
    pub(super) checksums: Checksums,
    pub(super) checksum_kind: Option<ChecksumKind>,
    pub(super) segments: Vec<Segment>,
}

/// Whether a checksum is of the whole object or of its parts' checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ChecksumKind {
    FullObject,
    Composite,
}

/// An unfinished multipart upload.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) key: String,
    pub(super) id: String,
    pub(super) initiated: OffsetDateTime,
    pub(super) attributes: Attributes,
    pub(super) algorithm: Option<Algorithm>,
    pub(super) checksum_kind: Option<ChecksumKind>,
    pub(super) parts: BTreeMap<i32, Part>,
}

/// A part of it.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) segment: Segment,
    pub(super) etag: String,
    pub(super) last_modified: OffsetDateTime,
    pub(super) checksums: Checksums,
}

/// [`Object`] as a file holds it.
#[derive(Serialize, Deserialize)]
struct ObjectRecord {
    key: String,
    etag: String,
    #[serde(with = "time::serde::rfc3339")]
    last_modified: OffsetDateTime,
    attributes: Attributes,
    checksums: Checksums,
    checksum_kind: Option<ChecksumKind>,
    segments: Vec<(String, u64)>,
}

/// [`Upload`] as a file holds it.
#[derive(Serialize, Deserialize)]
struct UploadRecord {
    key: String,
    id: String,
    #[serde(with = "time::serde::rfc3339")]
    initiated: OffsetDateTime,
    attributes: Attributes,
    algorithm: Option<Algorithm>,
    checksum_kind: Option<ChecksumKind>,
    parts: BTreeMap<i32, PartRecord>,
}

#[derive(Serialize, Deserialize)]
struct PartRecord {
    blob: String,
    size: u64,
    etag: String,
    #[serde(with = "time::serde::rfc3339")]
    last_modified: OffsetDateTime,
    checksums: Checksums,
}

/// Puts an object's record in place of an earlier one.
pub(super) fn write_object(bucket: &Path, object: &Object) -> io::Result<()> {
    let record = ObjectRecord {
        key: object.key.clone(),
        etag: object.etag.clone(),
        last_modified: object.last_modified,
        attributes: object.attributes.clone(),
        checksums: object.checksums.clone(),
        checksum_kind: object.checksum_kind,
        segments: object.segments.iter().map(|segment| (segment.blob.name.clone(), segment.size)).collect(),
    };
    replace(&object_path(bucket, &object.key), &record)
}

pub(super) fn remove_object(bucket: &Path, key: &str) -> io::Result<()> {
    fs::remove_file(object_path(bucket, key))
}

pub(super) fn write_upload(bucket: &Path, upload: &Upload) -> io::Result<()> {
    let part = |part: &Part| PartRecord {
        blob: part.segment.blob.name.clone(),
        size: part.segment.size,
        etag: part.etag.clone(),
        last_modified: part.last_modified,
        checksums: part.checksums.clone(),
    };
    let record = UploadRecord {
        key: upload.key.clone(),
        id: upload.id.clone(),
        initiated: upload.initiated,
        attributes: upload.attributes.clone(),
        algorithm: upload.algorithm,
        checksum_kind: upload.checksum_kind,
        parts: upload.parts.iter().map(|(number, value)| (*number, part(value))).collect(),
    };
    replace(&upload_path(bucket, &upload.id), &record)
}

pub(super) fn remove_upload(bucket: &Path, id: &str) -> io::Result<()> {
    fs::remove_file(upload_path(bucket, id))
}

pub(super) fn make_bucket(bucket: &Path) -> io::Result<()> {
    ["blobs", "records", "uploads"].iter().try_for_each(|folder| fs::create_dir_all(bucket.join(folder)))
}

/// Keys are up to 1,024 bytes of anything, file names are not.
fn object_path(bucket: &Path, key: &str) -> PathBuf {
    bucket.join("records").join(format!("{}.json", hex::encode(Sha256::digest(key))))
}

fn upload_path(bucket: &Path, id: &str) -> PathBuf {
    bucket.join("uploads").join(format!("{id}.json"))
}

fn replace(path: &Path, record: &impl Serialize) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    fs::write(&unfinished, serde_json::to_vec(record)?)?;
    fs::rename(&unfinished, path)
}

/// All of a bucket. Removes what a crash left.
pub(super) fn load_bucket(bucket: &Path) -> Result<(Vec<Object>, Vec<Upload>), ObjectStoreError> {
    make_bucket(bucket).map_err(|source| io_error("creating", bucket, source))?;
    let objects: Vec<ObjectRecord> = load_records(&bucket.join("records"))?;
    let mut uploads: Vec<UploadRecord> = load_records(&bucket.join("uploads"))?;

    let mut named: HashSet<String> = HashSet::new();
    named.extend(objects.iter().flat_map(|object| &object.segments).map(|(blob, _)| blob.clone()));
    // Its object was published, and then the crash came: the upload is complete.
    uploads.retain(|upload| {
        let completed = upload.parts.values().any(|part| named.contains(&part.blob));
        if completed {
            let _ = remove_upload(bucket, &upload.id);
        }
        !completed
    });
    named.extend(uploads.iter().flat_map(|upload| upload.parts.values()).map(|part| part.blob.clone()));
    let blobs = bucket.join("blobs");
    for entry in fs::read_dir(&blobs).map_err(|source| io_error("reading", &blobs, source))?.flatten() {
        if !entry.file_name().to_str().is_some_and(|name| named.contains(name)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let objects = objects.into_iter().map(|record| object(bucket, record)).collect();
    let uploads = uploads.into_iter().map(|record| upload(bucket, record)).collect();
    Ok((objects, uploads))
}

fn load_records<T: DeserializeOwned>(folder: &Path) -> Result<Vec<T>, ObjectStoreError> {
    let mut records = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| io_error("reading", folder, source))?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "new") {
            let _ = fs::remove_file(&path);
            continue;
        }
        let bytes = fs::read(&path).map_err(|source| io_error("reading", &path, source))?;
        let record = serde_json::from_slice(&bytes)
            .map_err(|source| ObjectStoreError::Damaged { file: path.clone(), source })?;
        records.push(record);
    }
    Ok(records)
}

fn object(bucket: &Path, record: ObjectRecord) -> Object {
    let segments: Vec<Segment> = record
        .segments
        .iter()
        .map(|(blob, size)| Segment { blob: Blob::existing(bucket, blob), size: *size })
        .collect();
    Object {
        key: record.key,
        size: segments.iter().map(|segment| segment.size).sum(),
        etag: record.etag,
        last_modified: record.last_modified,
        attributes: record.attributes,
        checksums: record.checksums,
        checksum_kind: record.checksum_kind,
        segments,
    }
}

fn upload(bucket: &Path, record: UploadRecord) -> Upload {
    let part = |part: PartRecord| Part {
        segment: Segment { blob: Blob::existing(bucket, &part.blob), size: part.size },
        etag: part.etag,
        last_modified: part.last_modified,
        checksums: part.checksums,
    };
    Upload {
        key: record.key,
        id: record.id,
        initiated: record.initiated,
        attributes: record.attributes,
        algorithm: record.algorithm,
        checksum_kind: record.checksum_kind,
        parts: record.parts.into_iter().map(|(number, record)| (number, part(record))).collect(),
    }
}

pub(super) fn io_error(doing: &str, path: &Path, source: io::Error) -> ObjectStoreError {
    ObjectStoreError::Io { doing: format!("{doing} {}", path.display()), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(bucket: &Path, content: &[u8]) -> Segment {
        let blob = Blob::new(bucket);
        fs::write(blob.path(), content).unwrap();
        blob.keep();
        Segment { blob, size: content.len() as u64 }
    }

    fn object(key: &str, segment: &Segment) -> Object {
        Object {
            key: key.to_owned(),
            size: segment.size,
            etag: "0".to_owned(),
            last_modified: OffsetDateTime::UNIX_EPOCH,
            attributes: Attributes::default(),
            checksums: Checksums::default(),
            checksum_kind: None,
            segments: vec![segment.clone()],
        }
    }

    fn upload(key: &str, segment: &Segment) -> Upload {
        let part = Part {
            segment: segment.clone(),
            etag: "0".to_owned(),
            last_modified: OffsetDateTime::UNIX_EPOCH,
            checksums: Checksums::default(),
        };
        Upload {
            key: key.to_owned(),
            id: "id".to_owned(),
            initiated: OffsetDateTime::UNIX_EPOCH,
            attributes: Attributes::default(),
            algorithm: None,
            checksum_kind: None,
            parts: BTreeMap::from([(1, part)]),
        }
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_a_crash_left_is_removed_and_what_was_published_stays() {
        let bucket = tempfile::tempdir().unwrap();
        let bucket = bucket.path();
        make_bucket(bucket).unwrap();
        let published = segment(bucket, b"published");
        write_object(bucket, &object("k", &published)).unwrap();
        let pending = segment(bucket, b"pending");
        write_upload(bucket, &upload("u", &pending)).unwrap();
        segment(bucket, b"nobody's");
        fs::write(bucket.join("records/half.new"), "{").unwrap();

        let (objects, uploads) = load_bucket(bucket).unwrap();
        assert_eq!(objects.iter().map(|object| object.key.as_str()).collect::<Vec<_>>(), ["k"]);
        assert_eq!(uploads.iter().map(|upload| upload.key.as_str()).collect::<Vec<_>>(), ["u"]);
        assert_eq!((names(&bucket.join("blobs")), names(&bucket.join("records"))), (2, 1));
        assert_eq!(fs::read(objects[0].segments[0].blob.path()).unwrap(), b"published");
    }

    #[test]
    fn an_upload_whose_object_was_published_before_the_crash_is_complete() {
        let bucket = tempfile::tempdir().unwrap();
        let bucket = bucket.path();
        make_bucket(bucket).unwrap();
        let shared = segment(bucket, b"part");
        write_upload(bucket, &upload("k", &shared)).unwrap();
        write_object(bucket, &object("k", &shared)).unwrap();

        let (objects, uploads) = load_bucket(bucket).unwrap();
        assert_eq!((objects.len(), uploads.len()), (1, 0));
        // Aborting it would have taken the object's bytes.
        assert_eq!(names(&bucket.join("uploads")), 0);
        assert_eq!(names(&bucket.join("blobs")), 1);
    }

    #[test]
    fn a_damaged_record_is_named() {
        let bucket = tempfile::tempdir().unwrap();
        make_bucket(bucket.path()).unwrap();
        fs::write(bucket.path().join("records/x.json"), "{").unwrap();
        let error = load_bucket(bucket.path()).unwrap_err().to_string();
        assert!(error.contains("records/x.json is damaged"), "{error}");
    }

    #[test]
    fn a_blob_goes_with_its_last_holder_unless_it_is_kept() {
        let bucket = tempfile::tempdir().unwrap();
        make_bucket(bucket.path()).unwrap();
        let segment = segment(bucket.path(), b"x");
        let (path, reader) = (segment.blob.path().to_owned(), segment.clone());
        segment.blob.discard();
        drop(segment);
        assert!(path.exists(), "somebody still reads it");
        drop(reader);
        assert!(!path.exists());
    }
}
