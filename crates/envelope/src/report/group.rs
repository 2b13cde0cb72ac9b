//! Runs that repeat one another.

use std::collections::BTreeSet;

use crate::result::Latencies;
use crate::run::{Endpoint, LatencySummary, Run};
use crate::statistics::{ErrorRate, Sample};

/// Runs of one role and size: they repeat one another, so that their histograms may be merged.
pub(super) struct Group<'a> {
    /// What it is called: the role, else the tasks.
    pub(super) name: String,
    /// Tasks per service, where known and equal.
    pub(super) tasks: Option<u32>,
    /// Whether its runs are those that count.
    pub(super) steady: bool,
    /// Its runs.
    pub(super) runs: Vec<&'a Run>,
}

impl<'a> Group<'a> {
    /// Throughput over its runs.
    pub(super) fn throughput(&self) -> Option<Sample> {
        let rates: Vec<f64> = self.runs.iter().filter_map(|run| run.throughput).collect();
        Sample::of(&rates)
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
    pub(super) fn of_endpoint(&self, name: &str, of: impl Fn(&'a Endpoint) -> Option<&'a LatencySummary>) -> LatencySummary {
        merged(self.runs.iter().filter_map(|run| run.endpoints.get(name)).filter_map(of))
    }

    /// Stages that an endpoint has in any of its runs.
    pub(super) fn stages_of(&self, endpoint: &str) -> BTreeSet<&'a str> {
        let those = self.runs.iter().filter_map(|run| run.endpoints.get(endpoint));
        those.flat_map(|endpoint| endpoint.stages.keys().map(String::as_str)).collect()
    }

    /// Errors over its runs.
    pub(super) fn errors(&self) -> ErrorRate {
        let (errors, requests) =
            self.runs.iter().fold((0, 0), |(errors, requests), run| (errors + failed(run), requests + run.requests));
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

/// Requests of a run that failed.
pub(super) fn failed(run: &Run) -> u64 {
    run.failures.iter().map(|failure| failure.count).sum()
}

/// Puts runs of one role together, in the order in which the roles appear; without roles, those with as many tasks.
pub(super) fn groups(runs: &[Run]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs {
        let name = match (&run.role, run.tasks_per_service) {
            (Some(role), _) if !role.trim().is_empty() => role.trim().to_owned(),
            (_, Some(1)) => "1 task per service".to_owned(),
            (_, Some(tasks)) => format!("{tasks} tasks per service"),
            (_, None) => "no role given".to_owned(),
        };
        match groups.iter_mut().find(|group| group.name == name && group.tasks == run.tasks_per_service) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group { name, tasks: run.tasks_per_service, steady: false, runs: vec![run] }),
        }
    }
    mark_steady(&mut groups);
    groups
}

/// The runs that count are those whose role says so; else the only ones; else those with the most tasks.
fn mark_steady(groups: &mut [Group<'_>]) {
    let says_so = |group: &Group<'_>| group.name.to_lowercase().contains("steady");
    if groups.iter().any(says_so) {
        groups.iter_mut().for_each(|group| group.steady = says_so(group));
    } else if let [only] = groups {
        only.steady = true;
    } else if let Some(largest) = groups.iter_mut().filter(|group| group.tasks.is_some()).max_by_key(|group| group.tasks) {
        largest.steady = true;
    }
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
        histograms.into_iter().for_each(|histogram| whole.merge(histogram));
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
    use crate::run::{Source, SourceKind};

    fn run(role: Option<&str>, tasks: Option<u32>) -> Run {
        Run {
            label: "run".into(),
            role: role.map(str::to_owned),
            source: Source { kind: SourceKind::Figures, path: None },
            capsule: None,
            load: None,
            tasks_per_service: tasks,
            seconds: None,
            requests: 0,
            throughput: None,
            overall: LatencySummary::default(),
            endpoints: std::collections::BTreeMap::default(),
            failures: vec![],
            series: vec![],
            window: None,
            void: vec![],
            warnings: vec![],
        }
    }

    fn named(runs: &[Run]) -> Vec<(String, usize, bool)> {
        groups(runs).iter().map(|group| (group.name.clone(), group.runs.len(), group.steady)).collect()
    }

    #[test]
    fn runs_of_a_role_belong_together_and_the_steady_ones_count() {
        let runs = [
            run(Some("exploratory"), Some(1)),
            run(Some("steady state"), Some(2)),
            run(Some("steady state"), Some(2)),
        ];
        assert_eq!(named(&runs), [("exploratory".to_owned(), 1, false), ("steady state".to_owned(), 2, true)]);
    }

    #[test]
    fn without_roles_tasks_tell_runs_apart() {
        let runs = [run(None, Some(1)), run(None, Some(4)), run(None, Some(2)), run(None, Some(4))];
        let expected = [
            ("1 task per service".to_owned(), 1, false),
            ("4 tasks per service".to_owned(), 2, true),
            ("2 tasks per service".to_owned(), 1, false),
        ];
        assert_eq!(named(&runs), expected);
        assert_eq!(named(&[run(None, None)]), [("no role given".to_owned(), 1, true)]);
    }

    #[test]
    fn percentiles_come_from_merged_histograms_or_not_at_all() {
        let summary = |ms: &[u64]| {
            let mut latencies = Latencies::new();
            ms.iter().for_each(|ms| latencies.record_micros(ms * 1_000));
            LatencySummary::of(latencies)
        };
        let (fast, slow) = (summary(&[1, 1, 1, 1, 1, 1, 1, 1, 1]), summary(&[100]));
        let whole = merged([&fast, &slow]);
        assert_eq!((whole.count, whole.p50.map(f64::round), whole.max.map(f64::round)), (10, Some(1.0), Some(100.0)));

        let totals = LatencySummary { count: 10, mean: Some(5.0), p50: Some(5.0), max: Some(9.0), ..LatencySummary::default() };
        let mixed = merged([&whole, &totals]);
        assert_eq!((mixed.count, mixed.p50, mixed.max.map(f64::round)), (20, None, Some(100.0)));
        assert!((mixed.mean.unwrap() - (10.9 + 5.0) / 2.0).abs() < 0.1, "{mixed:?}");
        assert_eq!(merged([&totals]), totals, "one alone keeps its percentiles");
    }
}
