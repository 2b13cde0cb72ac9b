//! Opening what is to be read: regular files only.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a regular file for reading; links are followed.
///
/// A pipe would block until somebody writes, a device may never end, and both can be read only once where a report reads
/// twice. What stands at a path is looked at before it is opened, because opening alone can do something to a device, and
/// again afterwards, because it may have been exchanged; opening does not block (open(2), `O_NONBLOCK`).
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    refuse_others(&fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    refuse_others(&file.metadata()?)?;
    Ok(file)
}

fn refuse_others(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, and only regular files are read")))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("link")).unwrap();
        let refused = |name: &str| open_regular(&at(name)).unwrap_err().to_string();
        assert!(refused("pipe").contains("a pipe"));
        assert!(refused("socket").contains("a socket"));
        assert!(refused("link").contains("a device"));
        assert!(refused(".").contains("a folder"));

        fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("other")).unwrap();
        let mut text = String::new();
        open_regular(&at("other")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
