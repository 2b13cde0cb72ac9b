//! Reading a result folder.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::file::open_regular;
use super::{Capsule, Interval};

pub(super) const CAPSULE: &str = "capsule.json";
pub(super) const INTERVALS: &str = "intervals.jsonl";

/// A capsule is some kilobytes; what is longer is something else.
const MOST_CAPSULE_BYTES: u64 = 16 * 1024 * 1024;

/// Why a result folder cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder has no capsule.
    #[error("{0} has no capsule.json: it is no result, or its run was killed before it ended")]
    NoCapsule(PathBuf),
    /// A file is not what it should be.
    #[error("{path}, line {line}: {reason}")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Written by another Datum.
    #[error("{path} has format {format}; this Datum reads format 1")]
    Format {
        /// Which file.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
}

/// The intervals of a folder, one at a time: an hour of them need not fit into memory.
pub struct Intervals {
    path: PathBuf,
    lines: io::Lines<BufReader<File>>,
    line: usize,
}

impl Iterator for Intervals {
    type Item = Result<Interval, FolderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = match self.lines.next()? {
            Ok(text) => text,
            Err(source) => return Some(Err(FolderError::Io { path: self.path.clone(), source })),
        };
        self.line += 1;
        Some(serde_json::from_str(&text).map_err(|error| FolderError::Malformed {
            path: self.path.clone(),
            line: self.line,
            reason: error.to_string(),
        }))
    }
}

/// Opens a folder's intervals.
pub fn read_intervals(folder: &Path) -> Result<Intervals, FolderError> {
    let path = folder.join(INTERVALS);
    let file = open_regular(&path).map_err(|source| FolderError::Io { path: path.clone(), source })?;
    Ok(Intervals { path, lines: BufReader::new(file).lines(), line: 0 })
}

/// Reads a folder's capsule.
pub fn read_capsule(folder: &Path) -> Result<Capsule, FolderError> {
    let path = folder.join(CAPSULE);
    let mut text = String::new();
    let read = open_regular(&path).and_then(|file| file.take(MOST_CAPSULE_BYTES).read_to_string(&mut text));
    read.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => FolderError::NoCapsule(folder.to_owned()),
        _ => FolderError::Io { path: path.clone(), source },
    })?;
    let malformed = |error: serde_json::Error| FolderError::Malformed {
        path: path.clone(),
        line: error.line(),
        reason: error.to_string(),
    };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(malformed)?;
    match value["format"].as_u64() {
        Some(1) => serde_json::from_value(value).map_err(malformed),
        Some(format) => Err(FolderError::Format { path: path.clone(), format }),
        None => Err(FolderError::Malformed { path: path.clone(), line: 1, reason: "it has no `format`".into() }),
    }
}
