//! The scenarios that come with the program, so that it needs no checkout.

use std::fs;
use std::path::Path;

use super::{Scenario, ScenarioError};

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../tests/load/scenarios/", $name, ".json")))),*]
    };
}

/// In the order in which one would run them.
const EMBEDDED: [(&str, &str); 10] = embedded![
    "smoke",
    "baseline-mix",
    "token-reuse",
    "login-only",
    "register-only",
    "get-user-only",
    "upload-only",
    "sls",
    "overload",
    "soak",
];

/// The names of the scenarios that come with the program.
pub fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Opens a scenario by its name, or a file by its path. What has a folder or ends in `.json` is a path.
pub fn open(name_or_path: &str) -> Result<Scenario, ScenarioError> {
    if let Some((name, text)) = EMBEDDED.iter().find(|(name, _)| *name == name_or_path) {
        return Scenario::parse(text, name);
    }
    let path = Path::new(name_or_path);
    let is_path = path.extension().is_some_and(|extension| extension == "json") || path.components().count() > 1;
    if !is_path {
        return Err(ScenarioError::Unknown { name: name_or_path.to_owned() });
    }
    let text = fs::read_to_string(path).map_err(|source| ScenarioError::Io { path: path.to_owned(), source })?;
    Scenario::parse(&text, name_or_path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::{Identities, Model};

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/load/scenarios");

    #[test]
    fn every_file_is_embedded_is_valid_and_has_its_own_name() {
        let files: BTreeSet<String> = fs::read_dir(FOLDER)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(files, names().map(str::to_owned).collect());
        for name in names() {
            assert_eq!(open(name).unwrap().name, name);
        }
    }

    #[test]
    fn a_file_is_opened_by_its_path() {
        assert_eq!(open(&format!("{FOLDER}/sls.json")).unwrap(), open("sls").unwrap());
        assert!(matches!(open("/nowhere/x.json"), Err(ScenarioError::Io { .. })));
        assert!(open("nothing").unwrap_err().to_string().contains("baseline-mix"));
    }

    #[test]
    fn the_baseline_is_the_reference_mix() {
        let baseline = open("baseline-mix").unwrap();
        let shares: Vec<_> = baseline.mix.iter().map(|it| (it.endpoint.name(), it.weight, it.bytes)).collect();
        let expected =
            [("get-user", 80, None), ("upload", 10, Some(32 * 1024)), ("login", 7, None), ("register", 3, None)];
        assert_eq!(shares, expected);
        let Model::Closed { vus: 200, vus_choices, think_time } = &baseline.model else { panic!("{baseline:?}") };
        assert_eq!(vus_choices, &[50, 100, 200, 300, 400]);
        assert!((think_time.mean_seconds - 0.82).abs() < 1e-12);
        assert_eq!(open("sls").unwrap().identities, Identities::Populated);
    }
}
