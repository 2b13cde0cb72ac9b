//! Which running system is meant.

use std::path::{Path, PathBuf};

use stack::{registry, shell, state_dir};

use crate::cli::{DEFAULT_STATE_DIR, WhichArgs};

/// A running system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) state_dir: PathBuf,
    pub(super) pid: u32,
}

/// Why there is no system that is meant; displayed, a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotFound {
    /// None runs: whoever wants it stopped has what he wants.
    #[error("{0}")]
    Nothing(String),
    /// Several run, or they cannot be looked for.
    #[error("{0}")]
    Unclear(String),
}

/// Finds the one that is meant.
pub(super) fn running(which: &WhichArgs) -> Result<Running, NotFound> {
    if let Some(port) = which.port {
        let all = all()?;
        let found = all.into_iter().find(|entry| entry.port == port).map(from_entry);
        return found.ok_or_else(|| NotFound::Nothing(format!("nothing runs on port {port}")));
    }
    if let Some(folder) = &which.state_dir {
        return in_folder(folder).ok_or_else(|| NotFound::Nothing(format!("nothing runs in {}", folder.display())));
    }
    if let Some(found) = in_folder(Path::new(DEFAULT_STATE_DIR)) {
        return Ok(found);
    }
    only_one(all()?)
}

fn all() -> Result<Vec<registry::Entry>, NotFound> {
    registry::running().map_err(|error| NotFound::Unclear(format!("cannot list the systems that run: {error}")))
}

fn only_one(mut entries: Vec<registry::Entry>) -> Result<Running, NotFound> {
    match entries.len() {
        0 => Err(NotFound::Nothing("nothing runs".to_owned())),
        1 => Ok(from_entry(entries.remove(0))),
        _ => {
            let list: Vec<String> =
                entries.iter().map(|it| format!("  --port {}  ({})", it.port, shell::quoted(&it.state_dir))).collect();
            Err(NotFound::Unclear(format!("several systems run; choose one:\n{}", list.join("\n"))))
        }
    }
}

fn in_folder(folder: &Path) -> Option<Running> {
    let state_dir = std::path::absolute(folder).ok()?;
    let pid = state_dir::holder(&state_dir)?;
    Some(Running { state_dir, pid })
}

fn from_entry(entry: registry::Entry) -> Running {
    Running { state_dir: entry.state_dir, pid: entry.pid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_one_is_meant_and_of_several_none() {
        let entry = |port| registry::Entry { port, pid: 1, state_dir: format!("/state/{port}").into() };
        assert_eq!(only_one(vec![]), Err(NotFound::Nothing("nothing runs".to_owned())));
        assert_eq!(only_one(vec![entry(1)]).map(|it| it.state_dir), Ok("/state/1".into()));
        let error = only_one(vec![entry(1), entry(2)]).expect_err("several");
        let NotFound::Unclear(error) = error else { panic!("{error:?}") };
        assert!(error.contains("--port 1  (/state/1)") && error.contains("--port 2"), "{error}");
    }

    #[test]
    fn a_folder_that_is_not_held_has_nothing_running() {
        let folder = tempfile::tempdir().expect("a folder");
        let which = WhichArgs { state_dir: Some(folder.path().to_owned()), port: None };
        assert!(running(&which).expect_err("nothing").to_string().starts_with("nothing runs in "));
    }
}
