use std::fs;
use std::io::Write;
use std::path::Path;

use envelope::import::{ImportError, k6_intervals, read};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::{fixture, unpacked};

/// Reads `bytes` from a file.
fn read_bytes(bytes: &[u8]) -> Result<envelope::run::Run, ImportError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result");
    fs::write(&path, bytes).expect("a file");
    read(&path)
}

fn refusal(bytes: &[u8]) -> String {
    read_bytes(bytes).expect_err("a refusal").to_string()
}

#[test]
fn what_is_no_result_is_refused_with_what_was_looked_for() {
    for bytes in [&b""[..], b"hello\n", b"\x00\xff\xfe", b"<html></html>", b"[1, 2]"] {
        let error = refusal(bytes);
        assert!(error.contains("no result that can be read"), "{error}");
    }
    assert!(refusal(b"{\"a\": 1}").contains("neither `metrics` nor `results`"));
    assert!(read(Path::new("/nowhere/at/all")).unwrap_err().to_string().starts_with("/nowhere/at/all: "));
}

#[test]
fn errors_name_the_line() {
    let json = String::from_utf8(unpacked("foreign.json.gz")).unwrap();
    let lines: Vec<&str> = json.lines().collect();
    let cut = format!("{}\n{}\n{}", lines[..9].join("\n"), &lines[9][..lines[9].len() / 2], lines[10]);
    assert!(refusal(cut.as_bytes()).contains(", line 10: "), "{}", refusal(cut.as_bytes()));
    let point = r#"{"metric":"http_req_duration","type":"Point","data":{"time":"yesterday","value":1,"tags":{}}}"#;
    assert!(refusal(format!("{}\n{point}", lines[0]).as_bytes()).contains(", line 2: "));
    let valueless = r#"{"metric":"http_req_duration","type":"Point","data":{"time":"2026-11-30T21:25:00Z","tags":{}}}"#;
    assert!(refusal(valueless.as_bytes()).contains("line 1: a point without `time` or `value`"));

    let csv = String::from_utf8(unpacked("foreign.csv.gz")).unwrap();
    let rows: Vec<&str> = csv.lines().collect();
    let short = format!("{}\n{}\nhttp_reqs,1796073900\n{}", rows[0], rows[1], rows[2]);
    assert!(
        refusal(short.as_bytes()).contains("line 3: the row has 2 fields instead of 19"),
        "{}",
        refusal(short.as_bytes())
    );
    let wrong = format!("{}\n{}", rows[0], rows[2].replacen(rows[2].split(',').nth(2).unwrap(), "fast", 1));
    assert!(refusal(wrong.as_bytes()).contains("line 2: `fast` is no number"), "{}", refusal(wrong.as_bytes()));
    assert!(refusal(b"metric_name,timestamp\nvus,1").contains("no column `metric_value`"));

    let text = "http_reqs..: 10 1/s\nhttp_req_duration..: avg=fast\n";
    assert!(refusal(text.as_bytes()).contains("line 2: `avg=fast` is no figure"), "{}", refusal(text.as_bytes()));
    let summary = "{\n \"metrics\": {\n  \"http_reqs\": {\"count\": 1},\n  \"vus\": 7\n }\n}";
    assert!(refusal(summary.as_bytes()).contains("line 4: `vus` is no object"), "{}", refusal(summary.as_bytes()));
    assert!(refusal(b"{\n \"metrics\": {\n").contains(", line 3: "));
}

#[test]
fn a_file_without_requests_is_said_to_have_none() {
    assert!(refusal(b"{\"metrics\": {}}").contains("has no requests in it"));
    assert!(
        refusal(b"running (3m0s), 000/200 VUs, 10 complete and 0 interrupted iterations\n").contains("no requests")
    );
    let definition = br#"{"type":"Metric","data":{"name":"vus","type":"gauge"},"metric":"vus"}"#;
    assert!(refusal(definition).contains("no requests"), "{}", refusal(definition));
    assert!(refusal(b"metric_name,timestamp,metric_value\n").contains("no requests"));
}

/// A run of an hour whose disk was full at its end is worth reading, and worth nothing as a whole.
#[test]
fn samples_that_break_off_are_read_as_far_as_they_go_and_void_the_run() {
    for name in ["tagged.json.gz", "tagged.csv.gz"] {
        let whole = read_bytes(&fs::read(fixture(name)).unwrap()).unwrap();
        assert_eq!(whole.void, [""; 0]);
        let (packed, plain) = (fs::read(fixture(name)).unwrap(), unpacked(name));
        for cut in [&packed[..packed.len() * 9 / 10], &packed[..packed.len() - 4], &plain[..plain.len() * 9 / 10]] {
            let run = read_bytes(cut).unwrap();
            assert!(run.void[0].contains("truncated"), "{name}: {:?}", run.void);
            assert!(run.requests > 0 && run.requests <= whole.requests, "{name}: {}", run.requests);
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("cut"), cut).unwrap();
            let error = k6_intervals(&folder.path().join("cut"), |_| {}).unwrap_err().to_string();
            assert!(error.contains("is truncated"), "{error}");
        }
        let beginning = read_bytes(&packed[..200]).unwrap_err().to_string();
        assert!(beginning.contains("truncated"), "{name}: {beginning}");
    }
}

#[test]
fn totals_that_break_off_are_refused() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&fs::read(fixture("tagged-data.json")).unwrap()).unwrap();
    let packed = packed.finish().unwrap();
    assert!(read_bytes(&packed).is_ok());
    assert!(refusal(&packed[..packed.len() * 3 / 4]).contains("is truncated"));
}

/// Cuts and damages a file at places that follow from `at` and `byte`.
fn damaged(mut bytes: Vec<u8>, at: usize, byte: u8, cut: bool) -> Vec<u8> {
    let at = at % bytes.len();
    if cut {
        bytes.truncate(at);
    } else {
        bytes[at] = byte;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_never_a_panic(at in any::<usize>(), byte in any::<u8>(), cut in any::<bool>(), which in 0_usize..5) {
        let names = ["foreign-export.json", "tagged-data.json", "tagged-full.txt", "foreign-legacy.txt", "open.csv.gz"];
        let whole = fs::read(fixture(names[which])).unwrap();
        // Whatever comes out, figures are finite and belong together.
        if let Ok(run) = read_bytes(&damaged(whole, at, byte, cut)) {
            prop_assert!(run.throughput.is_none_or(f64::is_finite));
            prop_assert!(run.requests > 0);
        }
    }

    #[test]
    fn damaged_samples_are_never_a_panic(at in any::<usize>(), byte in any::<u8>(), cut in any::<bool>(), json in any::<bool>()) {
        let mut whole = unpacked(if json { "tagged.json.gz" } else { "tagged.csv.gz" });
        whole.truncate(60_000);
        if let Ok(run) = read_bytes(&damaged(whole, at, byte, cut)) {
            prop_assert!(run.throughput.is_some_and(f64::is_finite));
        }
    }

    #[test]
    fn garbage_is_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), head in 0_usize..5) {
        let heads = ["", "metric_name,timestamp,metric_value\n", "{\"metrics\":", "http_reqs....: ", "{\"metric\":\"vus\",\"type\":\"Point\",\"data\":"];
        let _ = read_bytes(&[heads[head].as_bytes(), &bytes].concat());
    }
}
