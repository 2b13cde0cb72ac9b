//! What a mean hides.

use super::{Rule, capitalised, note};
use crate::report::document::SectionKind;
use crate::report::format;
use crate::run::Run;
use crate::statistics::{Support, highest_supported, support};

/// An exponential distribution has p99 at 6.6 times its median (ln 100 / ln 2); beyond ten times there is more than one
/// kind of request, or a queue.
const HEAVY: f64 = 10.0;

pub(super) const PERCENTILE_OF_FEW: Rule = Rule {
    id: "percentile-of-few",
    about: "Percentiles with fewer than ten requests beyond them, n·(1 − q) < 10: p95 takes 200 requests, p99 1,000, p99.9 10,000. \
            With ten, the share that really lies beyond is known within a factor of two (Garwood, 1936). Fewer are marked ≈; with \
            fewer than one there is no such percentile, only the maximum.",
    section: SectionKind::Latency,
    evaluate: |facts| {
        let of_runs = facts.runs_with_names().map(|(run, name)| (name.to_owned(), run.overall.count));
        let of_endpoints = facts.groups.iter().flat_map(|group| {
            let count = |name: &str| group.of_endpoint(name, |endpoint| Some(&endpoint.latency)).count;
            group.endpoints().into_iter().map(move |name| (format!("{name} in {}", group.title), count(name)))
        });
        let marked = |count: u64| count > 0 && support(HIGHEST, count) != Support::Good;
        let fewest = of_runs.chain(of_endpoints).filter(|(_, count)| marked(*count)).min_by_key(|(_, count)| *count);
        let sentence = |(name, count): (String, u64)| {
            let supported = highest_supported(count).map_or_else(
                || "no percentile".to_owned(),
                |percent| format!("percentiles up to the {}th", format::decimals(percent.floor(), 0)),
            );
            note(format!(
                "Percentiles marked {} have fewer than ten slower requests beyond them, and another run would give others; \
                 \"{}\" stands where there is not even one. The fewest requests are those of {name}, {}: they support \
                 {supported}.",
                format::ROUGHLY,
                format::TOO_FEW,
                format::count(count),
            ))
        };
        fewest.map(sentence).into_iter().collect()
    },
};

/// The highest percentile in the tables.
const HIGHEST: f64 = 99.9;

pub(super) const HEAVY_TAIL: Rule = Rule {
    id: "heavy-tail",
    about: "An endpoint whose 99th percentile is ten times its median or more: one in a hundred requests met something else \
            than the others (an exponential distribution has 6.6 times). Of endpoints with 1,000 requests and more.",
    section: SectionKind::Endpoints,
    evaluate: |facts| {
        let Some(group) = facts.main_group() else { return vec![] };
        let mut said = Vec::new();
        for endpoint in group.endpoints() {
            let latency = group.of_endpoint(endpoint, |endpoint| Some(&endpoint.latency));
            let (Some(p50), Some(p99), Some(mean)) = (latency.p50, latency.p99, latency.mean) else { continue };
            if p50 > 0.0 && p99 >= HEAVY * p50 && support(99.0, latency.count) == Support::Good {
                said.push(note(format!(
                    "{}{}: the 99th percentile, {}, is {} times the median, {}; the mean of {} is neither's.",
                    facts.whose(group),
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
        let mut latencies = same(950, 10).histogram.unwrap();
        latencies.merge(&same(50, 400).histogram.unwrap());
        let heavy = Endpoint { latency: LatencySummary::of(latencies), ..Endpoint::default() };
        let sentences = said(&HEAVY_TAIL, &[run("a", [("login", heavy)])]);
        assert!(sentences[0].1.contains("400 ms, is 40 times the median, 10.0 ms"), "{sentences:?}");
        let mut few = same(95, 10).histogram.unwrap();
        few.merge(&same(5, 400).histogram.unwrap());
        let few = Endpoint { latency: LatencySummary::of(few), ..Endpoint::default() };
        assert_eq!(said(&HEAVY_TAIL, &[run("a", [("login", few)])]), [], "one request is no percentile");
        let even = Endpoint { latency: same(100, 10), ..Endpoint::default() };
        assert_eq!(said(&HEAVY_TAIL, &[run("a", [("login", even)])]), []);
    }

    #[test]
    fn percentiles_of_few_requests_are_said_to_be() {
        let with = |count| run("a", [("login", Endpoint { latency: same(count, 10), ..Endpoint::default() })]);
        let sentences = said(&PERCENTILE_OF_FEW, &[with(200)]);
        assert!(sentences[0].1.contains("the run, 200: they support percentiles up to the 95th"), "{sentences:?}");
        assert!(said(&PERCENTILE_OF_FEW, &[with(5)])[0].1.contains("support no percentile"));
        assert_eq!(said(&PERCENTILE_OF_FEW, &[with(10_000)]), []);
    }

    #[test]
    fn percentiles_without_histograms_are_not_put_together() {
        let two = [figures("a", "steady state", 2, 1.0, 1.0), figures("b", "steady state", 2, 1.0, 1.0)];
        assert!(said(&PERCENTILES_NOT_MERGED, &two)[0].1.starts_with("No histogram is known of all 2 runs"));
        assert_eq!(said(&PERCENTILES_NOT_MERGED, &two[..1]), []);
    }
}
