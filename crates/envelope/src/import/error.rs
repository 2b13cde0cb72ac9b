//! Why a result cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use crate::result::FolderError;

/// Why a result cannot be read. The message names the file, and the line where there is one.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file system refused, or a compressed file is broken.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A result folder is not what it should be.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file is of a known kind and broken.
    #[error("{path}, line {line}: {reason}")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A file breaks off, and what is left of it is no result.
    #[error("{path} is truncated: it breaks off in the middle, and what is there does not stand for the whole run")]
    Truncated {
        /// Which file.
        path: PathBuf,
    },
    /// A file is none of the kinds that are known.
    #[error("{path} is no result that can be read: {reason}")]
    Unrecognised {
        /// Which file.
        path: PathBuf,
        /// What was looked for.
        reason: String,
    },
    /// A file is of a known kind and says nothing about requests.
    #[error("{path} has no requests in it: {reason}")]
    Empty {
        /// Which file.
        path: PathBuf,
        /// What was looked for.
        reason: String,
    },
}

impl ImportError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(super) fn malformed(path: &Path, line: u64, reason: &dyn std::fmt::Display) -> Self {
        Self::Malformed { path: path.to_owned(), line, reason: reason.to_string() }
    }
}
