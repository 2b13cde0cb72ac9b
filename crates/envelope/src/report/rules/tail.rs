//! What a mean hides.

use super::{Rule, capitalised, note};
use crate::report::document::SectionKind;
use crate::report::format;
use crate::run::Run;

/// An exponential distribution has p99 at 6.6 times its median (ln 100 / ln 2); beyond ten times there is more than one
/// kind of request, or a queue.
const HEAVY: f64 = 10.0;

pub(super) const HEAVY_TAIL: Rule = Rule {
    id: "heavy-tail",
    about: "An endpoint whose 99th percentile is ten times its median or more: one in a hundred requests met something else \
            than the others (an exponential distribution has 6.6 times).",
    section: SectionKind::Endpoints,
    evaluate: |facts| {
        let Some(group) = facts.main_group() else { return vec![] };
        let mut said = Vec::new();
        for endpoint in group.endpoints() {
            let latency = group.of_endpoint(endpoint, |endpoint| Some(&endpoint.latency));
            let (Some(p50), Some(p99), Some(mean)) = (latency.p50, latency.p99, latency.mean) else { continue };
            if p50 > 0.0 && p99 >= HEAVY * p50 {
                said.push(note(format!(
                    "{}: the 99th percentile, {}, is {} times the median, {}; the mean of {} is neither's.",
                    capitalised(endpoint),
                    format::ms(p99),
                    format::factor(p99 / p50),
                    format::ms(p50),
                    format::ms(mean),
                )));
            }
        }
        said
    },
};

pub(super) const PERCENTILES_NOT_MERGED: Rule = Rule {
    id: "percentiles-not-merged",
    about: "Runs of which only percentiles are known, not what they were computed from: percentiles of several runs cannot be \
            put together, and averaging them gives no percentile of anything.",
    section: SectionKind::Latency,
    evaluate: |facts| {
        let without = |run: &Run| run.overall.histogram.is_none();
        let names = facts.names_of(without).filter(|_| facts.groups.iter().any(|group| group.runs.len() > 1));
        let sentence = |names: String| {
            note(format!(
                "No histogram is known of {names}: percentiles stand for single runs, and none are given for several together."
            ))
        };
        names.map(sentence).into_iter().collect()
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::testing::{figures, run, same};
    use crate::run::{Endpoint, LatencySummary};

    #[test]
    fn a_tail_of_ten_medians_is_named() {
        let mut latencies = same(95, 10).histogram.unwrap();
        latencies.merge(&same(5, 400).histogram.unwrap());
        let heavy = Endpoint { latency: LatencySummary::of(latencies), ..Endpoint::default() };
        let sentences = said(&HEAVY_TAIL, &[run("a", [("login", heavy)])]);
        assert!(sentences[0].1.contains("400 ms, is 40 times the median, 10.0 ms"), "{sentences:?}");
        let even = Endpoint { latency: same(100, 10), ..Endpoint::default() };
        assert_eq!(said(&HEAVY_TAIL, &[run("a", [("login", even)])]), []);
    }

    #[test]
    fn percentiles_without_histograms_are_not_put_together() {
        let two = [figures("a", "steady state", 2, 1.0, 1.0), figures("b", "steady state", 2, 1.0, 1.0)];
        assert!(said(&PERCENTILES_NOT_MERGED, &two)[0].1.starts_with("No histogram is known of all 2 runs"));
        assert_eq!(said(&PERCENTILES_NOT_MERGED, &two[..1]), []);
    }
}
