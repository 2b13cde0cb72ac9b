//! What is written and shown while the load goes on.

use std::path::Path;

use envelope::result::{FolderError, IntervalWriter, Latencies, SET_UP, reserve_capsule};
use envelope::run::LatencySummary;
use loadgen::run::Event;
use loadgen::scenario::Schedule;
use tokio_util::sync::CancellationToken;

use super::headline::percentile;
use super::progress::Progress;
use super::run::RunSpec;
use super::system::CpuWatch;

/// The record of one run in its folder.
pub(super) struct Recording<'a> {
    pub(super) folder: &'a Path,
    pub(super) cpu: Option<CpuWatch>,
    /// Why the record could not be written any more.
    pub(super) failed: Option<FolderError>,
    writer: IntervalWriter,
    schedule: Schedule,
    progress: Progress,
    began: bool,
    tally: Tally,
    on_second: &'a mut dyn FnMut(u32),
}

impl<'a> Recording<'a> {
    /// Begins it in a new folder. The capsule's room is taken first: the end can be written whatever the record needs.
    pub(super) fn new(
        spec: &RunSpec,
        folder: &'a Path,
        cpu: Option<CpuWatch>,
        on_second: &'a mut dyn FnMut(u32),
    ) -> Result<Self, FolderError> {
        let schedule = spec.scenario.schedule();
        reserve_capsule(folder)?;
        Ok(Self {
            folder,
            cpu,
            failed: None,
            writer: IntervalWriter::create(folder)?,
            progress: Progress::new(schedule.clone()),
            schedule,
            began: false,
            tally: Tally::default(),
            on_second,
        })
    }

    /// An error ends the run: seconds that are not on disk are no result.
    pub(super) fn take(&mut self, event: Event, stop: &CancellationToken) {
        match event {
            Event::SetUp { ready, of } => self.progress.set_up(ready, of),
            Event::Began { .. } => self.began = true,
            Event::Interval(interval) => {
                self.look(interval.second);
                self.progress.second(&interval);
                if self.failed.is_none() {
                    match self.writer.append(&interval) {
                        Ok(()) if self.schedule.is_measured(interval.second) => self.tally.add(&interval),
                        Ok(()) => {}
                        Err(error) => {
                            self.failed = Some(error);
                            stop.cancel();
                        }
                    }
                }
                (self.on_second)(interval.second);
            }
        }
    }

    /// Whether a request of the scenario can have been sent.
    pub(super) fn began(&self) -> bool {
        self.began
    }

    /// Takes the progress off the screen.
    pub(super) fn end(&mut self) {
        self.progress.end();
    }

    /// What was measured in one line, for when no file can tell it.
    pub(super) fn in_a_line(&self) -> String {
        self.tally.in_a_line()
    }

    /// From the end of the last second before the measured phase to the end of its last one.
    fn look(&mut self, second: u32) {
        if (self.schedule.is_measured(second + 1) || self.schedule.is_measured(second))
            && let Some(cpu) = &mut self.cpu
        {
            cpu.look();
        }
    }
}

/// The measured seconds added up.
#[derive(Debug, Default)]
struct Tally {
    seconds: u32,
    latencies: Latencies,
    failed: u64,
}

impl Tally {
    fn add(&mut self, interval: &envelope::result::Interval) {
        self.seconds += 1;
        for (_, endpoint) in interval.endpoints.iter().filter(|(name, _)| *name != SET_UP) {
            self.latencies.merge(&endpoint.latency);
            self.failed += endpoint.failed_latency.count();
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    fn in_a_line(&self) -> String {
        let requests = self.latencies.count() + self.failed;
        let rate = requests as f64 / f64::from(self.seconds.max(1));
        let summary = LatencySummary::of(self.latencies.clone());
        let at = |percent| percentile(&summary, percent);
        format!(
            "measured      {requests} requests in {} s ({rate:.1} req/s), p50 {}, p95 {}, p99 {}, errors {}",
            self.seconds,
            at(50.0),
            at(95.0),
            at(99.0),
            self.failed
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use envelope::result::{EndpointInterval, Interval};

    use super::*;
    use crate::bench::drivers::Driver;

    fn interval(second: u32) -> Interval {
        let mut endpoint = EndpointInterval::default();
        (0..10).for_each(|_| endpoint.latency.record(Duration::from_millis(20)));
        endpoint.failed_latency.record(Duration::from_millis(1));
        Interval { second, endpoints: [("login".to_owned(), endpoint)].into(), ..Interval::default() }
    }

    #[test]
    fn what_was_measured_is_told_without_any_file() {
        let out = tempfile::tempdir().expect("a folder");
        let scenario = loadgen::scenario::open("baseline-mix").expect("a scenario");
        let measured = scenario.schedule().phases()[2].from_second;
        let spec = RunSpec { driver: Driver::Native, ..RunSpec::new(scenario, out.path()) };
        let mut on_second = |_| {};
        let mut recording = Recording::new(&spec, out.path(), None, &mut on_second).expect("begun");
        let stop = CancellationToken::new();
        for second in [0, measured, measured + 1] {
            recording.take(Event::Interval(Box::new(interval(second))), &stop);
        }
        let line = recording.in_a_line();
        assert!(
            line.contains("22 requests in 2 s (11.0 req/s), p50 20.0 ms, p95 ≈20.0 ms, p99 too few"),
            "the ramp is not measured: {line}"
        );
        assert!(line.ends_with("errors 2"), "{line}");
        assert!(!stop.is_cancelled());
    }
}
