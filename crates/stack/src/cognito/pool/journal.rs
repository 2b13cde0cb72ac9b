//! Users and revocations on disk, so that they survive a restart: a file of JSON lines, appended to.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::user::Record;

const KEYS: &str = "keys.json";
const JOURNAL: &str = "users.jsonl";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A user as they are now.
    User(Record),
    /// A session that was ended.
    Revoked(Uuid),
}

/// Appends what has changed. Nothing is synced to the disk: it survives a `kill -9`, not a power failure.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Option<Mutex<File>>,
}

impl Journal {
    /// One that keeps nothing.
    pub(crate) const fn none() -> Self {
        Self { file: None }
    }

    /// Reads what is in `folder`, which is made when it is missing.
    pub(crate) fn open(folder: &Path, mut each: impl FnMut(Entry)) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(JOURNAL);
        let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
        for line in BufReader::new(&file).lines() {
            // The last line of a run that was killed may be cut short; everything before it is whole.
            if let Ok(entry) = serde_json::from_str(&line?) {
                each(entry);
            }
        }
        // After a line that was cut short, the next one must begin on its own.
        let mut file = file;
        file.write_all(b"\n")?;
        Ok(Self { file: Some(Mutex::new(file)) })
    }

    pub(crate) fn append(&self, entries: impl IntoIterator<Item = Entry>) {
        let Some(file) = &self.file else { return };
        let mut text = Vec::new();
        for entry in entries {
            if serde_json::to_writer(&mut text, &entry).is_ok() {
                text.push(b'\n');
            }
        }
        if let Err(error) = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text) {
            tracing::warn!(%error, "the Cognito double cannot write down its users");
        }
    }
}

/// The keys in `folder`: those that are there, else those that `make` makes.
pub(crate) fn keys<T>(
    folder: &Path,
    read: impl Fn(&[u8]) -> anyhow::Result<T>,
    make: impl FnOnce() -> anyhow::Result<(T, Vec<u8>)>,
) -> anyhow::Result<T> {
    std::fs::create_dir_all(folder)?;
    let path: PathBuf = folder.join(KEYS);
    match std::fs::read(&path) {
        Ok(text) => read(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (keys, text) = make()?;
            let partial = path.with_extension("partial");
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&partial, &path)?;
            Ok(keys)
        }
        Err(error) => Err(error.into()),
    }
}
