//! Buckets and their objects: an index in memory, each change of it first on the disk.
//!
//! The folder belongs to one server, so that the index is the truth while it runs. Changes of a bucket happen one at a
//! time; bodies are received before and read after, without the lock.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nix::fcntl::{Flock, FlockArg};
use s3s::{
    S3Error, S3ErrorCode, S3Result,
    dto::{ETag, ETagCondition},
    path::check_bucket_name,
    s3_error,
};
use service_kit::clock::SharedClock;

use super::{
    ObjectStoreError,
    disk::{self, Object, Upload, io_error},
};

/// All buckets.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
    pub(super) clock: SharedClock,
    buckets: Mutex<BTreeMap<String, Bucket>>,
    _lock: Flock<File>,
}

/// One bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    folder: PathBuf,
    pub(super) objects: BTreeMap<String, Arc<Object>>,
    /// By key, then id: the order in which S3 lists them.
    pub(super) uploads: BTreeMap<(String, String), Upload>,
}

/// What must hold for an object to be written.
#[derive(Debug, Default)]
pub(super) struct Precondition {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
}

impl Store {
    /// Opens the folder, which must not be in use, and makes the buckets that are missing.
    pub(super) fn open(root: &Path, clock: SharedClock, buckets: &[String]) -> Result<Arc<Self>, ObjectStoreError> {
        fs::create_dir_all(root).map_err(|source| io_error("creating", root, source))?;
        let lock = lock(root)?;
        let mut names: Vec<String> = fs::read_dir(root)
            .map_err(|source| io_error("reading", root, source))?
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| check_bucket_name(name))
            .collect();
        for name in buckets {
            if !check_bucket_name(name) {
                return Err(ObjectStoreError::BucketName { name: name.clone() });
            }
            names.push(name.clone());
        }
        let mut opened = BTreeMap::new();
        for name in names {
            if !opened.contains_key(&name) {
                opened.insert(name.clone(), Bucket::open(root.join(name))?);
            }
        }
        Ok(Arc::new(Self { root: root.to_owned(), clock, buckets: Mutex::new(opened), _lock: lock }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks something up.
    pub(super) fn read<T>(&self, bucket: &str, look: impl FnOnce(&Bucket) -> S3Result<T>) -> S3Result<T> {
        look(self.lock().get(bucket).ok_or_else(|| s3_error!(NoSuchBucket))?)
    }

    /// Changes something, on the disk first: in a thread that may block.
    pub(super) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        bucket: &str,
        change: impl FnOnce(&mut Bucket) -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        let (store, bucket) = (Arc::clone(self), bucket.to_owned());
        let changed = tokio::task::spawn_blocking(move || {
            change(store.lock().get_mut(&bucket).ok_or_else(|| s3_error!(NoSuchBucket))?)
        });
        changed.await.map_err(S3Error::internal_error)?
    }

    /// The names of all buckets.
    pub(super) fn buckets(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(super) fn create_bucket(&self, name: &str) -> S3Result<()> {
        let mut buckets = self.lock();
        if buckets.contains_key(name) {
            return Err(s3_error!(BucketAlreadyOwnedByYou));
        }
        let bucket = Bucket::open(self.root.join(name)).map_err(S3Error::internal_error)?;
        buckets.insert(name.to_owned(), bucket);
        Ok(())
    }
}

impl Bucket {
    fn open(folder: PathBuf) -> Result<Self, ObjectStoreError> {
        let (objects, uploads) = disk::load_bucket(&folder)?;
        Ok(Self {
            folder,
            objects: objects.into_iter().map(|object| (object.key.clone(), Arc::new(object))).collect(),
            uploads: uploads.into_iter().map(|upload| ((upload.key.clone(), upload.id.clone()), upload)).collect(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn object(&self, key: &str) -> S3Result<Arc<Object>> {
        self.objects.get(key).cloned().ok_or_else(|| s3_error!(NoSuchKey))
    }

    /// Makes an object visible, in place of an earlier one.
    pub(super) fn publish(&mut self, object: Object, precondition: &Precondition) -> S3Result<()> {
        let existing = self.objects.get(&object.key);
        precondition.check(existing.map(|object| object.etag.as_str()))?;
        disk::write_object(&self.folder, &object).map_err(S3Error::internal_error)?;
        object.segments.iter().for_each(|segment| segment.blob.keep());
        if let Some(replaced) = self.objects.insert(object.key.clone(), Arc::new(object)) {
            replaced.segments.iter().for_each(|segment| segment.blob.discard());
        }
        Ok(())
    }

    /// Removes an object; one that is not there is no error.
    pub(super) fn delete(&mut self, key: &str) -> S3Result<()> {
        let Some(object) = self.objects.get(key) else { return Ok(()) };
        disk::remove_object(&self.folder, key).map_err(S3Error::internal_error)?;
        object.segments.iter().for_each(|segment| segment.blob.discard());
        self.objects.remove(key);
        Ok(())
    }

    pub(super) fn upload(&self, key: &str, id: &str) -> S3Result<&Upload> {
        self.uploads.get(&(key.to_owned(), id.to_owned())).ok_or_else(|| s3_error!(NoSuchUpload))
    }

    /// Records an upload, new or with another part.
    pub(super) fn put_upload(&mut self, upload: Upload) -> S3Result<()> {
        disk::write_upload(&self.folder, &upload).map_err(S3Error::internal_error)?;
        self.uploads.insert((upload.key.clone(), upload.id.clone()), upload);
        Ok(())
    }

    /// Forgets an upload. Its parts stay where an object took them over, and go otherwise.
    pub(super) fn remove_upload(&mut self, key: &str, id: &str) -> S3Result<Upload> {
        self.upload(key, id)?;
        disk::remove_upload(&self.folder, id).map_err(S3Error::internal_error)?;
        self.uploads.remove(&(key.to_owned(), id.to_owned())).ok_or_else(|| s3_error!(NoSuchUpload))
    }
}

impl Precondition {
    fn check(&self, existing: Option<&str>) -> S3Result<()> {
        let same = |condition: &ETagCondition| match (condition, existing) {
            (_, None) => false,
            (ETagCondition::Any, Some(_)) => true,
            (ETagCondition::ETag(etag), Some(existing)) => etag.strong_cmp(&ETag::Strong(existing.to_owned())),
        };
        if self.if_match.is_some() && existing.is_none() {
            return Err(s3_error!(NoSuchKey));
        }
        let refused = self.if_match.as_ref().is_some_and(|condition| !same(condition))
            || self.if_none_match.as_ref().is_some_and(same);
        if refused { Err(S3ErrorCode::PreconditionFailed.into()) } else { Ok(()) }
    }
}

fn lock(root: &Path) -> Result<Flock<File>, ObjectStoreError> {
    let path = root.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|source| io_error("opening", &path, source))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|_| ObjectStoreError::FolderInUse { folder: root.to_owned() })
}
