//! The stacks that run on this machine for this user, so that `datum down --port 8080` finds one from any folder.
//!
//! One small file a stack in a folder that only the user can enter. A file counts only while the lock of the state folder
//! that it names is held: nothing here can go stale, whatever way a stack ends.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use crate::state_dir;

/// A stack that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The balancer's port.
    pub port: u16,
    /// The process that runs the stack.
    pub pid: u32,
    /// Its state folder, absolute.
    pub state_dir: PathBuf,
}

/// The user's folder for what lives no longer than a process: `$XDG_RUNTIME_DIR/datum`, else one in the temporary folder.
///
/// # Errors
/// It cannot be made, or it belongs to somebody else.
pub fn runtime_folder() -> io::Result<PathBuf> {
    let base =
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir());
    let folder = match base {
        Some(base) => base.join("datum"),
        None => std::env::temp_dir().join(format!("datum-{}", geteuid())),
    };
    private_folder(&folder)?;
    Ok(folder)
}

/// Makes a folder that only this user can enter. In a shared temporary folder somebody else could have made it before.
fn private_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs::symlink_metadata(path)?;
    let closed_to_others = metadata.mode().trailing_zeros() >= 6;
    if metadata.is_dir() && metadata.uid() == geteuid().as_raw() && closed_to_others {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} belongs to somebody else", path.display())))
}

/// Held while the list of ephemeral folders is changed or searched, so that none is taken for a dead one while it is made.
///
/// # Errors
/// The lock file cannot be opened.
pub fn lock() -> io::Result<File> {
    let path = runtime_folder()?.join("registry.lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    file.lock()?;
    Ok(file)
}

/// The registered presence of a stack; ends when it is dropped.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
}

/// Registers a stack.
///
/// # Errors
/// The file cannot be written.
pub fn register(entry: &Entry) -> io::Result<Registration> {
    register_in(&runtime_folder()?, entry)
}

fn register_in(folder: &Path, entry: &Entry) -> io::Result<Registration> {
    let path = folder.join(format!("{}.json", entry.port));
    let partial = folder.join(format!("{}.{}.partial", entry.port, entry.pid));
    fs::write(&partial, serde_json::to_vec(entry)?)?;
    fs::rename(&partial, &path)?;
    Ok(Registration { path })
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Every stack of this user that runs now, by port. Entries of dead ones are removed.
///
/// # Errors
/// The runtime folder cannot be read.
pub fn running() -> io::Result<Vec<Entry>> {
    running_in(&runtime_folder()?)
}

fn running_in(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir(folder)?.flatten() {
        let path = file.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let Some(entry) = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Entry>(&text).ok()) else {
            continue;
        };
        if state_dir::is_held(&entry.state_dir) {
            entries.push(entry);
        } else {
            let _ = fs::remove_file(&path);
        }
    }
    entries.sort_by_key(|entry| entry.port);
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Location;
    use crate::state_dir::StateDir;

    #[test]
    fn a_stack_is_listed_while_its_folder_is_held() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDir::open(&Location::Persistent(folder.path().join("state"))).expect("held");
        let entry = Entry { port: 4711, pid: 1, state_dir: state.path().to_owned() };
        let dead = Entry { port: 4712, pid: 2, state_dir: folder.path().join("gone") };
        let registration = register_in(folder.path(), &entry).expect("registered");
        let forgotten = register_in(folder.path(), &dead).expect("registered");
        std::mem::forget(forgotten);

        assert_eq!(running_in(folder.path()).expect("a list"), [entry]);
        assert!(!folder.path().join("4712.json").exists(), "the entry of a dead stack stays");
        drop(registration);
        assert_eq!(running_in(folder.path()).expect("a list"), []);
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runtime");
        private_folder(&path).expect("made");
        private_folder(&path).expect("kept");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("opened");
        assert_eq!(private_folder(&path).expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
    }
}
