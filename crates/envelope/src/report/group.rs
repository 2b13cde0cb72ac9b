//! Runs that repeat one another.

use std::collections::BTreeSet;

use crate::analysis;
use crate::result::Latencies;
use crate::run::{Endpoint, LatencySummary, Run};
use crate::statistics::{ErrorRate, Sample};

/// Runs of one role and of equal conditions: they repeat one another, so that their histograms may be merged.
pub(super) struct Group<'a> {
    /// What it is called: the role, and what tells it from other groups of that role.
    pub(super) name: String,
    /// What it is called in a sentence: `the 3 runs "steady state"`, `the run`.
    pub(super) title: String,
    /// Tasks per service, where known and equal.
    pub(super) tasks: Option<u32>,
    /// Whether its runs are those that count.
    pub(super) counts: bool,
    /// Its runs.
    pub(super) runs: Vec<&'a Run>,
}

impl<'a> Group<'a> {
    /// Throughput over its runs.
    pub(super) fn throughput(&self) -> Option<Sample> {
        let rates: Vec<f64> = self.runs.iter().filter_map(|run| run.throughput).collect();
        Sample::of(&rates)
    }

    /// Right answers a second over its runs.
    pub(super) fn goodput(&self) -> Option<Sample> {
        let rates: Vec<f64> = self.runs.iter().filter_map(|run| run.goodput()).collect();
        Sample::of(&rates)
    }

    /// Whether all its runs were loaded alike, as far as is known: only then do they repeat one another.
    pub(super) fn is_loaded_alike(&self) -> bool {
        self.runs.windows(2).all(|pair| matches!(pair, [one, other] if one.load == other.load))
    }

    /// Latency of all its requests.
    pub(super) fn overall(&self) -> LatencySummary {
        merged(self.runs.iter().map(|run| &run.overall))
    }

    /// Names of its endpoints.
    pub(super) fn endpoints(&self) -> BTreeSet<&'a str> {
        self.runs.iter().flat_map(|run| run.endpoints.keys().map(String::as_str)).collect()
    }

    /// Latency of an endpoint over its runs, or of whatever else an endpoint has.
    pub(super) fn of_endpoint(
        &self,
        name: &str,
        of: impl Fn(&'a Endpoint) -> Option<&'a LatencySummary>,
    ) -> LatencySummary {
        merged(self.runs.iter().filter_map(|run| run.endpoints.get(name)).filter_map(of))
    }

    /// Errors over its runs.
    pub(super) fn errors(&self) -> ErrorRate {
        let (errors, requests) =
            self.runs.iter().fold((0, 0), |(errors, requests), run| (errors + run.failed(), requests + run.requests));
        ErrorRate::of(errors, requests)
    }

    /// Errors of one endpoint over its runs.
    pub(super) fn errors_of(&self, name: &str) -> ErrorRate {
        let those = self.runs.iter().filter_map(|run| run.endpoints.get(name));
        let (errors, good) = those.fold((0, 0), |(errors, good), endpoint| {
            let failed: u64 = endpoint.failures.iter().map(|failure| failure.count).sum();
            (errors + failed, good + endpoint.latency.count)
        });
        ErrorRate::of(errors, errors + good)
    }
}

/// What a group is called that nobody gave a role and that is alone.
const NO_ROLE: &str = "no role given";

/// Puts runs that repeat one another together; of a search, whose trials are loaded differently on purpose, those of one system.
pub(super) fn groups(runs: &[Run], is_search: bool) -> Vec<Group<'_>> {
    let found = analysis::groups_by(runs, |aspect| !(is_search && aspect.is_of_the_load()));
    let group = |group: &analysis::Group| {
        let parts = group.role.iter().chain(&group.distinction);
        let parts: Vec<&str> = parts.map(String::as_str).collect();
        let name = if parts.is_empty() { NO_ROLE.to_owned() } else { parts.join(", ") };
        let members: Vec<&Run> = group.runs.iter().filter_map(|index| runs.get(*index)).collect();
        let title = match members.len() {
            1 if runs.len() == 1 => "the run".to_owned(),
            many if group.role.is_none() && found.len() == 1 => format!("the {many} runs"),
            1 => format!("the run \"{name}\""),
            many => format!("the {many} runs \"{name}\""),
        };
        Group { name, title, tasks: group.tasks, counts: group.counts, runs: members }
    };
    found.iter().map(group).collect()
}

/// `1 task per service`, `2 tasks per service`.
pub(super) fn tasks_in_words(tasks: u32) -> String {
    if tasks == 1 { "1 task per service".to_owned() } else { format!("{tasks} tasks per service") }
}

/// Latencies of several runs as one: from merged histograms where all have them. Where one has not, there are no
/// percentiles, for they cannot be averaged; counts, means and extremes can be put together all the same.
pub(super) fn merged<'a>(parts: impl IntoIterator<Item = &'a LatencySummary>) -> LatencySummary {
    let parts: Vec<&LatencySummary> = parts.into_iter().filter(|part| part.count > 0 || part.mean.is_some()).collect();
    if let [only] = parts[..] {
        return only.clone();
    }
    let histograms: Option<Vec<&Latencies>> = parts.iter().map(|part| part.histogram.as_ref()).collect();
    if let Some(histograms) = histograms.filter(|histograms| !histograms.is_empty()) {
        let mut whole = Latencies::new();
        for histogram in histograms {
            whole.merge(histogram);
        }
        return LatencySummary::of(whole);
    }
    let count: u64 = parts.iter().map(|part| part.count).sum();
    LatencySummary {
        count,
        min: parts.iter().filter_map(|part| part.min).reduce(f64::min),
        mean: weighted_mean(&parts),
        max: parts.iter().filter_map(|part| part.max).reduce(f64::max),
        ..LatencySummary::default()
    }
}

/// The mean of all requests, if every part has one.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn weighted_mean(parts: &[&LatencySummary]) -> Option<f64> {
    let count: u64 = parts.iter().map(|part| part.count).sum();
    let sum: Option<f64> = parts.iter().map(|part| part.mean.map(|mean| mean * part.count as f64)).sum();
    sum.filter(|_| count > 0).map(|sum| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    fn run(role: Option<&str>, tasks: Option<u32>) -> Run {
        Run { role: role.map(str::to_owned), tasks_per_service: tasks, ..testing::run("run", []) }
    }

    #[test]
    fn a_group_is_called_by_its_role_and_a_single_run_by_nothing_else() {
        let (steady, other) = (run(Some("steady state"), None), run(Some("other"), None));
        let titles =
            |runs: &[Run]| -> Vec<String> { groups(runs, false).into_iter().map(|group| group.title).collect() };
        assert_eq!(titles(&[steady.clone(), steady.clone()]), ["the 2 runs \"steady state\""]);
        assert_eq!(titles(&[steady.clone(), other]), ["the run \"steady state\"", "the run \"other\""]);
        assert_eq!(titles(&[steady]), ["the run"]);
    }

    fn named(runs: &[Run]) -> Vec<(String, usize, bool)> {
        groups(runs, false).iter().map(|group| (group.name.clone(), group.runs.len(), group.counts)).collect()
    }

    #[test]
    fn runs_of_a_role_belong_together_and_the_steady_ones_count() {
        let runs =
            [run(Some("exploratory"), Some(1)), run(Some("steady state"), Some(2)), run(Some("steady state"), Some(2))];
        assert_eq!(named(&runs), [("exploratory".to_owned(), 1, false), ("steady state".to_owned(), 2, true)]);
    }

    #[test]
    fn one_role_with_different_tasks_is_told_apart_by_them() {
        let runs = [run(Some("Steady-State"), Some(1)), run(Some("steady state"), Some(2))];
        let expected = [
            ("steady state, 1 task per service".to_owned(), 1, true),
            ("steady state, 2 tasks per service".to_owned(), 1, true),
        ];
        assert_eq!(named(&runs), expected);
    }

    #[test]
    fn where_nobody_speaks_of_a_steady_state_the_most_tasks_count() {
        let runs = [run(Some("small"), Some(1)), run(Some("large"), Some(4))];
        assert_eq!(named(&runs), [("small".to_owned(), 1, false), ("large".to_owned(), 1, true)]);
    }

    #[test]
    fn percentiles_come_from_merged_histograms_or_not_at_all() {
        let summary = |ms: &[u64]| {
            let mut latencies = Latencies::new();
            for ms in ms {
                latencies.record_micros(ms * 1_000);
            }
            LatencySummary::of(latencies)
        };
        let (fast, slow) = (summary(&[1, 1, 1, 1, 1, 1, 1, 1, 1]), summary(&[100]));
        let whole = merged([&fast, &slow]);
        assert_eq!((whole.count, whole.p50.map(f64::round), whole.max.map(f64::round)), (10, Some(1.0), Some(100.0)));

        let totals =
            LatencySummary { count: 10, mean: Some(5.0), p50: Some(5.0), max: Some(9.0), ..LatencySummary::default() };
        let mixed = merged([&whole, &totals]);
        assert_eq!((mixed.count, mixed.p50, mixed.max.map(f64::round)), (20, None, Some(100.0)));
        assert!((mixed.mean.unwrap() - 7.95).abs() < 0.1, "{mixed:?}");
        assert_eq!(merged([&totals]), totals, "one alone keeps its percentiles");
    }
}
