//! What one thread counts in one second.
//!
//! Memory does not grow with a run: a second's histograms are handed on when it has passed, and histograms of what did
//! not happen are never made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use envelope::result::{EndpointInterval, Failure, FailureCount, Interval, Latencies, Work};
use tokio::sync::mpsc::UnboundedSender;

use super::anatomy::Parts;
use super::identities::People;
use super::usage::{self, CpuMeter};
use crate::client::STAGES;
use crate::scenario::Endpoint;
use crate::user::Exchange;
use envelope::result::SET_UP;

/// The endpoints of the mix, and what is outside it.
const SLOTS: usize = Endpoint::ALL.len() + 1;

/// Distinct failures of one endpoint in one second; further ones are counted as `unknown`, so that a server that makes up
/// codes fills no memory.
const MAX_CAUSES: usize = 64;

/// A second of one thread.
#[derive(Debug, Default)]
pub(super) struct Second {
    pub(super) work: Work,
    pub(super) active: u32,
    pub(super) lateness: Option<Latencies>,
    /// The longest stretch that ended in it, in which requests were under way and none ended.
    silence: Option<Duration>,
    slots: [Slot; SLOTS],
    /// CPU of this thread.
    pub(super) thread_cpu: Duration,
    /// CPU of the whole process; only the first thread looks.
    pub(super) process_cpu: Duration,
}

#[derive(Debug, Default)]
struct Slot {
    latency: Option<Latencies>,
    failed: Option<Latencies>,
    failures: BTreeMap<Failure, u64>,
    stages: [Option<Latencies>; STAGES.len()],
    unattributed: Option<Latencies>,
    parts: Parts,
}

fn count(histogram: &mut Option<Latencies>, latency: Duration) {
    histogram.get_or_insert_default().record(latency);
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.latency.is_none() && self.failed.is_none()
    }

    fn record(&mut self, exchange: &Exchange, counted_from: Instant) {
        let latency = exchange.ended.saturating_duration_since(counted_from);
        match &exchange.outcome {
            Ok(timing) => {
                count(&mut self.latency, latency);
                self.parts.record(exchange, timing, counted_from);
                for (stage, micros) in timing.stages() {
                    self.stages[stage].get_or_insert_default().record_micros(micros);
                }
                if let Some(total) = timing.total() {
                    let seen = exchange.ended.saturating_duration_since(exchange.started);
                    count(&mut self.unattributed, seen.saturating_sub(Duration::from_micros(total)));
                }
            }
            Err(failure) => {
                count(&mut self.failed, latency);
                let known = self.failures.len() < MAX_CAUSES || self.failures.contains_key(failure);
                let cause =
                    if known { failure.clone() } else { Failure { code: "unknown".to_owned(), ..failure.clone() } };
                *self.failures.entry(cause).or_default() += 1;
            }
        }
    }

    fn merge_into(self, interval: &mut EndpointInterval) {
        let merge = |into: &mut Latencies, from: Option<Latencies>| {
            if let Some(from) = from {
                if into.is_empty() { *into = from } else { into.merge(&from) }
            }
        };
        merge(&mut interval.latency, self.latency);
        merge(&mut interval.failed_latency, self.failed);
        merge(&mut interval.unattributed, self.unattributed);
        self.parts.merge_into(&mut interval.anatomy);
        for (name, stage) in STAGES.iter().zip(self.stages) {
            if let Some(stage) = stage {
                merge(interval.stages.entry((*name).to_owned()).or_default(), Some(stage));
            }
        }
        for (failure, count) in self.failures {
            match interval.failures.iter_mut().find(|known| known.failure == failure) {
                Some(known) => known.count += count,
                None => interval.failures.push(FailureCount { failure, count }),
            }
        }
    }
}

impl Second {
    fn is_empty(&self) -> bool {
        self.work == Work::default() && self.slots.iter().all(Slot::is_empty)
    }

    /// Adds what this thread counted to the second of all threads.
    pub(super) fn merge_into(self, interval: &mut Interval) {
        interval.work.offered += self.work.offered;
        interval.work.started += self.work.started;
        interval.work.completed += self.work.completed;
        interval.work.dropped += self.work.dropped;
        interval.active_vus += self.active;
        interval.generator.cpu_seconds += self.process_cpu.as_secs_f64();
        // All were silent only as long as the thread that was silent for the shortest time.
        let silence = self.silence.map(|silence| u32::try_from(silence.as_millis()).unwrap_or(u32::MAX));
        interval.longest_silence_ms = match (interval.longest_silence_ms, silence) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if let Some(lateness) = self.lateness {
            interval.generator.lateness.merge(&lateness);
        }
        for (index, slot) in self.slots.into_iter().enumerate() {
            if !slot.is_empty() {
                let name = Endpoint::ALL.get(index).map_or(SET_UP, |endpoint| endpoint.name());
                slot.merge_into(interval.endpoints.entry(name.to_owned()).or_default());
            }
        }
    }
}

/// A second that has passed.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) thread: usize,
    pub(super) second: u32,
    pub(super) counted: Box<Second>,
}

/// Counts for one thread. Its lock is never contended: only that thread takes it.
#[derive(Clone)]
pub(super) struct Recorder(Arc<Mutex<Counting>>);

struct Counting {
    thread: usize,
    epoch: Instant,
    number: u32,
    current: Box<Second>,
    active: u32,
    in_flight: u64,
    /// When the last request ended, or the first one began after none was under way.
    silent_since: Instant,
    people: People,
    thread_cpu: CpuMeter,
    process_cpu: Option<CpuMeter>,
    passed: UnboundedSender<Passed>,
}

impl Recorder {
    /// Second 0 begins at `epoch`. Must be made on the thread that it counts for.
    pub(super) fn new(thread: usize, epoch: Instant, people: People, passed: UnboundedSender<Passed>) -> Self {
        Self(Arc::new(Mutex::new(Counting {
            thread,
            epoch,
            number: 0,
            current: Box::default(),
            active: 0,
            in_flight: 0,
            silent_since: epoch,
            people,
            thread_cpu: CpuMeter::start(usage::Of::Thread),
            process_cpu: (thread == 0).then(|| CpuMeter::start(usage::Of::Process)),
            passed,
        })))
    }

    fn counting(&self, now: Instant) -> MutexGuard<'_, Counting> {
        let mut counting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counting.pass_to(now);
        counting
    }

    /// Hands on every second that has passed.
    pub(super) fn tick(&self, now: Instant) {
        drop(self.counting(now));
    }

    /// An iteration begins, `late` after it was meant to.
    pub(super) fn began(&self, now: Instant, late: Duration) {
        let mut counting = self.counting(now);
        counting.current.work.offered += 1;
        counting.current.work.started += 1;
        if counting.in_flight == 0 {
            counting.silent_since = now;
        }
        counting.in_flight += 1;
        count(&mut counting.current.lateness, late);
    }

    /// An arrival found every virtual user busy.
    pub(super) fn dropped(&self, now: Instant) {
        let mut counting = self.counting(now);
        counting.current.work.offered += 1;
        counting.current.work.dropped += 1;
    }

    /// An iteration has ended; its latency counts from `counted_from`.
    pub(super) fn ended(&self, endpoint: Endpoint, exchange: &Exchange, counted_from: Instant) {
        let mut counting = self.counting(exchange.ended);
        counting.current.work.completed += 1;
        let silence = exchange.ended.saturating_duration_since(counting.silent_since);
        counting.current.silence = counting.current.silence.max(Some(silence));
        counting.silent_since = exchange.ended;
        counting.in_flight = counting.in_flight.saturating_sub(1);
        counting.current.slots[endpoint as usize].record(exchange, counted_from);
        counting.people.saw(exchange.person);
    }

    /// A request outside the mix has ended.
    pub(super) fn set_up(&self, exchange: &Exchange) {
        self.counting(exchange.ended).current.slots[SLOTS - 1].record(exchange, exchange.started);
    }

    /// A virtual user begins to be active (busy, in an open model).
    pub(super) fn activate(&self) {
        self.counting(Instant::now()).active += 1;
    }

    /// It is active no more.
    pub(super) fn deactivate(&self) {
        let mut counting = self.counting(Instant::now());
        counting.active = counting.active.saturating_sub(1);
    }

    /// Hands on everything, a begun second only if it belongs to the run or something happened in it.
    pub(super) fn finish(&self, now: Instant, seconds: u32) -> People {
        let mut counting = self.counting(now);
        if counting.number < seconds || !counting.current.is_empty() {
            counting.pass();
        }
        std::mem::take(&mut counting.people)
    }
}

impl Counting {
    fn pass_to(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.epoch).as_secs();
        while u64::from(self.number) < elapsed {
            self.pass();
        }
    }

    fn pass(&mut self) {
        let mut counted = std::mem::take(&mut self.current);
        counted.active = self.active;
        counted.thread_cpu = self.thread_cpu.lap();
        counted.process_cpu = self.process_cpu.as_mut().map(CpuMeter::lap).unwrap_or_default();
        // Nobody listens only when the run has been given up.
        let _ = self.passed.send(Passed { thread: self.thread, second: self.number, counted });
        self.number += 1;
    }
}

/// A second in which nothing has been counted yet.
pub(super) fn empty_interval(second: u32) -> Interval {
    Interval { second, ..Interval::default() }
}

#[cfg(test)]
mod tests {
    use envelope::result::Answerer;
    use tokio::sync::mpsc;

    use super::*;
    use crate::client::ServerTiming;
    use crate::user::Person;

    const SECOND: Duration = Duration::from_secs(1);

    fn exchange(started: Instant, ended: Instant, outcome: Result<ServerTiming, Failure>) -> Exchange {
        Exchange { started, ended, outcome, person: Person::Own(0) }
    }

    fn timing(text: &'static str) -> ServerTiming {
        let headers = [(http::HeaderName::from_static("server-timing"), http::HeaderValue::from_static(text))];
        ServerTiming::of(&headers.into_iter().collect())
    }

    fn counted(count: impl FnOnce(&Recorder, Instant)) -> Vec<Interval> {
        let (passed, mut passing) = mpsc::unbounded_channel();
        let epoch = Instant::now();
        let recorder = Recorder::new(0, epoch, People::default(), passed);
        count(&recorder, epoch);
        drop(recorder);
        std::iter::from_fn(|| passing.try_recv().ok())
            .map(|passed| {
                let mut interval = empty_interval(passed.second);
                passed.counted.merge_into(&mut interval);
                interval
            })
            .collect()
    }

    #[test]
    fn silence_is_where_requests_are_under_way_and_none_ends() {
        let intervals = counted(|recorder, epoch| {
            let at = |millis| epoch + Duration::from_millis(millis);
            let run = |from, until| {
                recorder.ended(Endpoint::Login, &exchange(at(from), at(until), Ok(timing("total;dur=5"))), at(from));
            };
            // Nothing is under way until 700 ms: that is no silence. Then two are, and one of them ends at once.
            recorder.began(at(700), Duration::ZERO);
            recorder.began(at(710), Duration::ZERO);
            run(700, 720);
            run(710, 1_900);
            recorder.finish(epoch + SECOND * 3, 3);
        });
        let silences: Vec<_> = intervals.iter().map(|interval| interval.longest_silence_ms).collect();
        assert_eq!(silences, [Some(20), Some(1_180), None]);
    }

    /// A request that was due 500 ms before the driver began it, and then took 20 ms, 5 of them on the server.
    #[test]
    fn latency_counts_from_where_the_model_says_and_the_unattributed_rest_from_the_actual_start() {
        let intervals = counted(|recorder, epoch| {
            let started = epoch + SECOND / 2;
            let late = exchange(started, started + Duration::from_millis(20), Ok(timing("db;dur=4, total;dur=5")));
            recorder.began(started, started - epoch);
            recorder.ended(Endpoint::Login, &late, epoch);
            recorder.finish(epoch + SECOND, 1);
        });
        let [interval] = intervals.as_slice() else { panic!("{intervals:?}") };
        let login = &interval.endpoints["login"];
        let near = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 0.002;
        assert!(near(login.latency.max_ms(), 520.0), "{:?}", login.latency.max_ms());
        assert!(near(login.unattributed.max_ms(), 15.0), "{:?}", login.unattributed.max_ms());
        assert!(near(interval.generator.lateness.max_ms(), 500.0));
        assert!(near(login.stages["db"].max_ms(), 4.0));
        let cut = login.anatomy.at(50.0).unwrap();
        assert_eq!(cut.count, 1);
        let parts = [("client wait", 500.0), ("db", 4.0), ("unattributed", 15.0), ("unnamed", 1.0)];
        assert_eq!(cut.parts_ms, parts.map(|(part, ms)| (part.to_owned(), ms)).into());
        assert!(near(Some(cut.mean_ms), 520.0));
    }

    #[test]
    fn a_request_counts_in_the_second_in_which_it_ended_and_quiet_seconds_are_there() {
        let intervals = counted(|recorder, epoch| {
            recorder.began(epoch, Duration::ZERO);
            let long = exchange(epoch, epoch + SECOND * 5 / 2, Ok(ServerTiming::default()));
            recorder.ended(Endpoint::Upload, &long, epoch);
            recorder.finish(epoch + SECOND * 3, 4);
        });
        let work: Vec<(u64, u64)> = intervals.iter().map(|it| (it.work.started, it.work.completed)).collect();
        assert_eq!(work, [(1, 0), (0, 0), (0, 1), (0, 0)]);
        assert!(intervals[2].endpoints.contains_key("upload") && intervals[1].endpoints.is_empty());
    }

    #[test]
    fn causes_without_end_do_not_fill_the_memory_and_are_all_counted() {
        let intervals = counted(|recorder, epoch| {
            for number in 0..1_000 {
                let failure =
                    Failure { status: Some(500), code: format!("made_up_{number}"), answerer: Answerer::Unknown };
                recorder.ended(Endpoint::GetUser, &exchange(epoch, epoch, Err(failure)), epoch);
            }
            recorder.finish(epoch + SECOND, 1);
        });
        let failures = &intervals[0].endpoints["get-user"].failures;
        assert!(failures.len() <= MAX_CAUSES + 1, "{}", failures.len());
        assert_eq!(failures.iter().map(|it| it.count).sum::<u64>(), 1_000);
        assert_eq!(intervals[0].endpoints["get-user"].failed_latency.count(), 1_000);
    }
}
