//! Throughput of several runs, what scaling brought, and whether it was the system's at all.

use super::groups::{Group, groups};
use crate::laws::{CapacityEvidence, ThinkTime, ThinkTimeEvidence, capacity_evidence, infer_think_time};
use crate::result::Load;
use crate::run::Run;
use crate::statistics::Sample;

/// Throughput in requests a second, and what more tasks did to it.
#[derive(Debug, Clone, PartialEq)]
pub struct ThroughputSummary {
    /// All runs; `None` if none says.
    pub all: Option<Sample>,
    /// The group that counts; `None` where several do.
    pub steady: Option<Sample>,
    /// The groups, as [`groups`] finds them, with their throughput.
    pub groups: Vec<(Group, Option<Sample>)>,
    /// From fewer tasks to the next more, where groups of different task counts are there.
    pub scaling: Vec<Scaling>,
}

/// What more tasks brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Tasks per service before.
    pub from_tasks: u32,
    /// Tasks per service after.
    pub to_tasks: u32,
    /// Mean throughput after, divided by that before.
    pub throughput_ratio: f64,
    /// Mean latency before, divided by that after: how many times faster answers came. Means are weighted by requests where
    /// all runs count them.
    pub latency_ratio: Option<f64>,
    /// The throughput ratio, divided by the ratio of the tasks: 1 is linear.
    pub efficiency: f64,
}

/// Sums up throughput over all runs, over the steady state, and between groups with different task counts.
#[must_use]
pub fn throughput_summary(runs: &[Run]) -> ThroughputSummary {
    let of = |indices: &[usize]| throughput(indices.iter().map(|index| &runs[*index]));
    let found = groups(runs);
    let mut counting = found.iter().filter(|group| group.counts);
    // Of several none is the result: they are of different conditions and cannot be pooled.
    let only = counting.next().filter(|_| counting.next().is_none());
    ThroughputSummary {
        all: throughput(runs.iter()),
        steady: only.and_then(|group| of(&group.runs)),
        scaling: scaling(runs),
        groups: found.into_iter().map(|group| (group.clone(), of(&group.runs))).collect(),
    }
}

fn throughput<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<Sample> {
    Sample::of(&runs.filter_map(|run| run.throughput).collect::<Vec<_>>())
}

fn scaling(runs: &[Run]) -> Vec<Scaling> {
    let mut counts: Vec<u32> = runs.iter().filter_map(|run| run.tasks_per_service).filter(|tasks| *tasks > 0).collect();
    counts.sort_unstable();
    counts.dedup();
    let with = |tasks: u32| runs.iter().filter(move |run| run.tasks_per_service == Some(tasks));
    counts
        .windows(2)
        .filter_map(|pair| {
            let (from_tasks, to_tasks) = (*pair.first()?, *pair.last()?);
            let (before, after) = (throughput(with(from_tasks))?, throughput(with(to_tasks))?);
            let throughput_ratio = (before.mean > 0.0).then(|| after.mean / before.mean)?;
            let latency_ratio = mean_latency(with(from_tasks))
                .zip(mean_latency(with(to_tasks)))
                .filter(|(_, after)| *after > 0.0)
                .map(|(before, after)| before / after);
            let efficiency = throughput_ratio * f64::from(from_tasks) / f64::from(to_tasks);
            Some(Scaling { from_tasks, to_tasks, throughput_ratio, latency_ratio, efficiency })
        })
        .collect()
}

fn mean_latency<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<f64> {
    let means: Vec<(f64, u64)> =
        runs.filter_map(|run| run.overall.mean.map(|mean| (mean, run.overall.count))).collect();
    let counted = means.iter().all(|(_, count)| *count > 0);
    let weight = |count: u64| if counted { crate::as_float(count) } else { 1.0 };
    let total: f64 = means.iter().map(|(_, count)| weight(*count)).sum();
    (total > 0.0).then(|| means.iter().map(|(mean, count)| mean * weight(*count)).sum::<f64>() / total)
}

/// The think time that the closed runs among `runs` imply by the interactive response time law.
#[must_use]
pub fn think_time_of(runs: &[Run]) -> Option<ThinkTime> {
    let evidence: Vec<_> = runs.iter().filter_map(evidence).collect();
    infer_think_time(&evidence)
}

/// Whether a closed run says anything about capacity: with the think time that its load states, else with `inferred` from
/// several runs; `None` for open runs and where a figure is missing.
#[must_use]
pub fn capacity_evidence_of(run: &Run, inferred: Option<&ThinkTime>) -> Option<CapacityEvidence> {
    let ThinkTimeEvidence { users, throughput, response_time } = evidence(run)?;
    let stated = match run.load {
        Some(Load::Closed { think_time_mean_seconds, .. }) if think_time_mean_seconds > 0.0 => {
            Some(think_time_mean_seconds)
        }
        _ => None,
    };
    let think_time = stated.or(inferred.map(|think_time| think_time.seconds))?;
    Some(capacity_evidence(users, think_time, throughput, response_time))
}

fn evidence(run: &Run) -> Option<ThinkTimeEvidence> {
    let Some(Load::Closed { vus, .. }) = run.load else { return None };
    Some(ThinkTimeEvidence {
        users: f64::from(vus),
        throughput: run.throughput?,
        response_time: run.mean_response_ms()? / 1000.0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::pooled::tests::figures;
    use super::*;

    fn run(tasks: u32, throughput: f64, mean_ms: f64) -> Run {
        let load = Some(Load::Closed { vus: 200, think_time_mean_seconds: 0.0 });
        Run { tasks_per_service: Some(tasks), load, ..figures("run", throughput, mean_ms) }
    }

    #[test]
    fn scaling_is_between_neighbouring_task_counts() {
        let summary = throughput_summary(&[run(4, 390.0, 50.0), run(1, 100.0, 300.0), run(2, 200.0, 100.0)]);
        let steps: Vec<_> = summary.scaling.iter().map(|step| (step.from_tasks, step.to_tasks)).collect();
        assert_eq!(steps, [(1, 2), (2, 4)]);
        assert!((summary.scaling[0].efficiency - 1.0).abs() < 1e-12);
        assert!((summary.scaling[0].latency_ratio.unwrap() - 3.0).abs() < 1e-12);
        assert!((summary.scaling[1].efficiency - 0.975).abs() < 1e-12);
        assert!((summary.steady.unwrap().mean - 390.0).abs() < 1e-12);
    }

    #[test]
    fn a_stated_think_time_goes_before_an_inferred_one() {
        let mut stated = run(1, 100.0, 100.0);
        let inferred = think_time_of(&[stated.clone()]).unwrap();
        assert!((inferred.seconds - 1.9).abs() < 1e-12);
        assert!(capacity_evidence_of(&stated, Some(&inferred)).unwrap().void);
        stated.load = Some(Load::Closed { vus: 200, think_time_mean_seconds: 0.5 });
        assert!(!capacity_evidence_of(&stated, Some(&inferred)).unwrap().void);
    }

    #[test]
    fn an_open_run_implies_no_think_time() {
        let mut open = run(1, 100.0, 100.0);
        open.load = Some(Load::Open { arrivals_per_second: 100.0 });
        assert_eq!(think_time_of(&[open.clone()]), None);
        assert_eq!(capacity_evidence_of(&open, None), None);
    }
}
