//! The published "Phase 4" envelope (200 VUs, five runs on ECS): what it derived must come out, and what it did not notice.

use std::collections::BTreeMap;

use envelope::analysis::{
    Owner, Quantity, UslPoint, UslRefusal, Verdict, capacity_evidence_of, compare, error_table, fit_usl, groups,
    latency_ranges, think_time_of, throughput_summary,
};
use envelope::laws::{ThinkTimeEvidence, think_time, throughput_bound};
use envelope::result::{Answerer, Failure, FailureCount, Load};
use envelope::run::{LatencySummary, Run, Source, SourceKind};
use envelope::statistics::{ErrorRate, Sample, exact_upper_bound};

const THROUGHPUT: [f64; 5] = [190.49, 189.32, 222.35, 221.79, 221.97];

fn close(left: f64, right: f64, tolerance: f64) {
    assert!((left - right).abs() <= tolerance, "{left} is not {right} within {tolerance}");
}

fn run(label: &str, tasks: u32, throughput: f64, latency: LatencySummary) -> Run {
    Run {
        label: label.into(),
        role: None,
        source: Source { kind: SourceKind::Figures, path: None },
        capsule: None,
        load: Some(Load::Closed { vus: 200, think_time_mean_seconds: 0.0 }),
        tasks_per_service: Some(tasks),
        seconds: Some(360.0),
        requests: 0,
        throughput: Some(throughput),
        overall: latency,
        endpoints: BTreeMap::new(),
        failures: Vec::new(),
        series: Vec::new(),
        window: None,
        void: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The reference gives one set of latencies for the saturated runs and one for the scaled ones.
fn phase4() -> Vec<Run> {
    let of = |mean: f64, p50: f64, p95: f64, p99: f64| LatencySummary {
        mean: Some(mean),
        p50: Some(p50),
        p95: Some(p95),
        p99: Some(p99),
        ..LatencySummary::default()
    };
    THROUGHPUT
        .into_iter()
        .enumerate()
        .map(|(index, throughput)| match index {
            0 | 1 => run(&format!("run {}", index + 1), 1, throughput, of(232.05, 180.7, 793.0, 1_170.0)),
            _ => run(&format!("run {}", index + 1), 2, throughput, of(75.28, 6.5, 364.0, 852.0)),
        })
        .collect()
}

#[test]
fn throughput_over_all_runs() {
    let all = Sample::of(&THROUGHPUT).unwrap();
    close(all.mean, 209.18, 0.005);
    close(all.min, 189.32, 1e-9);
    close(all.max, 222.35, 1e-9);
    close(all.population_deviation, 15.7, 0.05);
    close(all.sample_deviation.unwrap(), 17.6, 0.05);
    close(all.coefficient_of_variation().unwrap(), 0.075, 0.0005);
}

#[test]
fn the_runs_with_the_most_tasks_count_and_they_hardly_vary() {
    let runs = phase4();
    let found: Vec<_> = groups(&runs).into_iter().map(|group| (group.counts, group.tasks, group.runs)).collect();
    assert_eq!(found, [(false, Some(1), vec![0, 1]), (true, Some(2), vec![2, 3, 4])]);
    let steady = throughput_summary(&runs).steady.unwrap();
    close(steady.mean, 222.04, 0.005);
    assert!(steady.spread().unwrap() < 0.003, "{steady:?}");
}

#[test]
fn the_second_task_brought_a_sixth_more_throughput_and_a_third_of_the_latency() {
    let summary = throughput_summary(&phase4());
    assert_eq!(summary.scaling.len(), 1);
    let scaling = summary.scaling[0];
    assert_eq!((scaling.from_tasks, scaling.to_tasks), (1, 2));
    close(scaling.throughput_ratio, 1.17, 0.005);
    close(scaling.latency_ratio.unwrap(), 3.0, 0.1);
    assert!(scaling.efficiency < 0.6, "two tasks did not do twice the work: they were not asked to");
    let (overall, _) = latency_ranges(&phase4());
    let p95 = overall.p95.unwrap();
    assert!((p95.min, p95.max) == (364.0, 793.0));
}

#[test]
fn both_pairs_of_figures_imply_the_same_think_time() {
    let of =
        |throughput, response_time| think_time(ThinkTimeEvidence { users: 200.0, throughput, response_time }).unwrap();
    close(of(222.04, 0.075_28), 0.82, 0.01);
    close(of(190.49, 0.232_05), 0.82, 0.01);

    let inferred = think_time_of(&phase4()).unwrap();
    assert!(inferred.same, "{inferred:?}");
    close(inferred.seconds, 0.82, 0.01);
    close(throughput_bound(200.0, inferred.seconds).unwrap(), 243.0, 1.5);
}

#[test]
fn the_ceiling_was_the_generators_and_says_nothing_about_capacity() {
    let runs = phase4();
    let inferred = think_time_of(&runs);
    for scaled in &runs[2..] {
        let evidence = capacity_evidence_of(scaled, inferred.as_ref()).unwrap();
        assert!(evidence.void, "{evidence:?}");
        close(evidence.users, 200.0, 0.0);
        close(evidence.bound.unwrap(), 243.0, 1.5);
        assert!(evidence.share_of_bound.unwrap() > 0.9);
        // However fast the system were, these users would not have reached even 10 % more.
        assert!(evidence.throughput_at(0.0).unwrap() < evidence.throughput * 1.1);
    }
    for saturated in &runs[..2] {
        let evidence = capacity_evidence_of(saturated, inferred.as_ref()).unwrap();
        assert!(!evidence.void, "one task was saturated, and that the runs do say: {evidence:?}");
    }
}

#[test]
fn two_task_counts_identify_no_scaling_law() {
    let points: Vec<UslPoint> = phase4()
        .iter()
        .map(|run| UslPoint { n: f64::from(run.tasks_per_service.unwrap()), throughput: run.throughput.unwrap() })
        .collect();
    assert_eq!(fit_usl(&points), Err(UslRefusal::TooFewLevels { distinct: 2 }));
}

#[test]
fn the_difference_between_one_and_two_tasks_is_beyond_the_noise_of_the_runs() {
    let runs = phase4();
    let comparison = compare(&runs[..2], &runs[2..], None);
    let throughput = comparison.metrics.iter().find(|found| found.metric.quantity == Quantity::Throughput).unwrap();
    assert_eq!(throughput.verdict, Verdict::Faster);
    close(throughput.difference, 0.169, 0.001);
    let same = compare(&runs[2..4], &runs[3..], None);
    assert!(same.metrics.iter().all(|found| found.verdict == Verdict::NotDistinguishable));
}

#[test]
fn nine_errors_have_an_exact_bound_and_owners() {
    let rate = ErrorRate::of(9, 379_269);
    close(rate.rate * 100.0, 0.0024, 0.000_05);
    // Garwood (1936): 9 events are at most 15.705 at 95 %.
    close(rate.upper_bound * 379_269.0, 15.705, 0.002);
    close(rate.upper_bound * 100.0, 0.004_14, 0.000_01);
    close(exact_upper_bound(0, 379_269, 0.95) * 379_269.0, 3.0, 0.005);

    let failure = |status, count| FailureCount {
        failure: Failure { status: Some(status), code: "unknown".into(), answerer: Answerer::Unknown },
        count,
    };
    let mut runs = phase4();
    runs[0].requests = 379_269;
    runs[0].failures = vec![failure(502, 3), failure(401, 3), failure(400, 3)];
    let table = error_table(&runs);
    assert_eq!((table.total.errors, table.total.requests), (9, 379_269));
    let owners: Vec<_> = table.owners.iter().map(|row| (row.owner, row.rate.errors)).collect();
    assert_eq!(owners, [(Owner::ClientExpected, 6), (Owner::Balancer, 3)]);
}
