//! Whether the runs may be believed at all.

use super::{Rule, capitalised, void, warning};
use crate::analysis;
use crate::report::document::SectionKind;
use crate::report::facts::Facts;
use crate::report::format;
use crate::result::{Completion, Load};
use crate::run::Run;

pub(super) const DRIVER_VOID: Rule = Rule {
    id: "driver-void",
    about: "What the driver noted as a reason for which the run says nothing about the target: it was late, its CPU was \
            busy, or it had too few virtual users.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        if facts.capacities.is_empty() {
            return by_sentence(facts, |run| &run.void).into_iter().map(void).collect();
        }
        // A search repeats what says nothing, and counts it as nothing; each trial has its reason in the search's table.
        let trials = facts.runs.iter().filter(|run| !run.void.is_empty()).count();
        let sentence = || {
            warning(format!(
                "{} of {} trials say nothing and count for nothing; their reasons are in the tables of the search.",
                trials,
                facts.runs.len()
            ))
        };
        (trials > 0).then(sentence).into_iter().collect()
    },
};

pub(super) const SINGLE_IDENTITY: Rule = Rule {
    id: "single-identity",
    about: "A run in which one identity served more than one virtual user: row locks, caches, throttling and token reuse of \
            a single user are measured instead of the system.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        // Where nothing was measured, few had begun; that it says nothing is said already.
        let shared = |run: &Run| {
            let identities = run.capsule.as_ref().map(|capsule| capsule.identities);
            // A driver that noticed has said so.
            let is_said = run.void.iter().any(|reason| reason.contains(analysis::AS_ONE_PERSON));
            let is_one = identities.is_some_and(|identities| identities <= 1);
            is_one && has_many_users(run) && run.seconds.is_some() && !is_said
        };
        let sentence =
            |names: String| void(format!("{} had a single identity for all virtual users: void.", capitalised(&names)));
        facts.names_of(shared).map(sentence).into_iter().collect()
    },
};

fn has_many_users(run: &Run) -> bool {
    match run.load {
        Some(Load::Closed { vus, .. }) => vus > 1,
        Some(Load::Open { .. }) => true,
        None => false,
    }
}

pub(super) const NOT_VERIFIED: Rule = Rule {
    id: "not-verified",
    about: "The checks of correctness before the load: a fast wrong answer is no performance.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names() {
            let Some(capsule) = &run.capsule else { continue };
            let wrong = capsule.verified.iter().filter(|(_, outcome)| *outcome != "ok");
            for (check, outcome) in wrong {
                said.push(void(format!("In {name} the check {check} failed before the load: {outcome}.")));
            }
        }
        let unchecked = |run: &Run| run.capsule.as_ref().is_some_and(|capsule| capsule.verified.is_empty());
        said.extend(facts.names_of(unchecked).map(|names| {
            warning(format!("{} did not verify the target's answers before the load.", capitalised(&names)))
        }));
        said
    },
};

pub(super) const RUN_FAILED: Rule = Rule {
    id: "run-failed",
    about: "A run whose target or driver broke before its end.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        let failed = |run: &Run| completion(run) == Some(Completion::Failed);
        let sentence = |names: String| void(format!("{} broke before the end: void.", capitalised(&names)));
        facts.names_of(failed).map(sentence).into_iter().collect()
    },
};

pub(super) const MOSTLY_BROKEN: Rule = Rule {
    id: "mostly-broken",
    about: "A run without requests, or with half of them failed in another way than being shed on purpose: its throughput is \
            of failures, and its latencies are of the few that happened to succeed.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names() {
            let broken = analysis::broken(&run.failures);
            // A driver that noticed has said so, with its own reason.
            let is_said = |sentence: &str| run.void.iter().any(|reason| reason.contains(sentence));
            if run.requests == 0 && !run.void.is_empty() || is_said(analysis::NO_STATEMENT) {
                continue;
            }
            if run.requests == 0 {
                said.push(void(format!("{} has no request in what was measured: void.", capitalised(name))));
            } else if analysis::is_mostly_broken(run) {
                said.push(void(format!(
                    "In {name} {} of {} requests failed, other than being shed: {}.",
                    format::count(broken),
                    format::count(run.requests),
                    analysis::NO_STATEMENT,
                )));
            }
        }
        said
    },
};

pub(super) const RUN_INTERRUPTED: Rule = Rule {
    id: "run-interrupted",
    about: "A run that the operator ended early: what was measured until then stands.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names() {
            // Before anything was measured: then it is void, and that is why.
            if completion(run) == Some(Completion::Interrupted) && run.seconds.is_some() {
                let seconds = run
                    .seconds
                    .map_or_else(String::new, |seconds| format!(" after {} of measuring", format::seconds(seconds)));
                said.push(warning(format!(
                    "{} was ended early{seconds}; what was measured until then stands.",
                    capitalised(name)
                )));
            }
        }
        said
    },
};

fn completion(run: &Run) -> Option<Completion> {
    run.capsule.as_ref().map(|capsule| capsule.completion)
}

pub(super) const RUN_WARNING: Rule = Rule {
    id: "run-warning",
    about: "What the driver or the reader of a result file noted beside the figures.",
    section: SectionKind::Provenance,
    evaluate: |facts| by_sentence(facts, |run| &run.warnings).into_iter().map(warning).collect(),
};

/// Sentences of runs, each once, with the names of the runs that have it.
fn by_sentence(facts: &Facts<'_>, of: fn(&Run) -> &Vec<String>) -> Vec<String> {
    let mut sentences: Vec<&String> = Vec::new();
    for sentence in facts.runs.iter().flat_map(of) {
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    let with_names = |sentence: &String| {
        if facts.runs.len() == 1 {
            return finished(sentence);
        }
        let names = facts.names_of(|run| of(run).contains(sentence)).unwrap_or_default();
        format!("{}: {}", capitalised(&names), finished(sentence))
    };
    sentences.into_iter().map(with_names).collect()
}

/// With a full stop at its end.
fn finished(sentence: &str) -> String {
    let sentence = sentence.trim();
    if sentence.ends_with(['.', '!', '?']) { sentence.to_owned() } else { format!("{sentence}.") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{said, said_with};
    use super::*;
    use crate::report::document::Severity;
    use crate::report::testing;

    #[test]
    fn reasons_of_the_driver_are_said_once_with_the_runs_that_have_them() {
        let late = |label: &str| Run { void: vec!["the driver was late".into()], ..testing::run(label, []) };
        assert_eq!(
            said(&DRIVER_VOID, &[late("a"), testing::run("b", []), late("c")]),
            [(Severity::Void, "a and c: the driver was late.".to_owned())]
        );
        assert_eq!(said(&DRIVER_VOID, &[testing::run("b", [])]), []);
    }

    #[test]
    fn a_run_that_mostly_failed_is_said_to_have_once() {
        let failures = vec![testing::failure(Some(500), "internal", crate::result::Answerer::Task, 60)];
        let broken = Run { requests: 100, failures, ..testing::run("a", []) };
        let sentences = said(&MOSTLY_BROKEN, std::slice::from_ref(&broken));
        assert!(sentences[0].1.starts_with("In the run 60 of 100 requests failed"), "{sentences:?}");
        let void = vec![analysis::mostly_broken(60, 100).unwrap()];
        let noticed = [Run { void, ..broken }];
        assert_eq!(said(&MOSTLY_BROKEN, &noticed), [], "the driver has said it");
        let reasons = crate::report::build(&noticed, &crate::report::Options::default()).verdict.reasons;
        let about = reasons.iter().filter(|reason| reason.sentence.contains("60 of 100 requests failed"));
        assert_eq!(about.count(), 1, "{reasons:?}");
        let empty = testing::run("a", []);
        assert_eq!(said(&MOSTLY_BROKEN, std::slice::from_ref(&empty)).len(), 1);
        let void = vec!["No request ended within the measured phase.".to_owned()];
        assert_eq!(said(&MOSTLY_BROKEN, &[Run { void, ..empty }]), []);
    }

    #[test]
    fn a_run_that_was_ended_early_is_said_to_be_once() {
        let mut capsule = testing::capsule(10);
        capsule.completion = Completion::Interrupted;
        let run = Run { capsule: Some(capsule), ..testing::run("a", []) };
        let all = [said(&RUN_INTERRUPTED, std::slice::from_ref(&run)), said(&RUN_WARNING, &[run])].concat();
        assert_eq!(all.len(), 1, "{all:?}");
    }

    #[test]
    fn a_trial_that_says_nothing_does_not_void_the_search() {
        let outcome = analysis::CapacityOutcome::Found { passes: 100.0, fails: 104.0 };
        let capacity = analysis::Capacity { outcome, operating_points: vec![], trials: vec![] };
        let options = crate::report::Options { capacities: vec![(1, capacity)], ..crate::report::Options::default() };
        let late = Run { void: vec!["the driver was late".into()], ..testing::run("a", []) };
        let sentences = said_with(&DRIVER_VOID, &[late, testing::run("b", [])], &options);
        assert_eq!(sentences.len(), 1);
        assert_eq!(sentences[0].0, Severity::Warning);
        assert!(sentences[0].1.starts_with("1 of 2 trials say nothing"), "{sentences:?}");
    }

    #[test]
    fn one_identity_for_many_users_voids() {
        let with = |identities| Run { capsule: Some(testing::capsule(identities)), ..testing::run("a", []) };
        assert_eq!(said(&SINGLE_IDENTITY, &[with(1)]).len(), 1);
        assert_eq!(said(&SINGLE_IDENTITY, &[with(10)]), []);
        let void = vec![analysis::single_identity(1, 10).unwrap()];
        let noticed = [Run { void, ..with(1) }];
        assert_eq!(said(&SINGLE_IDENTITY, &noticed), [], "the driver has said it");
        assert_eq!(said(&DRIVER_VOID, &noticed).len(), 1);
        assert_eq!(said(&SINGLE_IDENTITY, &[testing::run("a", [])]), [], "what is not known is not judged");
    }

    #[test]
    fn a_check_that_failed_voids_and_none_at_all_warns() {
        let mut capsule = testing::capsule(10);
        capsule.verified = [("login".to_owned(), "answered 500".to_owned())].into();
        let run = Run { capsule: Some(capsule), ..testing::run("a", []) };
        let sentences = said(&NOT_VERIFIED, &[run]);
        assert_eq!(sentences[0].0, Severity::Void);
        assert!(sentences[0].1.contains("login") && sentences[0].1.contains("answered 500"), "{sentences:?}");
        let mut unchecked = testing::capsule(10);
        unchecked.verified.clear();
        let run = Run { capsule: Some(unchecked), ..testing::run("a", []) };
        assert_eq!(said(&NOT_VERIFIED, &[run])[0].0, Severity::Warning);
    }
}
