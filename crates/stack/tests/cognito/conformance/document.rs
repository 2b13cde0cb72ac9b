//! `docs/cognito-conformance.md` says what the lists say.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::cases;
use super::differences::{Difference, MINISTACK, MOTO};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cognito-conformance.md");
/// Set, the test writes the table.
const UPDATE: &str = "UPDATE_CONFORMANCE";
const BEGIN: &str = "<!-- table: UPDATE_CONFORMANCE=1 cargo test -p stack --test cognito document -->\n";

fn table() -> String {
    let mut text = String::from(
        "| Case | Amazon Cognito, and the double | moto 5.2.5 | ministack 1.5.33 | AWS's page |\n|---|---|---|---|---|\n",
    );
    let of =
        |listed: &[Difference], name: &str| listed.iter().find(|it| it.case == name).map_or("same", |it| it.instead);
    for case in cases() {
        let (moto, ministack) = (of(&MOTO, case.name), of(&MINISTACK, case.name));
        let _ = writeln!(text, "| {} | {} | {moto} | {ministack} | {} |", case.name, case.aws, case.source);
    }
    text
}

#[test]
fn the_document_says_what_the_lists_say() {
    let text = std::fs::read_to_string(PATH).unwrap();
    let (before, found) = text.split_once(BEGIN).expect("the table's beginning");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(Path::new(PATH), format!("{before}{BEGIN}\n{}", table())).unwrap();
        return;
    }
    assert_eq!(found.trim(), table().trim(), "{BEGIN}rewrites it");
}

#[test]
fn every_difference_is_of_a_case_and_is_one() {
    let names: BTreeSet<&str> = cases().map(|case| case.name).collect();
    assert_eq!(names.len(), cases().count(), "two cases of one name");
    for difference in MOTO.iter().chain(&MINISTACK) {
        let case = cases().find(|case| case.name == difference.case);
        let case = case.unwrap_or_else(|| panic!("no case {}", difference.case));
        assert_ne!(case.aws, difference.instead, "{}", case.name);
    }
}
