//! Folders of test servers: named after the process, so that a later one can remove what a killed one left.

use std::{
    path::{Path, PathBuf},
    sync::Once,
};

use nix::{errno::Errno, sys::signal::kill, unistd::Pid};

const PREFIX: &str = "datum-test-";

/// A new path for a server of this process, not made yet. The first call removes what dead processes left.
pub(crate) fn new(purpose: &str) -> PathBuf {
    static SWEEP: Once = Once::new();
    let parent = std::env::temp_dir();
    SWEEP.call_once(|| sweep(&parent));
    parent.join(format!("{PREFIX}{}-{purpose}-{:08x}", std::process::id(), rand::random::<u32>()))
}

fn sweep(parent: &Path) {
    let Ok(entries) = parent.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        let Some(owner) = owner.map(Pid::from_raw) else { continue };
        if kill(owner, None) == Err(Errno::ESRCH) {
            // Another test process may be removing it at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_processes_are_removed_and_those_of_living_ones_stay() {
        let parent = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = parent.path().join(format!("{PREFIX}{}-postgres-1", child.id()));
        child.wait().unwrap();
        let living = parent.path().join(format!("{PREFIX}{}-postgres-1", std::process::id()));
        let foreign = parent.path().join("something-else");
        for folder in [&dead, &living, &foreign] {
            std::fs::create_dir(folder).unwrap();
        }
        sweep(parent.path());
        assert!(!dead.exists());
        assert!(living.exists() && foreign.exists());
    }
}
