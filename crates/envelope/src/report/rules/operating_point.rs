//! The rate to run at.

use super::{Rule, capitalised, note, warning};
use crate::analysis::{Capacity, CapacityOutcome, OperatingPoint, TrialOutcome};
use crate::report::document::SectionKind;
use crate::report::facts::offered_rate;
use crate::report::format;
use crate::report::group::tasks_in_words;
use crate::result::Load;
use crate::run::Run;

pub(super) const OPERATING_POINT_UNKNOWN: Rule = Rule {
    id: "operating-point-unknown",
    about: "An operating point is a share (50, 70, 90 %) of a capacity, and a capacity is the highest arrival rate at which a \
            stated objective holds. Closed runs have no arrival rate, and open runs at one rate show that rate only.",
    section: SectionKind::OperatingPoint,
    evaluate: |facts| {
        if !facts.capacities.is_empty() {
            return vec![];
        }
        let closed = |run: &Run| matches!(run.load, Some(Load::Closed { .. }));
        let mut said = Vec::new();
        if let Some(names) = facts.names_of(closed) {
            let bound = facts.runs.iter().any(|run| facts.is_generator_bound(run));
            let why = if bound { ", and what was achieved here is the users' own ceiling" } else { "" };
            said.push(note(format!(
                "No operating point follows from {names}: in a closed model the users slow down with the system{why}. \
                 \"datum bench capacity\" searches for it with an open model."
            )));
        }
        for (run, name) in facts.runs_with_names() {
            let Some(Load::Open { arrivals_per_second }) = run.load else { continue };
            said.push(note(format!(
                "{} shows one arrival rate, {} a second (right answers: {}): no more than that the system was at this point, not \
                 where its knee is. \"datum bench capacity\" searches for it.",
                capitalised(name),
                format::rate(offered_rate(run).unwrap_or(arrivals_per_second)),
                format::or_missing(run.goodput().map(format::rate)),
            )));
        }
        said
    },
};

pub(super) const CAPACITY_FOUND: Rule = Rule {
    id: "capacity-found",
    about: "How a search for capacity ended: the highest arrival rate that met the objectives and its confirmations, and the \
            lowest above it that did not.",
    section: SectionKind::OperatingPoint,
    evaluate: |facts| {
        let sentence = |(tasks, capacity): &(u32, Capacity)| {
            let with = capitalised(&format!("with {}", tasks_in_words(*tasks)));
            match &capacity.outcome {
                CapacityOutcome::Found { passes, fails } => note(format!(
                    "{with} the objectives hold up to {} arrivals a second, repeats included, and no longer at {}: the knee is \
                     between them.",
                    format::rate(*passes),
                    format::rate(*fails)
                )),
                CapacityOutcome::AtLeast { passes, reason } => warning(format!(
                    "{with} the capacity is at least {} arrivals a second; the search did not find its end: {}.",
                    format::rate(*passes),
                    without_stop(reason)
                )),
                CapacityOutcome::None { reason } => {
                    warning(format!("{with} no capacity was found: {}.", without_stop(reason)))
                }
            }
        };
        facts.capacities.iter().map(sentence).collect()
    },
};

/// A reason within a sentence.
fn without_stop(reason: &str) -> &str {
    reason.trim_end().trim_end_matches('.')
}

/// The operating point that leaves room for what a minute brings, as the searches try it.
const USUAL_PERCENT: u32 = 70;

pub(super) const OPERATING_POINT: Rule = Rule {
    id: "operating-point",
    about: "The rate to run at: 70 % of the capacity found, if the objectives held there when it was tried; the shares that were \
            tried are in the table. Objectives that do not hold below a capacity make it doubtful.",
    section: SectionKind::OperatingPoint,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (tasks, capacity) in facts.capacities {
            for OperatingPoint { percent, rate, outcome } in &capacity.operating_points {
                let (with, rate) = (tasks_in_words(*tasks), format::rate(*rate));
                said.extend(match outcome {
                    TrialOutcome::Passed if *percent == USUAL_PERCENT => Some(note(format!(
                        "With {with}, operate at {rate} arrivals a second: {percent} % of the capacity found, where the \
                         objectives held."
                    ))),
                    TrialOutcome::Passed => None,
                    TrialOutcome::Failed(reason) => Some(warning(format!(
                        "At {rate} arrivals a second, {percent} % of the capacity found with {with}, the objectives did not \
                         hold ({}): the capacity is not reliable.",
                        without_stop(reason)
                    ))),
                    TrialOutcome::Void(reason) => Some(warning(format!(
                        "The trial at {rate} arrivals a second, {percent} % of the capacity found with {with}, is void ({}): \
                         nothing is known of that point.",
                        without_stop(reason)
                    ))),
                });
            }
        }
        said
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::{said, said_with};
    use super::*;
    use crate::report::Options;
    use crate::report::document::Severity;
    use crate::report::testing::{figures, run};

    fn found(at_70: TrialOutcome) -> Options {
        let point = OperatingPoint { percent: 70, rate: 70.0, outcome: at_70 };
        let outcome = CapacityOutcome::Found { passes: 100.0, fails: 104.0 };
        let capacity = Capacity { outcome, operating_points: vec![point], trials: vec![] };
        Options { capacities: vec![(2, capacity)], ..Options::default() }
    }

    #[test]
    fn a_capacity_that_was_found_gives_an_operating_point() {
        let options = found(TrialOutcome::Passed);
        let knee = said_with(&CAPACITY_FOUND, &[], &options);
        assert!(knee[0].1.starts_with("With 2 tasks per service the objectives hold up to 100.00"), "{knee:?}");
        let point = said_with(&OPERATING_POINT, &[], &options);
        assert_eq!(point[0].0, Severity::Note);
        assert!(point[0].1.contains("at 70.00 arrivals a second"), "{point:?}");
        assert_eq!(said_with(&OPERATING_POINT_UNKNOWN, &[figures("a", "steady state", 2, 222.0, 75.0)], &options), []);
    }

    #[test]
    fn a_point_where_the_objectives_failed_is_none() {
        let point = said_with(&OPERATING_POINT, &[], &found(TrialOutcome::Failed("p95 was missed".into())));
        assert_eq!(point[0].0, Severity::Warning);
        assert!(point[0].1.contains("p95 was missed"), "{point:?}");
        let void = said_with(&OPERATING_POINT, &[], &found(TrialOutcome::Void("The driver was late.".into())));
        assert!(void[0].1.contains("is void (The driver was late): nothing"), "{void:?}");
        let mut below = found(TrialOutcome::Passed);
        let failed = TrialOutcome::Failed("p95 was missed".into());
        below.capacities[0].1.operating_points.push(OperatingPoint { percent: 90, rate: 90.0, outcome: failed });
        let both = said_with(&OPERATING_POINT, &[], &below);
        assert_eq!((both[0].0, both[1].0), (Severity::Note, Severity::Warning), "{both:?}");
    }

    #[test]
    fn neither_closed_runs_nor_one_rate_give_an_operating_point() {
        let closed = said(&OPERATING_POINT_UNKNOWN, &[figures("a", "steady state", 2, 222.0, 75.0)]);
        assert!(closed[0].1.contains("from the run") && closed[0].1.contains("own ceiling"), "{closed:?}");
        let open = Run { load: Some(Load::Open { arrivals_per_second: 100.0 }), ..run("a", []) };
        assert!(said(&OPERATING_POINT_UNKNOWN, &[open])[0].1.contains("one arrival rate, 100.00"));
    }
}
