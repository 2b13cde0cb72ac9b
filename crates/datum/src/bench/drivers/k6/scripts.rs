//! The scripts, as they come with the program: no checkout is needed.

use std::fs;
use std::path::{Path, PathBuf};

use loadgen::scenario::Scenario;
use tempfile::TempDir;

use crate::bench::error::BenchError;

macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../../../../tests/load/k6/", $path)))),*]
    };
}

/// The scripts by their path in `tests/load/k6`.
const SCRIPTS: [(&str, &str); SCRIPT_COUNT] = embedded![
    "main.js",
    "summary.js",
    "lib/executors.js",
    "lib/failures.js",
    "lib/outcome.js",
    "lib/populated.js",
    "lib/random.js",
    "lib/requests.js",
    "lib/scenario.js",
    "lib/server_timing.js",
    "lib/settings.js",
    "lib/thresholds.js",
    "lib/users.js",
];
const SCRIPT_COUNT: usize = 13;

/// Writes the scripts and the scenario into a new temporary folder, which goes when it is dropped.
pub(super) fn unpack(scenario: &Scenario) -> Result<TempDir, BenchError> {
    let folder =
        tempfile::Builder::new().prefix("datum-k6-").tempdir().map_err(BenchError::io(std::env::temp_dir()))?;
    for (path, text) in SCRIPTS {
        write(&folder.path().join(path), text)?;
    }
    let text = serde_json::to_string_pretty(scenario).map_err(|error| BenchError::Program(error.to_string()))?;
    write(&scenario_in(&folder), &text)?;
    Ok(folder)
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    }
    fs::write(path, text).map_err(BenchError::io(path))
}

pub(super) fn main_in(folder: &TempDir) -> PathBuf {
    folder.path().join("main.js")
}

pub(super) fn scenario_in(folder: &TempDir) -> PathBuf {
    folder.path().join("scenario.json")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn files(folder: &Path, below: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(folder.join(below)).expect("a folder").map(|entry| entry.expect("an entry"));
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| Path::new(name).extension().is_some_and(|it| it == "js"))
            .map(|name| format!("{below}{name}"))
            .collect()
    }

    #[test]
    fn every_script_of_the_checkout_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/load/k6");
        let expected: BTreeSet<String> = files(&folder, "").into_iter().chain(files(&folder, "lib/")).collect();
        assert_eq!(SCRIPTS.map(|(path, _)| path.to_owned()).into_iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn what_is_unpacked_is_whole_and_goes() {
        let scenario = loadgen::scenario::open("baseline-mix").expect("a scenario");
        let folder = unpack(&scenario).expect("unpacked");
        assert!(main_in(&folder).is_file() && folder.path().join("lib/requests.js").is_file());
        let text = fs::read_to_string(scenario_in(&folder)).expect("text");
        assert_eq!(Scenario::parse(&text, "x").expect("a scenario"), scenario);
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
