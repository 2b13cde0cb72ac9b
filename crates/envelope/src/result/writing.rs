//! Writing a result folder: what was recorded stays readable, whatever happens to the disk meanwhile.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::folder::{CAPSULE, FolderError, INTERVALS};
use super::{Capsule, Interval};

/// The capsule while it is not whole.
const DRAFT: &str = "capsule.json.part";
/// What is kept free for the capsule: several times what one takes.
const CAPSULE_ROOM_BYTES: usize = 32 * 1024;

/// Appends intervals while the run goes on; what was written is there after a crash, and whole after an error.
pub struct IntervalWriter {
    path: PathBuf,
    file: File,
    /// Length of the whole lines.
    whole_bytes: u64,
}

impl IntervalWriter {
    /// Begins the file of a new folder.
    pub fn create(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(INTERVALS);
        // Appending: after a line that was cut off, the next one is written where that one began.
        let file = File::options().append(true).create_new(true).open(&path);
        let file = file.map_err(|source| FolderError::Io { path: path.clone(), source })?;
        Ok(Self { path, file, whole_bytes: 0 })
    }

    /// Appends one line. Where that fails (the disk is full), nothing of it is left.
    pub fn append(&mut self, interval: &Interval) -> Result<(), FolderError> {
        let line = serde_json::to_vec(interval).map_err(io::Error::other);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            self.file.write_all(&line).map(|()| line.len() as u64)
        });
        match written {
            Ok(bytes) => {
                self.whole_bytes += bytes;
                Ok(())
            }
            Err(source) => {
                // If this fails as well, a reader still finds the broken line.
                let _ = self.file.set_len(self.whole_bytes);
                Err(FolderError::Io { path: self.path.clone(), source })
            }
        }
    }
}

/// Takes the room on disk that the capsule will need: a run whose record has filled the disk can then still say so.
pub fn reserve_capsule(folder: &Path) -> Result<(), FolderError> {
    let draft = folder.join(DRAFT);
    // Written, not only asked for: not every file system keeps what was asked for.
    let reserved = File::create(&draft).and_then(|mut file| {
        file.write_all(&vec![b' '; CAPSULE_ROOM_BYTES])?;
        file.sync_all()
    });
    reserved.map_err(|source| FolderError::Io { path: draft, source })
}

/// Copies what was recorded into another folder, where the capsule can still be written.
pub fn copy_intervals(from: &Path, to: &Path) -> Result<(), FolderError> {
    let path = from.join(INTERVALS);
    fs::copy(&path, to.join(INTERVALS)).map(drop).map_err(|source| FolderError::Io { path, source })
}

/// Writes the capsule, last and at once: a folder that has one is whole.
pub fn write_capsule(folder: &Path, capsule: &Capsule) -> Result<(), FolderError> {
    let (path, draft) = (folder.join(CAPSULE), folder.join(DRAFT));
    let failed = |source| FolderError::Io { path: path.clone(), source };
    let text = serde_json::to_string_pretty(capsule).map_err(|error| failed(error.into()))? + "\n";
    // Into the reserved blocks, where there are some.
    let mut file = File::options().write(true).create(true).truncate(false).open(&draft).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.set_len(text.len() as u64).map_err(failed)?;
    fs::rename(&draft, &path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::super::read_capsule;
    use super::*;

    fn capsule() -> Capsule {
        let capsule = serde_json::json!({
            "format": 1, "id": "x", "role": null, "started_at": "2026-11-30T21:00:00Z", "ended_at": "2026-11-30T21:04:00Z",
            "completion": "whole", "void": [], "warnings": [], "datum": "0.1.0",
            "driver": { "name": "native", "version": "0.1.0" }, "scenario": "smoke", "scenario_definition": {},
            "load": { "model": "open", "arrivals_per_second": 5.0 }, "seed": 1, "identities": 5, "dataset": null,
            "target": { "url": "http://127.0.0.1:8080", "stack": null }, "phases": [], "verified": {},
            "generator": { "cpu_seconds": 1.0, "peak_memory_bytes": null, "threads": 1 },
            "machine": { "kernel": "Linux", "cpu_model": "x", "cpus": 2, "memory_bytes": 1 }, "command": [],
        });
        serde_json::from_value(capsule).expect("a capsule")
    }

    #[test]
    fn a_capsule_is_written_into_the_room_that_was_reserved_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        reserve_capsule(folder.path()).expect("reserved");
        let reserved = fs::metadata(folder.path().join(DRAFT)).expect("there");
        assert!(reserved.blocks() * 512 >= CAPSULE_ROOM_BYTES as u64, "on disk, not only announced");
        write_capsule(folder.path(), &capsule()).expect("written");
        let path = folder.path().join(CAPSULE);
        assert_eq!(fs::metadata(&path).expect("there").ino(), reserved.ino());
        assert!(fs::read_to_string(&path).expect("text").ends_with("}\n"), "nothing of the reserve is left");
        assert_eq!(read_capsule(folder.path()).expect("read"), capsule());
        assert!(!folder.path().join(DRAFT).exists());
    }

    #[test]
    fn a_capsule_needs_no_reserve() {
        let folder = tempfile::tempdir().expect("a folder");
        write_capsule(folder.path(), &capsule()).expect("written");
        assert_eq!(read_capsule(folder.path()).expect("read"), capsule());
    }
}
