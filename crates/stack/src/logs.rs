//! The log file of a task: written by the task itself, bounded and read by the stack.
//!
//! A task's output goes straight into its file, not through a pipe of the stack: it costs the balancer's process nothing
//! under load, a slow terminal cannot stop a task, and the last words of a task that outlives the stack are kept.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that grew beyond this is moved aside; with the one kept before it, a task's logs take at most twice as much.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// What one look at a file reads at most, so that a burst does not fill the memory.
const CHUNK_BYTES: u64 = 1024 * 1024;
/// The longest line that is waited for; a longer one is shown in parts.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// How far from the end of a file its last lines are looked for.
const TAIL_BYTES: u64 = 256 * 1024;

/// Opens a log file for a task to append to.
///
/// # Errors
/// It cannot be created.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Where the older half of a log is kept: `auth-1.log` becomes `auth-1.old.log`.
#[must_use]
pub fn old_file(path: &Path) -> PathBuf {
    path.with_extension("old.log")
}

/// Moves the content of a file that is longer than `max_bytes` aside.
///
/// The task keeps its descriptor, so the content is copied and the file emptied; because the descriptor appends, the next
/// line goes to the new beginning. Lines that are written between the two are lost: at 16 MiB a turn, a price for writing
/// without a middleman.
///
/// # Errors
/// The copy cannot be written; nothing is emptied then.
pub fn rotate(path: &Path, max_bytes: u64) -> io::Result<bool> {
    if length(path) <= max_bytes {
        return Ok(false);
    }
    fs::copy(path, old_file(path))?;
    OpenOptions::new().write(true).open(path)?.set_len(0)?;
    Ok(true)
}

/// The length of a file in bytes; 0 when there is none.
#[must_use]
pub fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The last lines of a file, at most `lines`.
///
/// # Errors
/// It cannot be read.
pub fn tail(path: &Path, lines: usize) -> io::Result<Vec<String>> {
    last_lines(path, length(path).saturating_sub(TAIL_BYTES), lines)
}

/// The last lines among those written since the file had `offset` bytes, as one text: a process's last words.
#[must_use]
pub fn last_words(path: &Path, offset: u64, lines: usize) -> String {
    // Shorter than before: it was rotated meanwhile, and all that is in it is new.
    let offset = if length(path) < offset { 0 } else { offset };
    let from = offset.max(length(path).saturating_sub(TAIL_BYTES));
    last_lines(path, from, lines).unwrap_or_default().join("\n")
}

fn last_lines(path: &Path, from: u64, lines: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut last: VecDeque<String> = VecDeque::new();
    for line in text.lines() {
        if last.len() == lines {
            last.pop_front();
        }
        last.push_back(line.to_owned());
    }
    Ok(last.into())
}

/// Reads the lines that a file grows by.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    offset: u64,
    partial: Vec<u8>,
}

impl Follower {
    /// Follows a file from its present end. It need not exist yet.
    #[must_use]
    pub fn from_end(path: PathBuf) -> Self {
        let offset = length(&path);
        Self { path, offset, partial: Vec::new() }
    }

    /// The whole lines written since the last call.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn lines(&mut self) -> io::Result<Vec<String>> {
        let length = length(&self.path);
        if length < self.offset {
            // Rotated: what is in it now is new.
            self.offset = 0;
            self.partial.clear();
        }
        if length == self.offset {
            return Ok(Vec::new());
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let read = file.take(CHUNK_BYTES).read_to_end(&mut self.partial)?;
        self.offset += read as u64;
        Ok(self.whole_lines())
    }

    fn whole_lines(&mut self) -> Vec<String> {
        let mut end = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        if end == 0 && self.partial.len() > MAX_LINE_BYTES {
            end = self.partial.len();
        }
        let whole: Vec<u8> = self.partial.drain(..end).collect();
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("auth-1.log");
        (folder, path)
    }

    #[test]
    fn a_writer_goes_on_after_its_file_was_moved_aside() {
        let (_folder, path) = file();
        let mut writer = open(&path).expect("opened");
        writer.write_all(b"first\n").expect("written");
        assert!(!rotate(&path, 6).expect("short enough"));
        writer.write_all(b"second\n").expect("written");
        assert!(rotate(&path, 6).expect("moved"));
        writer.write_all(b"third\n").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("text"), "third\n");
        assert_eq!(fs::read_to_string(old_file(&path)).expect("text"), "first\nsecond\n");
    }

    #[test]
    fn a_follower_sees_whole_lines_once_and_survives_a_rotation() {
        let (_folder, path) = file();
        let mut writer = open(&path).expect("opened");
        writer.write_all(b"before\n").expect("written");
        let mut follower = Follower::from_end(path.clone());
        assert_eq!(follower.lines().expect("read"), Vec::<String>::new());
        writer.write_all(b"one\ntw").expect("written");
        assert_eq!(follower.lines().expect("read"), ["one"]);
        writer.write_all(b"o\n").expect("written");
        assert_eq!(follower.lines().expect("read"), ["two"]);
        rotate(&path, 1).expect("moved");
        writer.write_all(b"three\n").expect("written");
        assert_eq!(follower.lines().expect("read"), ["three"]);
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_for_ever() {
        let (_folder, path) = file();
        let mut follower = Follower::from_end(path.clone());
        open(&path).expect("opened").write_all(&vec![b'x'; MAX_LINE_BYTES + 1]).expect("written");
        assert_eq!(follower.lines().expect("read").len(), 1);
    }

    #[test]
    fn last_words_are_those_of_the_last_process_only() {
        let (_folder, path) = file();
        let mut writer = open(&path).expect("opened");
        writer.write_all(b"old process\n").expect("written");
        let offset = length(&path);
        writer.write_all(b"a\nb\nc\n").expect("written");
        assert_eq!(last_words(&path, offset, 2), "b\nc");
        assert_eq!(last_words(&path, offset, 20), "a\nb\nc");
        assert_eq!(tail(&path, 4).expect("read"), ["old process", "a", "b", "c"]);
        assert_eq!(last_words(&path.with_extension("none"), 0, 20), "");
    }
}
