//! The delay that tests of measuring switch on.

use std::collections::BTreeMap;

use service_kit::stages::Stage;

use crate::harness::{Answer, Harness};

/// Long beside whatever else happens in a request of these.
const DELAY_MS: f64 = 400.0;

/// Milliseconds by name.
fn stages_of(answer: &Answer) -> BTreeMap<String, f64> {
    let header = answer.header("server-timing").expect("a header");
    let parse = |entry: &str| {
        let (name, duration) = entry.split_once(";dur=").expect("name;dur=milliseconds");
        (name.to_owned(), duration.parse().expect("a number"))
    };
    header.split(", ").map(parse).collect()
}

async fn stages_with(fault: &str, path: &str) -> BTreeMap<String, f64> {
    let fault = format!("{fault}:{DELAY_MS}ms");
    let harness = Harness::start(&[("FAULT_STAGE_DELAY", &fault), ("DATUM_ALLOW_FAULTS", "1")]).await;
    let answer = harness.exchange(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).await;
    assert_eq!(answer.status(), 200);
    stages_of(&answer)
}

#[tokio::test]
async fn a_delay_shows_in_its_stage_and_in_no_other() {
    for slow in Stage::ALL.map(Stage::name).into_iter().chain(["app"]) {
        let stages = stages_with(slow, "/every-stage").await;
        assert_eq!(stages.len(), Stage::ALL.len() + 2, "{stages:?}");
        for (name, ms) in &stages {
            let has_it = name == slow || name == "total";
            assert_eq!(*ms >= DELAY_MS, has_it, "{name} is {ms} ms with a delay in {slow}: {stages:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_does_not_run_the_stage_keeps_its_speed() {
    let stages = stages_with("s3", "/staged").await;
    assert!(stages["total"] < DELAY_MS && !stages.contains_key("s3"), "{stages:?}");
}

#[tokio::test]
async fn the_tasks_own_paths_keep_their_speed() {
    let stages = stages_with("app", "/live").await;
    assert!(stages["total"] < DELAY_MS, "{stages:?}");
}
