//! Which results are meant, and what they hold.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use envelope::import;
use envelope::result::PhaseKind;
use envelope::run::Run;

/// What makes a folder a result.
const CAPSULE: &str = "capsule.json";

/// Reads every result of `paths`, or says in a sentence which cannot be read and why.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Run>, String> {
    let results: Vec<PathBuf> = paths.iter().map(|path| expand(path)).collect::<Result<Vec<_>, _>>()?.concat();
    // A run that is given twice would look like two that agree.
    let mut seen = BTreeSet::new();
    let results: Vec<PathBuf> =
        results.into_iter().filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone()))).collect();
    let runs: Vec<Vec<Run>> = results.iter().map(|path| read_one(path)).collect::<Result<_, _>>()?;
    Ok(runs.concat())
}

/// A result whose load changes while it is measured (1×, 2×, 3×, back) is as many runs as it has measured phases: nothing
/// is true of all of them together.
fn read_one(path: &Path) -> Result<Vec<Run>, String> {
    let run = import::read(path).map_err(|error| error.to_string())?;
    let phases = run.capsule.as_ref().map_or(&[][..], |capsule| &capsule.phases);
    if phases.iter().filter(|phase| phase.kind == PhaseKind::Measure).count() < 2 {
        return Ok(vec![run]);
    }
    let phases = import::read_phases(path).map_err(|error| error.to_string())?;
    // Each is a role of its own, so that none is merged with another.
    Ok(phases.into_iter().map(|run| Run { role: Some(run.label.clone()), ..run }).collect())
}

/// A folder of several results stands for all of them, in the order of their names, which begin with their time.
fn expand(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() || path.join(CAPSULE).exists() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut inside: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?.path();
        if entry.join(CAPSULE).exists() {
            inside.push(entry);
        }
    }
    inside.sort();
    // Without any, the reader says what a result looks like.
    Ok(if inside.is_empty() { vec![path.to_owned()] } else { inside })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_results_stands_for_them_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b", "a", "no-result"] {
            std::fs::create_dir(folder.path().join(name)).expect("made");
        }
        for name in ["b", "a"] {
            std::fs::write(folder.path().join(name).join(CAPSULE), "{}").expect("written");
        }
        let names = |path: &Path| -> Vec<String> {
            let found = expand(path).expect("readable");
            found.iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(folder.path()), ["a", "b"]);
        assert_eq!(names(&folder.path().join("b")), ["b"], "a result stands for itself");
        assert_eq!(names(&folder.path().join("no-result")), ["no-result"], "the reader refuses it");
        assert_eq!(names(&folder.path().join("missing")), ["missing"]);
    }
}
