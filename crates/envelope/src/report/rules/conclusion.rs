//! What follows from all of it.

use super::bottleneck;
use super::{Rule, Says, capitalised, note, warning};
use crate::analysis;
use crate::report::document::SectionKind;
use crate::report::facts::Facts;
use crate::report::format;
use crate::report::group::{Group, tasks_in_words};
use crate::result::Load;
use crate::run::Run;

pub(super) const WHAT_THE_RUNS_SHOW: Rule = Rule {
    id: "what-the-runs-show",
    about: "The figures of the runs that count: throughput over runs, latency from merged histograms, errors with their bound; of runs \
            of different conditions, each for itself. Of a search for capacity: what it found.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        if !facts.capacities.is_empty() {
            return capacities_in_words(facts);
        }
        facts.counting().filter_map(shown).map(note).collect()
    },
};

/// The figures of runs that repeat one another.
fn shown(group: &Group<'_>) -> Option<String> {
    let rate = group.throughput()?;
    let latency = group.overall();
    let percentiles = [("median", 50.0), ("95th percentile", 95.0), ("99th percentile", 99.0)];
    let in_words = |percent| format::percentile_in_words(latency.percentile(percent), percent, latency.count);
    let mut known: Vec<String> = percentiles
        .into_iter()
        .filter_map(|(name, percent)| in_words(percent).map(|value| format!("{name} {value}")))
        .collect();
    known.extend(latency.mean.map(|mean| format!("mean {}", format::ms(mean))));
    let latency = if known.is_empty() {
        "latency is not recorded".to_owned()
    } else {
        format!("latency: {}", format::list(&known))
    };
    let errors = group.errors();
    let errors = if errors.requests == 0 {
        "errors are not recorded".to_owned()
    } else {
        format!(
            "{} of {} requests failed (below {} with 95 % confidence)",
            format::count(errors.errors),
            format::count(errors.requests),
            format::percent(errors.upper_bound)
        )
    };
    Some(format!("{}: {}; {latency}; {errors}.", capitalised(&group.title), rate_in_words(group, rate.mean)))
}

/// The trials of a search were loaded differently: what they show together is the capacity.
fn capacities_in_words(facts: &Facts<'_>) -> Vec<Says> {
    let found: Vec<String> = facts
        .capacities
        .iter()
        .filter_map(|(tasks, capacity)| {
            let (holds, fails) = capacity.bounds()?;
            let least = if fails.is_none() { "at least " } else { "" };
            Some(format!("{least}{} with {}", format::rate(holds), tasks_in_words(*tasks)))
        })
        .collect();
    if found.is_empty() {
        return vec![];
    }
    vec![note(format!("The capacity within the objectives, in arrivals a second: {}.", format::list(&found)))]
}

/// Requests a second, and how many of them were answered as expected where that is another figure: a failed request is no
/// throughput.
fn rate_in_words(group: &Group<'_>, ended: f64) -> String {
    let rate = format::rate(ended);
    match group.goodput().map(|sample| sample.mean) {
        Some(good) if good < (1.0 - analysis::MOSTLY_BROKEN) * ended => {
            format!(
                "{} right answers a second (goodput), of {rate} requests that ended, most of them failed",
                format::rate(good)
            )
        }
        Some(good) if format::rate(good) != rate => {
            format!("{rate} requests a second, of which {} got the right answer (goodput)", format::rate(good))
        }
        _ => format!("{rate} requests a second"),
    }
}

pub(super) const CAPACITY_STATEMENT: Rule = Rule {
    id: "capacity-statement",
    about: "What may be said of capacity: nothing where the users were the limit; a lower bound where the system kept up; what \
            it carried at most where a resource was at its limit. What failed was not carried.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        if !facts.capacities.is_empty() {
            // A search says more than its trials do.
            return vec![];
        }
        facts.counting().filter_map(|group| carried(facts, group)).collect()
    },
};

/// What may be said of the capacity from runs that repeat one another.
fn carried(facts: &Facts<'_>, group: &Group<'_>) -> Option<Says> {
    let whose = facts.whose(group);
    let usable: Vec<&Run> = group.runs.iter().copied().filter(|run| facts.is_usable(run)).collect();
    let highest = usable.iter().filter_map(|run| run.goodput()).reduce(f64::max);
    let highest = highest?;
    let bound = usable.iter().any(|run| facts.is_generator_bound(run));
    if bound {
        return Some(warning(format!(
            "{whose}The capacity is not known. It is at least {} requests a second; more users, or an open model, would tell \
             how much more (\"datum bench capacity\").",
            format::rate(highest)
        )));
    }
    let open = usable.iter().all(|run| matches!(run.load, Some(Load::Open { .. })));
    let at_a_limit = bottleneck::is_at_a_limit(group);
    let rate = format::rate(highest);
    let sentence = match (open, at_a_limit) {
        (_, true) => format!(
            "The system carried {rate} requests a second with a resource at its limit (see Bottleneck): that is near what it \
             can carry of this mix."
        ),
        (true, false) => {
            format!(
                "The system carried {rate} requests a second; how many more it could is not shown by one arrival rate."
            )
        }
        (false, false) => format!(
            "With these users the system carried {rate} requests a second; whether more users would bring more is not \
             shown."
        ),
    };
    Some(note(format!("{whose}{sentence}")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{said, said_with};
    use super::*;
    use crate::report::document::Severity;
    use crate::report::testing::{failure, figures};
    use crate::result::Answerer;

    #[test]
    fn a_ceiling_of_the_users_is_a_lower_bound_of_the_system() {
        let sentences = said(&CAPACITY_STATEMENT, &[figures("a", "steady state", 2, 222.35, 75.28)]);
        assert_eq!(sentences[0].0, Severity::Warning);
        assert!(sentences[0].1.contains("at least 222.35"), "{sentences:?}");
        let waiting = said(&CAPACITY_STATEMENT, &[figures("a", "steady state", 2, 150.0, 513.0)]);
        assert_eq!(waiting[0].0, Severity::Note);
        assert!(waiting[0].1.contains("whether more users would bring more is not shown"), "{waiting:?}");
    }

    #[test]
    fn of_a_search_the_capacity_is_what_it_shows() {
        let found = |outcome| analysis::Capacity { outcome, operating_points: vec![], trials: vec![] };
        let one = found(analysis::CapacityOutcome::Found { passes: 100.0, fails: 104.0 });
        let two = found(analysis::CapacityOutcome::AtLeast { passes: 150.0, reason: "the driver was busy".into() });
        let options =
            crate::report::Options { capacities: vec![(1, one), (2, two)], ..crate::report::Options::default() };
        let sentences = said_with(&WHAT_THE_RUNS_SHOW, &[figures("a", "bracket", 1, 50.0, 10.0)], &options);
        let expected = "100.00 with 1 task per service and at least 150.00 with 2 tasks per service";
        assert!(sentences[0].1.contains(expected), "{sentences:?}");
    }

    /// Failures are fast: 1,000 refusals a second are no throughput.
    #[test]
    fn what_failed_was_not_carried() {
        let failing = |count| Run {
            failures: vec![failure(Some(503), "hashing_busy", Answerer::Task, count)],
            ..figures("a", "steady state", 2, 200.0, 75.28)
        };
        let some = said(&WHAT_THE_RUNS_SHOW, &[failing(4_000)]);
        assert!(
            some[0].1.contains("200.00 requests a second, of which 180.00 got the right answer (goodput)"),
            "{some:?}"
        );
        let most = said(&WHAT_THE_RUNS_SHOW, &[failing(36_000)]);
        assert!(
            most[0].1.contains("20.00 right answers a second (goodput), of 200.00 requests that ended"),
            "{most:?}"
        );
        assert!(said(&CAPACITY_STATEMENT, &[failing(4_000)])[0].1.contains("carried 180.00"));
        let broken = Run {
            failures: vec![failure(Some(500), "internal", Answerer::Task, 36_000)],
            ..figures("a", "steady state", 2, 200.0, 75.28)
        };
        assert_eq!(said(&CAPACITY_STATEMENT, &[broken]), []);
        assert_eq!(said(&CAPACITY_STATEMENT, &[figures("a", "steady state", 2, 900.0, 75.28)]), [], "impossible");
    }

    #[test]
    fn the_figures_that_count_are_in_one_sentence() {
        let sentences = said(&WHAT_THE_RUNS_SHOW, &[figures("a", "steady state", 2, 222.35, 75.28)]);
        for part in ["222.35 requests a second", "mean 75.3 ms", "0 of 40,000 requests failed (below 0.0075 %"] {
            assert!(sentences[0].1.contains(part), "{part} is missing: {sentences:?}");
        }
    }
}
