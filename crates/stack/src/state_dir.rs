//! The state folder of a stack: who holds it, and where everything in it lies.
//!
//! ```text
//! .datum/  lock           held by the running stack, names its process
//!          stack.json     what runs, for `datum status`
//!          secrets.json   passwords and keys (0600)
//!          keys/          signing.pem (0600)
//!          postgres/      the database
//!          objects/       uploaded documents
//!          cognito/       users and keys of the Cognito double
//!          logs/          a file per task
//!          control.sock   where `datum restart` and `datum down` speak to the stack
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use crate::error::StackError;
use crate::options::Location;
use crate::postgres::{remove_data, superuser_url};
use crate::postgres_keeper::DATABASE;
use crate::registry;
use crate::service::TaskId;
use crate::status::{PostgresStatus, StackStatus};

/// A new database with its write-ahead log takes about 50 MiB; below this a start would end half-way.
const NEEDED_MIB: u64 = 256;
const POSTGRES: &str = "postgres";
const EPHEMERAL_PREFIX: &str = "datum-ephemeral-";
/// Asking whether a folder is held takes its lock for a moment: a start tries again before it believes that one runs.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// A state folder that this process holds until it is dropped.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    ephemeral: bool,
    _lock: File,
}

impl StateDir {
    /// Makes the folder where needed and takes its lock. Temporary folders of runs that ended without removing theirs are
    /// removed on the way.
    ///
    /// # Errors
    /// [`StackError::AlreadyRunning`], [`StackError::DiskFull`], or [`StackError::State`] when it cannot be written.
    pub fn open(location: &Location) -> Result<Self, StackError> {
        let state = match location {
            Location::Persistent(path) => {
                let path = std::path::absolute(path).map_err(|source| failed("find", path, source))?;
                make_folder(&path)?;
                let lock = take_lock(&path)?;
                Self { path, ephemeral: false, _lock: lock }
            }
            Location::Ephemeral => {
                let base = std::env::temp_dir();
                let registry = registry::lock().map_err(|source| failed("lock", &base, source))?;
                remove_dead_ephemeral(&base);
                let path = base.join(format!("{EPHEMERAL_PREFIX}{}", hex::encode(rand::random::<[u8; 6]>())));
                make_folder(&path)?;
                let lock = take_lock(&path)?;
                drop(registry);
                Self { path, ephemeral: true, _lock: lock }
            }
        };
        state.check_space(NEEDED_MIB)?;
        for (folder, mode) in [(state.keys(), 0o700), (state.objects(), 0o700), (state.logs(), 0o700)] {
            DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(&folder)
                .map_err(|source| failed("create", &folder, source))?;
        }
        Ok(state)
    }

    fn check_space(&self, needed_mib: u64) -> Result<(), StackError> {
        // A file system that cannot tell is not refused.
        let Ok(stat) = statvfs(&self.path) else { return Ok(()) };
        // The widths of these types differ between systems.
        #[allow(clippy::useless_conversion, reason = "u64 on Linux, u32 on macOS")]
        let free_mib = u64::from(stat.blocks_available()).saturating_mul(u64::from(stat.fragment_size())) >> 20;
        if free_mib >= needed_mib {
            return Ok(());
        }
        if self.ephemeral {
            let _ = remove_ephemeral(&self.path);
        }
        Err(StackError::DiskFull { path: self.path.clone(), free_mib, needed_mib })
    }

    /// The folder itself, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a temporary one.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral
    }

    /// Where PostgreSQL's data lies.
    #[must_use]
    pub fn postgres(&self) -> PathBuf {
        self.path.join(POSTGRES)
    }

    /// Where the object store's data lies.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// Where the Cognito double keeps its users and keys.
    #[must_use]
    pub fn cognito(&self) -> PathBuf {
        self.path.join("cognito")
    }

    /// Where the log files lie.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        logs(&self.path)
    }

    /// The log file of a task.
    #[must_use]
    pub fn log_file(&self, task: TaskId) -> PathBuf {
        log_file(&self.path, task)
    }

    fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    /// The signing key.
    #[must_use]
    pub fn signing_key(&self) -> PathBuf {
        self.keys().join("signing.pem")
    }

    /// Passwords and keys.
    #[must_use]
    pub fn secrets(&self) -> PathBuf {
        self.path.join("secrets.json")
    }

    /// Leaves the folder as the end of a run should: a temporary one is removed, another keeps its data.
    pub fn close(self) -> io::Result<()> {
        let _ = fs::remove_file(self.path.join("stack.json"));
        if !self.ephemeral {
            return Ok(());
        }
        // Under the lock of the registry, so that a start that looks for dead folders does not meet half of this one.
        let _registry = registry::lock();
        remove_ephemeral(&self.path)
    }
}

/// The folder of the log files in a state folder.
#[must_use]
pub fn logs(state_dir: &Path) -> PathBuf {
    state_dir.join("logs")
}

/// The log file of a task in a state folder.
#[must_use]
pub fn log_file(state_dir: &Path, task: TaskId) -> PathBuf {
    logs(state_dir).join(format!("{task}.log"))
}

/// Writes what runs, for other processes to read. The caller's process holds the folder.
///
/// # Errors
/// The file cannot be written.
pub fn write_status(state_dir: &Path, status: &StackStatus) -> io::Result<()> {
    let partial = state_dir.join("stack.partial");
    fs::write(&partial, serde_json::to_vec_pretty(status)?)?;
    fs::rename(&partial, state_dir.join("stack.json"))
}

/// What the stack that holds a folder wrote about itself.
#[must_use]
pub fn read_status(state_dir: &Path) -> Option<StackStatus> {
    serde_json::from_slice(&fs::read(state_dir.join("stack.json")).ok()?).ok()
}

/// An administrator's URL of a running stack's own database. Holds the password: not for logs. `None` where the stack uses a
/// database that was given to it.
///
/// # Errors
/// The password cannot be read.
pub fn database_url(state_dir: &Path, status: &StackStatus) -> io::Result<Option<String>> {
    let url = |server: &PostgresStatus| superuser_url(&state_dir.join(POSTGRES), server.port, DATABASE);
    status.postgres.as_ref().map(url).transpose()
}

/// Whether a running stack holds a folder.
#[must_use]
pub fn is_held(state_dir: &Path) -> bool {
    let Ok(file) = File::open(state_dir.join("lock")) else { return false };
    matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
}

/// The process that holds a folder.
#[must_use]
pub fn holder(state_dir: &Path) -> Option<u32> {
    if !is_held(state_dir) {
        return None;
    }
    fs::read_to_string(state_dir.join("lock")).ok()?.trim().parse().ok()
}

fn make_folder(path: &Path) -> Result<(), StackError> {
    // As root, PostgreSQL runs as another user, who must be able to pass through to the database's own folder.
    let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(path).map_err(|source| failed("create", path, source))
}

fn take_lock(folder: &Path) -> Result<File, StackError> {
    let path = folder.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|source| failed("write", &path, source))?;
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(fs::TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => std::thread::sleep(LOCK_RETRY),
            Err(fs::TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(StackError::AlreadyRunning { path: folder.to_owned(), pid });
            }
            Err(fs::TryLockError::Error(source)) => return Err(failed("lock", &path, source)),
        }
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .map_err(|source| failed("write", &path, source))?;
    Ok(file)
}

/// Removes temporary folders whose stack is dead, such as after `kill -9`. The caller holds the registry's lock.
fn remove_dead_ephemeral(base: &Path) {
    let Ok(folders) = fs::read_dir(base) else { return };
    for folder in folders.flatten() {
        let path = folder.path();
        let ours = folder.file_name().to_str().is_some_and(|name| name.starts_with(EPHEMERAL_PREFIX))
            && fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw());
        if ours && !is_held(&path) {
            // Its server may still be shutting down; then a later start removes it.
            let _ = remove_ephemeral(&path);
        }
    }
}

fn remove_ephemeral(path: &Path) -> io::Result<()> {
    remove_data(&path.join(POSTGRES))?;
    fs::remove_dir_all(path)
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> StackError {
    StackError::State { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persistent(path: &Path) -> Location {
        Location::Persistent(path.to_owned())
    }

    #[test]
    fn a_folder_is_held_by_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let first = StateDir::open(&persistent(&path)).expect("held");
        assert_eq!(holder(&path), Some(std::process::id()));
        let error = StateDir::open(&persistent(&path)).expect_err("held by another");
        assert!(
            matches!(&error, StackError::AlreadyRunning { pid: Some(pid), .. } if *pid == std::process::id()),
            "{error}"
        );
        drop(first);
        assert_eq!(holder(&path), None);
        StateDir::open(&persistent(&path)).expect("free again");
    }

    #[test]
    fn a_file_in_the_way_is_a_clear_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        fs::write(&path, "x").expect("written");
        let error = StateDir::open(&persistent(&path)).expect_err("refused");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.advice().is_some());
    }

    #[test]
    fn too_little_space_is_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDir::open(&persistent(&folder.path().join("state"))).expect("held");
        let error = state.check_space(u64::MAX).expect_err("no disk is that large");
        assert!(matches!(error, StackError::DiskFull { .. }));
        assert!(error.to_string().contains("MiB are free"), "{error}");
    }

    #[test]
    fn a_temporary_folder_is_removed_at_the_end_and_a_dead_one_by_the_next() {
        let base = tempfile::tempdir().expect("a folder");
        let alive = base.path().join(format!("{EPHEMERAL_PREFIX}alive"));
        let dead = base.path().join(format!("{EPHEMERAL_PREFIX}dead"));
        let other = base.path().join("somebody-elses");
        for path in [&alive, &dead, &other] {
            make_folder(path).expect("made");
        }
        let lock = take_lock(&alive).expect("held");
        drop(take_lock(&dead).expect("held"));
        remove_dead_ephemeral(base.path());
        assert!(alive.exists() && other.exists() && !dead.exists());
        drop(lock);

        let state = StateDir::open(&Location::Ephemeral).expect("held");
        let path = state.path().to_owned();
        assert!(state.signing_key().starts_with(&path) && path.exists());
        state.close().expect("removed");
        assert!(!path.exists());
    }

    #[test]
    fn only_the_owner_sees_what_is_inside() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDir::open(&persistent(&folder.path().join("state"))).expect("held");
        for path in [state.objects(), state.logs(), state.keys()] {
            assert_eq!(fs::metadata(&path).expect("metadata").permissions().mode() & 0o077, 0, "{}", path.display());
        }
        assert_eq!(fs::metadata(state.path()).expect("metadata").permissions().mode() & 0o066, 0);
    }
}
