//! Whether the driver was the bottleneck, and what else a reader must know. Every sentence has its numbers.
//!
//! A run is void when one of these holds over its measured seconds:
//! - a sending thread was busy at least [`BUSY_THREAD`] of the time: it could not have sent more;
//! - open model, where lateness is a part of the latency: requests began late by more than [`LATE_SHARE`] of the latency, in the
//!   median (and more than [`LATE_MEDIAN_MS`]) or in the 99th percentile (and more than [`LATE_P99_MS`]);
//! - closed model, where lateness adds to the think time: they began late by more than [`LATE_SHARE`] of thinking and waiting
//!   together, on average (and more than [`LATE_MEDIAN_MS`]), which takes as much off the throughput;
//! - several virtual users sent as one and the same person;
//! - it mostly failed, as `envelope::analysis` has it.

use std::time::Duration;

use envelope::analysis::{NOTHING_ENDED, NOTHING_MEASURED, broken, mostly_broken, single_identity};
use envelope::result::{Interval, Latencies, Work};

use crate::scenario::{Model, Scenario};
use envelope::result::SET_UP;

/// A thread that is busy for this share of its time is a bottleneck.
const BUSY_THREAD: f64 = 0.9;
/// Lateness matters from this share of what is measured on.
const LATE_SHARE: f64 = 0.05;
/// A median lateness of tokio's timer resolution is no sign of overload.
const LATE_MEDIAN_MS: f64 = 1.0;
/// Lateness that a busy machine's scheduler causes now and then.
const LATE_P99_MS: f64 = 10.0;

/// What was seen over the measured seconds.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) seconds: u32,
    work: Work,
    latency: Latencies,
    lateness: Latencies,
    /// Requests that failed, other than being shed.
    broken: u64,
    busy_vus: u64,
    pub(super) cpu_seconds: f64,
    /// CPU seconds by thread.
    pub(super) threads: Vec<f64>,
}

impl Measured {
    pub(super) fn of(threads: usize) -> Self {
        Self { threads: vec![0.0; threads], ..Self::default() }
    }

    pub(super) fn add(&mut self, interval: &Interval) {
        self.seconds += 1;
        self.work.offered += interval.work.offered;
        self.work.started += interval.work.started;
        self.work.completed += interval.work.completed;
        self.work.dropped += interval.work.dropped;
        self.busy_vus += u64::from(interval.active_vus);
        self.cpu_seconds += interval.generator.cpu_seconds;
        self.lateness.merge(&interval.generator.lateness);
        for (name, endpoint) in &interval.endpoints {
            if name != SET_UP {
                self.latency.merge(&endpoint.latency);
                self.latency.merge(&endpoint.failed_latency);
                self.broken += broken(&endpoint.failures);
            }
        }
    }

    pub(super) fn thread_cpu(&mut self, thread: usize, used: Duration) {
        if let Some(cpu) = self.threads.get_mut(thread) {
            *cpu += used.as_secs_f64();
        }
    }
}

/// What is said about a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) void: Vec<String>,
    pub(super) warnings: Vec<String>,
}

pub(super) fn judge(measured: &Measured, scenario: &Scenario, identities: u64) -> Verdict {
    let mut verdict = Verdict::default();
    if measured.seconds == 0 {
        verdict.void.push(NOTHING_MEASURED.to_owned());
        return verdict;
    }
    if measured.work.completed == 0 {
        verdict.void.push(NOTHING_ENDED.to_owned());
    }
    verdict.void.extend(mostly_broken(measured.broken, measured.latency.count()));
    busy_threads(measured, &mut verdict);
    lateness(measured, scenario, &mut verdict);
    dropped(measured, scenario, &mut verdict);
    match single_identity(identities, scenario.virtual_users()) {
        Some(reason) => verdict.void.push(reason),
        None if identities == 1 => verdict.warnings.push("One person sent all requests.".to_owned()),
        None => {}
    }
    verdict
}

fn busy_threads(measured: &Measured, verdict: &mut Verdict) {
    let busiest = measured.threads.iter().copied().fold(0.0, f64::max) / f64::from(measured.seconds);
    if busiest >= BUSY_THREAD {
        verdict.void.push(format!(
            "The driver was the bottleneck: a sending thread was busy {:.0} % of the measured time (from {:.0} % on a run is void); \
             use more threads or another machine.",
            busiest * 100.0,
            BUSY_THREAD * 100.0
        ));
    }
}

fn lateness(measured: &Measured, scenario: &Scenario, verdict: &mut Verdict) {
    let at = |histogram: &Latencies, percent| histogram.percentile_ms(percent).unwrap_or(0.0);
    let (late, latency) = (&measured.lateness, &measured.latency);
    let late_p99 = at(late, 99.0);
    match &scenario.model {
        Model::Open { .. } => {
            let mut judge = |name, late, latency, floor| {
                if is_late(late, latency, floor) {
                    verdict.void.push(too_late(name, late, latency, "latency", floor));
                }
            };
            judge("in the median", at(late, 50.0), at(latency, 50.0), LATE_MEDIAN_MS);
            judge("in the 99th percentile", late_p99, at(latency, 99.0), LATE_P99_MS);
        }
        Model::Closed { think_time, .. } => {
            let cycle = latency.mean_ms().unwrap_or(0.0) + think_time.mean_seconds * 1_000.0;
            let late_mean = late.mean_ms().unwrap_or(0.0);
            if is_late(late_mean, cycle, LATE_MEDIAN_MS) {
                verdict.void.push(too_late("on average", late_mean, cycle, "thinking and waiting", LATE_MEDIAN_MS));
            } else if is_late(late_p99, at(latency, 99.0), LATE_P99_MS) {
                verdict.warnings.push(format!(
                    "The machine let the driver wait: requests began up to {late_p99:.1} ms late (99th percentile). Answers can have \
                     been read as late, so that high percentiles of latency may be too high by that much."
                ));
            }
        }
    }
}

fn is_late(late_ms: f64, whole_ms: f64, floor_ms: f64) -> bool {
    late_ms > floor_ms && late_ms > LATE_SHARE * whole_ms
}

fn too_late(how: &str, late_ms: f64, whole_ms: f64, whole: &str, floor_ms: f64) -> String {
    format!(
        "The driver was the bottleneck: requests began late, by {late_ms:.1} ms {how}, which is {:.0} % of {whole_ms:.1} ms of \
         {whole} (more than {floor_ms:.0} ms and {:.0} % make a run void).",
        late_ms / whole_ms.max(f64::MIN_POSITIVE) * 100.0,
        LATE_SHARE * 100.0
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn dropped(measured: &Measured, scenario: &Scenario, verdict: &mut Verdict) {
    let Model::Open { max_vus, .. } = scenario.model else { return };
    let Work { offered, dropped, .. } = measured.work;
    if dropped == 0 {
        return;
    }
    let share = dropped as f64 / offered.max(1) as f64 * 100.0;
    let rate = offered as f64 / f64::from(measured.seconds);
    let mean_ms = measured.latency.mean_ms().unwrap_or(0.0);
    let busy = measured.busy_vus as f64 / f64::from(measured.seconds);
    // Little's law: what is in flight is rate times latency.
    let needed = rate * mean_ms / 1_000.0;
    let whose = if verdict.void.is_empty() {
        "The driver kept up, so this is the target's doing: it answers more slowly than requests arrive"
    } else {
        "The driver did not keep up (see above), so this says nothing about the target"
    };
    verdict.warnings.push(format!(
        "{dropped} of {offered} arrivals ({share:.2} %) were dropped because all {max_vus} virtual users were busy. {whose}. At \
         {rate:.1} arrivals a second and a mean latency of {mean_ms:.1} ms, {needed:.0} requests would be in flight; {busy:.0} were."
    ));
}

#[cfg(test)]
mod tests {
    use envelope::result::{Answerer, EndpointInterval, Failure, FailureCount, GeneratorInterval};

    use super::*;
    use crate::scenario::open;

    fn latencies(millis: &[f64]) -> Latencies {
        let mut latencies = Latencies::new();
        for ms in millis {
            latencies.record(Duration::from_secs_f64(ms / 1_000.0));
        }
        latencies
    }

    fn measured(latency_ms: &[f64], lateness_ms: &[f64], dropped: u64, cpu: f64) -> Measured {
        let mut measured = Measured::of(1);
        let completed = latency_ms.len() as u64;
        let endpoint = EndpointInterval { latency: latencies(latency_ms), ..EndpointInterval::default() };
        measured.add(&Interval {
            work: Work { offered: completed + dropped, started: completed, completed, dropped },
            generator: GeneratorInterval { cpu_seconds: cpu, lateness: latencies(lateness_ms) },
            endpoints: [("login".to_owned(), endpoint)].into(),
            ..Interval::default()
        });
        measured.thread_cpu(0, Duration::from_secs_f64(cpu));
        measured
    }

    fn verdict(measured: &Measured, scenario: &str, identities: u64) -> Verdict {
        judge(measured, &open(scenario).unwrap(), identities)
    }

    #[test]
    fn a_driver_that_keeps_up_voids_nothing() {
        let good = measured(&[5.0, 6.0, 9.0], &[0.1, 0.1, 0.2], 0, 0.3);
        assert_eq!(verdict(&good, "sls", 100), Verdict::default());
    }

    #[test]
    fn a_busy_thread_voids() {
        let busy = measured(&[5.0], &[0.1], 0, 0.95);
        let void = verdict(&busy, "sls", 100).void;
        assert!(void.len() == 1 && void[0].contains("95 %"), "{void:?}");
    }

    #[test]
    fn lateness_voids_only_where_it_shows() {
        assert_eq!(
            verdict(&measured(&[20.0; 9], &[5.0; 9], 0, 0.1), "sls", 9).void.len(),
            1,
            "a quarter of the median"
        );
        assert_eq!(verdict(&measured(&[500.0; 9], &[5.0; 9], 0, 0.1), "sls", 9).void.len(), 0, "a hundredth");
        assert_eq!(verdict(&measured(&[500.0; 9], &[50.0; 9], 0, 0.1), "sls", 9).void.len(), 2, "median and p99");
    }

    #[test]
    fn in_a_closed_model_lateness_voids_where_it_takes_off_throughput_and_is_said_where_it_may_show() {
        let closed = |latency: &[f64], late: &[f64]| {
            let verdict = verdict(&measured(latency, late, 0, 0.1), "smoke", 9);
            (verdict.void.len(), verdict.warnings.len())
        };
        assert_eq!(closed(&[20.0; 9], &[5.0; 9]), (0, 0), "a hundredth of 520 ms");
        assert_eq!(closed(&[20.0; 9], &[50.0; 9]), (1, 0), "a tenth of it");
        assert_eq!(
            closed(&[20.0; 100], &[[0.1; 97].as_slice(), &[30.0; 3]].concat()),
            (0, 1),
            "rarely, but as long as the latency"
        );
        assert_eq!(closed(&[2_000.0; 100], &[[0.1; 97].as_slice(), &[30.0; 3]].concat()), (0, 0), "it does not show");
    }

    #[test]
    fn drops_are_laid_at_the_door_of_whoever_was_slow() {
        let target = verdict(&measured(&[3_000.0; 50], &[0.1; 50], 50, 0.1), "sls", 9);
        assert!(target.void.is_empty() && target.warnings[0].contains("50 of 100 arrivals (50.00 %)"), "{target:?}");
        assert!(target.warnings[0].contains("the target's doing"));
        let driver = verdict(&measured(&[3.0; 50], &[0.1; 50], 50, 1.0), "sls", 9);
        assert!(driver.warnings[0].contains("says nothing about the target"), "{driver:?}");
    }

    #[test]
    fn a_target_that_mostly_fails_voids_unless_it_sheds() {
        let failing = |status, code: &str, failed: u64| {
            let failure = Failure { status: Some(status), code: code.into(), answerer: Answerer::Task };
            let mut measured = Measured::of(1);
            let endpoint = EndpointInterval {
                latency: latencies(&[5.0; 10]),
                failed_latency: latencies(&vec![1.0; usize::try_from(failed).unwrap()]),
                failures: vec![FailureCount { failure, count: failed }],
                ..EndpointInterval::default()
            };
            measured.add(&Interval {
                work: Work { offered: 20, started: 20, completed: 20, dropped: 0 },
                endpoints: [("login".to_owned(), endpoint)].into(),
                ..Interval::default()
            });
            verdict(&measured, "sls", 9).void
        };
        assert!(failing(500, "internal", 10)[0].starts_with("10 of 20 requests failed"));
        assert!(failing(500, "internal", 9).is_empty());
        assert!(failing(503, "hashing_busy", 90).is_empty(), "shed on purpose");
    }

    #[test]
    fn one_person_for_all_virtual_users_voids() {
        let fine = measured(&[5.0], &[0.1], 0, 0.1);
        assert!(verdict(&fine, "baseline-mix", 1).void[0].contains("All 200 virtual users sent as one person"));
        assert!(verdict(&fine, "baseline-mix", 2).void.is_empty());
    }

    #[test]
    fn nothing_measured_is_no_result() {
        assert_eq!(verdict(&Measured::of(1), "sls", 9).void.len(), 1);
    }
}
