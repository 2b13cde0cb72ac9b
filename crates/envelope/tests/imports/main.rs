//! Reading results: k6's files as k6 wrote them, Datum's own folder, and files that are broken.

mod broken;
mod interrupted;
mod k6;
mod native;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;

/// A file that k6 wrote.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/k6").join(name)
}

/// The content of a fixture, unpacked.
fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(fixture(name)).expect("a fixture");
    GzDecoder::new(file).read_to_end(&mut bytes).expect("a gzipped fixture");
    bytes
}
