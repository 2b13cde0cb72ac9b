//! What kind of result a path is, from what stands in it. Names say nothing: people rename files.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::error::ImportError;
use crate::result::file::open_regular;

pub(super) enum Form {
    Folder,
    K6Json,
    K6Csv,
    K6Summary,
    K6Text,
}

/// As much of a file as is looked at.
const HEAD_BYTES: u64 = 256 * 1024;

pub(super) fn recognise(path: &Path) -> Result<Form, ImportError> {
    if fs::metadata(path).map_err(|source| ImportError::io(path, source))?.is_dir() {
        return Ok(Form::Folder);
    }
    let mut head = Vec::new();
    // What a truncated file begins with says as well what it is.
    match open(path)?.take(HEAD_BYTES).read_to_end(&mut head) {
        Err(source) if source.kind() != io::ErrorKind::UnexpectedEof => return Err(ImportError::io(path, source)),
        _ => {}
    }
    let text = String::from_utf8_lossy(&head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let first_line = text.lines().next().unwrap_or_default();
    if first_line.starts_with("metric_name,") {
        return Ok(Form::K6Csv);
    }
    if text.starts_with('{') {
        return recognise_json(path, first_line);
    }
    if super::k6::text::looks_like(text) {
        return Ok(Form::K6Text);
    }
    let reason = "it is neither a result folder nor an output of k6 (json, csv, summary, end-of-test text)";
    Err(ImportError::Unrecognised { path: path.to_owned(), reason: reason.into() })
}

fn recognise_json(path: &Path, first_line: &str) -> Result<Form, ImportError> {
    // Points are one object a line, a summary is usually spread over many and otherwise has no `type` at its top.
    match serde_json::from_str::<Value>(first_line) {
        Ok(value) if value.get("type").is_some() && value.get("metric").is_some() => Ok(Form::K6Json),
        Ok(value) if value.get("metrics").is_some() || value.get("results").is_some() => Ok(Form::K6Summary),
        Ok(_) => {
            let reason = "it is JSON with neither `metrics` nor `results` in it";
            Err(ImportError::Unrecognised { path: path.to_owned(), reason: reason.into() })
        }
        // A point that was cut off in its first line is still a point.
        Err(_) if first_line.contains("\"metric\":") && first_line.contains("\"type\":\"") => Ok(Form::K6Json),
        Err(_) => Ok(Form::K6Summary),
    }
}

/// Opens a file, and unpacks it if its first bytes are gzip's (RFC 1952).
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, ImportError> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const BUFFER_BYTES: usize = 256 * 1024;
    let failed = |source| ImportError::io(path, source);
    let mut file = BufReader::with_capacity(BUFFER_BYTES, open_regular(path).map_err(failed)?);
    let packed = file.fill_buf().map_err(failed)?.starts_with(&GZIP);
    Ok(if packed {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

/// Reads a file that is small by its nature, whole and unpacked.
pub(super) fn read_small(path: &Path) -> Result<String, ImportError> {
    const MOST_BYTES: u64 = 64 * 1024 * 1024;
    let mut bytes = Vec::new();
    let read = open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => ImportError::Truncated { path: path.to_owned() },
        _ => ImportError::io(path, source),
    })?;
    if read as u64 > MOST_BYTES {
        let reason = format!("it is longer than a summary can be ({} MiB)", MOST_BYTES / 1024 / 1024);
        return Err(ImportError::Unrecognised { path: path.to_owned(), reason });
    }
    Ok(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned())
}
