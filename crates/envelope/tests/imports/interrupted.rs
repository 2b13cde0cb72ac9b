//! Runs that their operator ended: what came before the measured phase is not taken for it, and the end is said once.

use envelope::import::read;
use envelope::report::{Options, build};
use envelope::result::{Capsule, Completion, IntervalWriter, Phase, PhaseKind, write_capsule};

use crate::native::{capsule, interval, phase};

/// Ended in its `seconds`th second; the reasons of the report's verdict, each `rule: sentence`.
fn ended(phases: Vec<Phase>, seconds: u32, identities: u64, void: &[&str]) -> (envelope::run::Run, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = IntervalWriter::create(folder.path()).expect("a new file");
    for second in 0..seconds {
        writer.append(&interval(second, 50, 20)).expect("a line");
    }
    let capsule = Capsule {
        completion: Completion::Interrupted,
        identities,
        void: void.iter().map(|reason| (*reason).to_owned()).collect(),
        verified: [("login".to_owned(), "ok".to_owned())].into(),
        ..capsule(phases)
    };
    write_capsule(folder.path(), &capsule).expect("a capsule");
    let run = read(folder.path()).expect("a run");
    let verdict = build(std::slice::from_ref(&run), &Options::default()).verdict;
    let reasons = verdict.reasons.iter().map(|reason| format!("{}: {}", reason.rule, reason.sentence));
    (run, reasons.collect())
}

const NOTHING: &str = "The run ended before anything was measured.";

#[test]
fn a_ramp_that_was_ended_is_not_presented_as_measured() {
    for (phases, seconds, identities) in [
        (vec![phase(PhaseKind::Ramp, 0, 5)], 5, 1),
        (vec![phase(PhaseKind::Ramp, 0, 5), phase(PhaseKind::WarmUp, 5, 8)], 8, 200),
        // In set-up.
        (vec![], 0, 0),
    ] {
        let (run, reasons) = ended(phases, seconds, identities, &[NOTHING]);
        assert_eq!((run.requests, run.seconds, run.throughput), (0, None, None));
        assert_eq!(run.series.len(), seconds as usize, "charts still show what there was");
        assert_eq!(reasons, [format!("driver-void: {NOTHING}")]);
        assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    }
}

#[test]
fn a_measured_phase_that_was_ended_stands_and_is_said_once() {
    let phases = vec![phase(PhaseKind::Ramp, 0, 5), phase(PhaseKind::Measure, 5, 35)];
    let (run, reasons) = ended(phases, 36, 200, &[]);
    assert!(run.seconds.is_some() && run.requests > 0);
    let said: Vec<_> = reasons.iter().filter(|reason| reason.contains("ended early")).collect();
    assert!(said.len() == 1 && said[0].starts_with("run-interrupted"), "{reasons:?}");
    assert!(!run.warnings.iter().any(|warning| warning.contains("early")), "{:?}", run.warnings);
}
