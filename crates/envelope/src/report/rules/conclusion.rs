//! What follows from all of it.

use super::bottleneck;
use super::{Rule, capitalised, note, warning};
use crate::report::document::SectionKind;
use crate::report::format;
use crate::result::Load;
use crate::run::Run;

pub(super) const WHAT_THE_RUNS_SHOW: Rule = Rule {
    id: "what-the-runs-show",
    about: "The figures of the runs that count: throughput over runs, latency from merged histograms, errors with their bound.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        let Some(group) = facts.main_group() else { return vec![] };
        let Some(rate) = group.throughput() else { return vec![] };
        let latency = group.overall();
        let percentiles = [("median", latency.p50), ("95th percentile", latency.p95), ("99th percentile", latency.p99)];
        let mut known: Vec<String> = percentiles
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name} {}", format::ms(value))))
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
        vec![note(format!(
            "{}: {} requests a second; {latency}; {errors}.",
            capitalised(&group.title),
            format::rate(rate.mean),
        ))]
    },
};

pub(super) const CAPACITY_STATEMENT: Rule = Rule {
    id: "capacity-statement",
    about: "What may be said of capacity: nothing where the users were the limit; a lower bound where the system kept up; what \
            it carried at most where a resource was at its limit.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        if !facts.capacities.is_empty() {
            // A search says more than its trials do.
            return vec![];
        }
        let Some(group) = facts.main_group() else { return vec![] };
        let usable: Vec<&Run> = group.runs.iter().copied().filter(|run| run.void.is_empty()).collect();
        let highest = usable.iter().filter_map(|run| run.throughput).reduce(f64::max);
        let Some(highest) = highest else { return vec![] };
        let bound = usable.iter().any(|run| facts.is_generator_bound(run));
        if bound {
            return vec![warning(format!(
                "The capacity is not known. It is at least {} requests a second; more users, or an open model, would show \
                 more (\"datum bench capacity\").",
                format::rate(highest)
            ))];
        }
        let open = usable.iter().all(|run| matches!(run.load, Some(Load::Open { .. })));
        let at_a_limit = !bottleneck::limits(facts).is_empty();
        let rate = format::rate(highest);
        vec![note(match (open, at_a_limit) {
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
        })]
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::document::Severity;
    use crate::report::testing::figures;

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
    fn the_figures_that_count_are_in_one_sentence() {
        let sentences = said(&WHAT_THE_RUNS_SHOW, &[figures("a", "steady state", 2, 222.35, 75.28)]);
        for part in ["222.35 requests a second", "mean 75.3 ms", "0 of 40,000 requests failed (below 0.0075 %"] {
            assert!(sentences[0].1.contains(part), "{part} is missing: {sentences:?}");
        }
    }
}
