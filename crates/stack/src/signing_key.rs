//! The signing key of a local stack: made once, kept in the state folder, given to every auth task.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use zeroize::Zeroizing;

/// Makes a new key as PEM: `auth::keys::generate_pem`. The stack knows no key formats.
pub type MakeKey = fn() -> anyhow::Result<Zeroizing<String>>;

/// Whether [`ensure`] found a key or made one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The file was there; tokens from before a restart stay valid.
    Existing,
    /// A new key was written.
    Made,
}

/// Makes `path` hold a signing key that only its owner can read. A key that is there is kept.
///
/// # Errors
/// No key can be made, or the file cannot be read or written.
pub fn ensure(path: &Path, make: MakeKey) -> io::Result<Found> {
    match File::open(path) {
        Ok(_) => return Ok(Found::Existing),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let pem = make().map_err(io::Error::other)?;
    // Written beside and renamed: a crash half-way must not leave half a key that every later start trips over.
    let partial = path.with_extension("partial");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&partial, path)?;
    Ok(Found::Made)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("signing.pem");
        assert_eq!(ensure(&path, || Ok(Zeroizing::new("first".into()))).expect("made"), Found::Made);
        assert_eq!(ensure(&path, || Ok(Zeroizing::new("second".into()))).expect("kept"), Found::Existing);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "first");
        assert_eq!(std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o600);
        assert!(!folder.path().join("signing.partial").exists());
    }

    #[test]
    fn without_a_key_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("signing.pem");
        ensure(&path, || anyhow::bail!("no randomness")).expect_err("no key");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a list").count(), 0);
    }
}
