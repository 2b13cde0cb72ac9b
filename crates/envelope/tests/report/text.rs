//! What the Markdown says of results that were written and read back.

use std::path::PathBuf;
use std::sync::OnceLock;

use envelope::import;
use envelope::report::document::Standing;
use envelope::report::{Document, Options, Reference, build, markdown};
use envelope::result::PoolSize;
use envelope::run::Run;

use crate::fixture::{Made, phase_4};

fn read(folders: &[PathBuf]) -> Vec<Run> {
    folders.iter().map(|folder| import::read(folder).unwrap()).collect()
}

/// The report of an experiment like the reference's; made once, for it takes a while.
pub(crate) fn phase_4_document() -> &'static Document {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    DOCUMENT.get_or_init(make_phase_4_document)
}

fn make_phase_4_document() -> Document {
    let folder = tempfile::tempdir().unwrap();
    let runs = read(&phase_4(folder.path()));
    let reference = Reference::of_runs(&runs);
    assert!(reference.is_some(), "the runs are of phase4, and the reference stands beside them");
    build(&runs, &Options { reference, ..Options::default() })
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

#[test]
fn an_experiment_like_the_references_is_described_and_its_limit_named() {
    let document = phase_4_document();
    assert_eq!(document.verdict.standing, Standing::Void);
    let text = markdown(document);
    assert_has(
        &text,
        &[
            "> **Verdict: VOID.** The throughput of these runs says nothing about what the system can carry.",
            "200 virtual users who think for 0.820 s on average cannot send more than 243.90 requests a second",
            "| Role | exploratory | exploratory | steady state | steady state | steady state |",
            "| Pool, min/max per task | 5/20 each | 5/14 each | 5/14 each | 5/14 each | 5/14 each |",
            "| CPU quota per task | 512 units (0.50 vCPU) each |",
            "| Reference: all runs | 5 | 209.18 | 189.32 | 222.35 | 15.75 | 17.61 | 7.5 % | 16 % |",
            "| Reference: all runs | 9 | 379,269 | 0.0024 % | 0.0041 % |",
            "| get-user | 502 | target_failed | the balancer | balancer | 5 |",
            "login is password hashing (hash):",
            "Run 1: CPU is saturated: auth-1 used 98 % of its 0.50 cores (with it at 100 % the system carries ",
            "Two task counts (1 and 2) identify no scaling law",
        ],
    );
    assert!(!text.contains("`closed-model-stall`"), "nothing stalled");
}

#[test]
fn the_reference_stands_beside_the_endpoints_that_count() {
    let text = markdown(phase_4_document());
    let login = text.lines().find(|line| line.starts_with("| login |") && line.contains("551 to 1,010"));
    assert!(login.is_some_and(|line| line.ends_with("| 551 to 1,010 | - | up to 6,000 | up to 7,300 |")), "{login:?}");
}

#[test]
fn a_second_without_answers_warns_that_the_model_hides_it() {
    let folder = tempfile::tempdir().unwrap();
    let stalled = Made {
        name: "stalled",
        role: "steady state",
        tasks: 2,
        pool: PoolSize { min: 5, max: 14 },
        congestion: 9.0,
        stalled: Some(20),
        failures: 0,
    };
    let runs = read(&[stalled.write(folder.path())]);
    let text = markdown(&build(&runs, &Options::default()));
    assert_has(&text, &["1 stall, the longest 1.00 s, the first at second 20", "(`closed-model-stall`)"]);
    assert_has(&text, &["**Warning:** The run stalled:"]);
}
