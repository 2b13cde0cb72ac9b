//! From points to intervals, one pass, in memory that does not grow.

use std::collections::{BTreeMap, BTreeSet};

use super::point::{Metric, Point, Tags};
use crate::result::{Failure, FailureCount, Interval};

/// Points come a little out of order, because k6 flushes in batches; a second is closed when one this much later has come.
const OPEN_SECONDS: u32 = 5;
/// A clock that jumps further is not believed: it would make seconds without end.
const DAY_SECONDS: u32 = 86_400;
/// More endpoints than this are counted together: their histograms would fill the memory.
const MOST_ENDPOINTS: usize = 100;
/// What the rest is called.
pub(super) const OTHER_ENDPOINTS: &str = "other";

/// What the points say beside the seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct K6Facts {
    /// Unix time of second 0.
    pub first_unix_second: i64,
    /// Most virtual users.
    pub most_vus: u32,
    /// Iterations that ended.
    pub iterations: u64,
    /// Iterations that were asked for and never begun: only arrival-rate executors have them.
    pub dropped_iterations: u64,
    /// Requests.
    pub requests: u64,
    /// All requests' durations added up, in milliseconds.
    pub request_ms: f64,
    /// All iterations' durations added up, in milliseconds.
    pub iteration_ms: f64,
    /// First and last second with a request of each phase, by the tag `phase` of Datum's scripts.
    pub phases: BTreeMap<String, (u32, u32)>,
    /// Points so late that they were counted in a later second.
    pub late_points: u64,
    /// Points dated more than a day after all before them: not counted at all.
    pub misdated_points: u64,
    /// Whether there were so many endpoints that some are counted as `other`.
    pub endpoints_merged: bool,
}

/// Collects points into intervals and gives each to a sink once it is complete.
pub(super) struct Collector {
    pub(super) facts: K6Facts,
    open: BTreeMap<u32, Open>,
    /// The latest second so far.
    newest: u32,
    /// Seconds before this one are closed.
    closed_before: u32,
    endpoints: BTreeSet<String>,
    /// Whether the script counts failures itself: then the responses' own signs of failure are not counted again.
    counts_failures: bool,
}

#[derive(Default)]
struct Open {
    interval: Interval,
    failures: BTreeMap<String, BTreeMap<Failure, u64>>,
}

impl Collector {
    pub(super) fn new(first_unix_second: i64, counts_failures: bool) -> Self {
        Self {
            facts: K6Facts { first_unix_second, ..K6Facts::default() },
            open: BTreeMap::new(),
            newest: 0,
            closed_before: 0,
            endpoints: BTreeSet::new(),
            counts_failures,
        }
    }

    pub(super) fn add(&mut self, point: &Point, sink: &mut dyn FnMut(Interval)) {
        if point.tags.is_outside_the_load() {
            return;
        }
        let since = point.unix_ms.div_euclid(1_000).saturating_sub(self.facts.first_unix_second).max(0);
        let Some(mut second) =
            u32::try_from(since).ok().filter(|second| *second <= self.newest.saturating_add(DAY_SECONDS))
        else {
            self.facts.misdated_points += 1;
            return;
        };
        self.newest = self.newest.max(second);
        if second < self.closed_before {
            second = self.closed_before;
            self.facts.late_points += 1;
        }
        self.close_before((second + 1).saturating_sub(OPEN_SECONDS), sink);

        let count = whole(point.value);
        match &point.metric {
            Metric::Vus => {
                let vus = u32::try_from(count).unwrap_or(u32::MAX);
                self.facts.most_vus = self.facts.most_vus.max(vus);
                self.second(second).interval.active_vus = vus;
            }
            Metric::Iterations => {
                self.facts.iterations += count;
                let work = &mut self.second(second).interval.work;
                (work.offered, work.started, work.completed) =
                    (work.offered + count, work.started + count, work.completed + count);
            }
            Metric::DroppedIterations => {
                self.facts.dropped_iterations += count;
                let work = &mut self.second(second).interval.work;
                (work.offered, work.dropped) = (work.offered + count, work.dropped + count);
            }
            Metric::IterationDuration => self.facts.iteration_ms += point.value,
            Metric::RequestDuration => self.request(second, point),
            Metric::Failures => {
                let endpoint = self.endpoint(&point.tags);
                let failures = self.second(second).failures.entry(endpoint).or_default();
                *failures.entry(point.tags.failure()).or_default() += count;
            }
            Metric::Unattributed => {
                let endpoint = self.endpoint(&point.tags);
                let interval = &mut self.second(second).interval;
                interval.endpoints.entry(endpoint).or_default().unattributed.record_micros(micros(point.value));
            }
            Metric::Stage(stage) => {
                let endpoint = self.endpoint(&point.tags);
                let stages = &mut self.second(second).interval.endpoints.entry(endpoint).or_default().stages;
                stages.entry(stage.clone()).or_default().record_micros(micros(point.value));
            }
        }
    }

    fn request(&mut self, second: u32, point: &Point) {
        let tags = &point.tags;
        self.facts.requests += 1;
        self.facts.request_ms += point.value;
        if let Some(phase) = &tags.phase {
            let (first, last) = self.facts.phases.entry(phase.clone()).or_insert((second, second));
            (*first, *last) = ((*first).min(second), (*last).max(second));
        }
        let endpoint = self.endpoint(tags);
        let derives_failures = !self.counts_failures;
        let open = self.second(second);
        let into = open.interval.endpoints.entry(endpoint.clone()).or_default();
        if tags.is_expected() {
            into.latency.record_micros(micros(point.value));
        } else {
            into.failed_latency.record_micros(micros(point.value));
            if derives_failures {
                *open.failures.entry(endpoint).or_default().entry(tags.failure()).or_default() += 1;
            }
        }
    }

    fn second(&mut self, second: u32) -> &mut Open {
        let open = self.open.entry(second).or_default();
        open.interval.second = second;
        open
    }

    fn endpoint(&mut self, tags: &Tags) -> String {
        let name = tags.endpoint();
        if !self.endpoints.contains(name.as_ref()) {
            if self.endpoints.len() >= MOST_ENDPOINTS {
                self.facts.endpoints_merged = true;
                return OTHER_ENDPOINTS.to_owned();
            }
            self.endpoints.insert(name.clone().into_owned());
        }
        name.into_owned()
    }

    fn close_before(&mut self, second: u32, sink: &mut dyn FnMut(Interval)) {
        while let Some(entry) = self.open.first_entry() {
            if *entry.key() >= second {
                break;
            }
            let Open { mut interval, failures } = entry.remove();
            for (endpoint, counts) in failures {
                let into = &mut interval.endpoints.entry(endpoint).or_default().failures;
                into.extend(counts.into_iter().map(|(failure, count)| FailureCount { failure, count }));
            }
            sink(interval);
        }
        self.closed_before = self.closed_before.max(second);
    }

    /// Closes what is left.
    pub(super) fn finish(mut self, sink: &mut dyn FnMut(Interval)) -> K6Facts {
        self.close_before(u32::MAX, sink);
        self.facts
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and negative counts are none")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and negative times are none")]
fn micros(ms: f64) -> u64 {
    (ms * 1_000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(metric: Metric, unix_ms: i64, value: f64, tags: &[(&str, &str)]) -> Point {
        let mut of = Tags::default();
        for (name, value) in tags {
            of.set(name, value);
        }
        Point { metric, unix_ms, value, tags: of }
    }

    fn collect(counts_failures: bool, points: &[Point]) -> (Vec<Interval>, K6Facts) {
        let (mut collector, mut intervals) = (Collector::new(0, counts_failures), Vec::new());
        for point in points {
            collector.add(point, &mut |interval| intervals.push(interval));
        }
        let facts = collector.finish(&mut |interval| intervals.push(interval));
        (intervals, facts)
    }

    #[test]
    fn points_out_of_order_find_their_second() {
        let request = |ms| point(Metric::RequestDuration, ms, 5.0, &[("endpoint", "login")]);
        let (intervals, facts) = collect(false, &[request(2_500), request(100), request(2_600), request(9_000)]);
        let counts: Vec<_> =
            intervals.iter().map(|interval| (interval.second, interval.endpoints["login"].latency.count())).collect();
        assert_eq!(counts, [(0, 1), (2, 2), (9, 1)]);
        assert_eq!((facts.requests, facts.late_points), (4, 0));
    }

    #[test]
    fn a_very_late_point_is_counted_and_said() {
        let request = |ms| point(Metric::RequestDuration, ms, 5.0, &[("endpoint", "login")]);
        let (intervals, facts) = collect(false, &[request(100), request(60_000), request(200)]);
        let total: u64 = intervals.iter().map(|interval| interval.endpoints["login"].latency.count()).sum();
        assert_eq!((total, facts.late_points), (3, 1));
        assert!(intervals.is_sorted_by_key(|interval| interval.second));
    }

    #[test]
    fn failures_are_counted_once() {
        let tags = [("endpoint", "login"), ("status", "503"), ("expected_response", "false")];
        let counted = [("endpoint", "login"), ("status", "503"), ("code", "hashing_busy"), ("answerer", "task")];
        let points = [point(Metric::RequestDuration, 100, 5.0, &tags), point(Metric::Failures, 1_100, 1.0, &counted)];
        let codes = |counts_failures| {
            let (intervals, _) = collect(counts_failures, &points[..if counts_failures { 2 } else { 1 }]);
            let failures = intervals.iter().flat_map(|interval| &interval.endpoints["login"].failures);
            failures.map(|found| (found.failure.code.clone(), found.count)).collect::<Vec<_>>()
        };
        assert_eq!(codes(true), [("hashing_busy".into(), 1)]);
        assert_eq!(codes(false), [("unknown".into(), 1)]);
    }

    #[test]
    fn endpoints_without_number_are_counted_together() {
        let points: Vec<_> = (0..300)
            .map(|index| point(Metric::RequestDuration, 100, 1.0, &[("endpoint", &format!("e{index}"))]))
            .collect();
        let (intervals, facts) = collect(false, &points);
        assert_eq!(intervals[0].endpoints.len(), MOST_ENDPOINTS + 1);
        assert_eq!(intervals[0].endpoints[OTHER_ENDPOINTS].latency.count(), 200);
        assert!(facts.endpoints_merged);
    }

    #[test]
    fn a_clock_that_jumps_makes_no_seconds() {
        let points = [0, i64::MAX, i64::MIN, 1_000].map(|ms| point(Metric::Vus, ms, 1.0, &[]));
        let (intervals, facts) = collect(false, &points);
        assert_eq!(intervals.iter().map(|interval| interval.second).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(facts.misdated_points, 1);
    }

    #[test]
    fn set_up_is_no_load() {
        let (intervals, facts) =
            collect(false, &[point(Metric::RequestDuration, 0, 1.0, &[("group", "::setup"), ("endpoint", "x")])]);
        assert!(intervals.is_empty() && facts.requests == 0);
    }
}
