//! The committed description is the one that the code makes.

use test_support::{assert_errors_are_described_as_problems, assert_openapi_is_committed};

#[test]
fn the_committed_description_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    assert_openapi_is_committed(&document::openapi(), path);
}

#[test]
fn every_error_is_described_as_a_problem() {
    assert_errors_are_described_as_problems(&document::openapi());
}
