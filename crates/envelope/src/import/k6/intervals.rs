//! From points to intervals, one pass, in memory that does not grow.

use std::collections::{BTreeMap, BTreeSet};

use super::point::{Metric, Point, Tags};
use crate::result::{Failure, FailureCount, Interval, SET_UP, Work};

/// Points come a little out of order, because k6 flushes in batches, several a second; a second is closed when one this much
/// later has come.
const OPEN_SECONDS: u32 = 3;
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
    /// Distinct identities that sent requests, where the script counts them.
    pub identities: u64,
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

/// How a script tells of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// By k6's own metrics alone.
    Plain,
    /// By those, and failures by cause in a metric of its own: then the responses' own signs of failure are not counted again.
    WithFailures,
    /// As Datum's scripts do: right answers and others apart, each request of the mix an iteration. They say when the load began;
    /// what was before does not count.
    Datum,
}

/// Collects points into intervals and gives each to a sink once it is complete.
pub(super) struct Collector {
    pub(super) facts: K6Facts,
    /// The beginning of second 0, in milliseconds since 1970.
    origin_ms: i64,
    open: BTreeMap<u32, Open>,
    /// The latest second so far of which something came.
    newest: Option<u32>,
    /// Virtual users, as last told.
    vus: u32,
    /// Seconds before this one are closed.
    closed_before: u32,
    endpoints: BTreeSet<String>,
    telling: Telling,
}

struct Open {
    interval: Interval,
    failures: BTreeMap<String, BTreeMap<Failure, u64>>,
}

impl Collector {
    pub(super) fn new(origin_ms: i64, telling: Telling) -> Self {
        Self {
            facts: K6Facts { first_unix_second: origin_ms.div_euclid(1_000), ..K6Facts::default() },
            origin_ms,
            open: BTreeMap::new(),
            newest: None,
            vus: 0,
            closed_before: 0,
            endpoints: BTreeSet::new(),
            telling,
        }
    }

    /// The latest second of which something came.
    pub(super) fn newest(&self) -> Option<u32> {
        self.newest
    }

    /// The first second that is not closed.
    pub(super) fn closed_before(&self) -> u32 {
        self.closed_before
    }

    pub(super) fn add(&mut self, point: &Point, sink: &mut dyn FnMut(Interval)) {
        if point.tags.is_outside_the_load() {
            return;
        }
        if point.metric == Metric::Identities {
            self.facts.identities += whole(point.value);
            return;
        }
        let since = point.unix_ms.saturating_sub(self.origin_ms).div_euclid(1_000);
        if since < 0 && self.telling == Telling::Datum {
            return;
        }
        let since = since.max(0);
        let Some(mut second) =
            u32::try_from(since).ok().filter(|second| *second <= self.newest.unwrap_or(0).saturating_add(DAY_SECONDS))
        else {
            self.facts.misdated_points += 1;
            return;
        };
        self.newest = self.newest.max(Some(second));
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
                self.vus = vus;
                self.second(second).interval.active_vus = vus;
            }
            Metric::Iterations => {
                self.facts.iterations += count;
                if self.telling != Telling::Datum {
                    completed(&mut self.second(second).interval.work, count);
                }
            }
            Metric::DroppedIterations => {
                self.facts.dropped_iterations += count;
                let work = &mut self.second(second).interval.work;
                (work.offered, work.dropped) = (work.offered + count, work.dropped + count);
            }
            Metric::IterationDuration => self.facts.iteration_ms += point.value,
            Metric::RequestDuration if self.telling != Telling::Datum => {
                self.request(second, point, point.tags.is_expected());
            }
            Metric::Latency if self.telling == Telling::Datum => self.request(second, point, true),
            Metric::FailedLatency if self.telling == Telling::Datum => self.request(second, point, false),
            // The other way of telling the same, and what was known before or is counted above.
            Metric::RequestDuration
            | Metric::Latency
            | Metric::FailedLatency
            | Metric::LoadBegan
            | Metric::Identities => {}
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

    fn request(&mut self, second: u32, point: &Point, is_right: bool) {
        let tags = &point.tags;
        let endpoint = self.endpoint(tags);
        if self.telling == Telling::Datum && endpoint != SET_UP {
            completed(&mut self.second(second).interval.work, 1);
        }
        self.facts.requests += 1;
        self.facts.request_ms += point.value;
        if let Some(phase) = &tags.phase {
            let (first, last) = self.facts.phases.entry(phase.clone()).or_insert((second, second));
            (*first, *last) = ((*first).min(second), (*last).max(second));
        }
        let derives_failures = self.telling == Telling::Plain;
        let open = self.second(second);
        let into = open.interval.endpoints.entry(endpoint.clone()).or_default();
        if is_right {
            into.latency.record_micros(micros(point.value));
        } else {
            into.failed_latency.record_micros(micros(point.value));
            if derives_failures {
                *open.failures.entry(endpoint).or_default().entry(tags.failure()).or_default() += 1;
            }
        }
    }

    fn second(&mut self, second: u32) -> &mut Open {
        let vus = self.vus;
        self.open.entry(second).or_insert_with(|| Open {
            interval: Interval { second, active_vus: vus, ..Interval::default() },
            failures: BTreeMap::new(),
        })
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
    pub(super) fn close_all(&mut self, sink: &mut dyn FnMut(Interval)) {
        self.close_before(u32::MAX, sink);
    }

    /// Closes what is left, and says what is known beside.
    pub(super) fn finish(mut self, sink: &mut dyn FnMut(Interval)) -> K6Facts {
        self.close_all(sink);
        self.facts
    }
}

/// Iterations that ended; that they began is told only then.
fn completed(work: &mut Work, count: u64) {
    (work.offered, work.started, work.completed) = (work.offered + count, work.started + count, work.completed + count);
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

    fn collect(telling: Telling, points: &[Point]) -> (Vec<Interval>, K6Facts) {
        let (mut collector, mut intervals) = (Collector::new(0, telling), Vec::new());
        for point in points {
            collector.add(point, &mut |interval| intervals.push(interval));
        }
        let facts = collector.finish(&mut |interval| intervals.push(interval));
        (intervals, facts)
    }

    #[test]
    fn points_out_of_order_find_their_second() {
        let request = |ms| point(Metric::RequestDuration, ms, 5.0, &[("endpoint", "login")]);
        let (intervals, facts) =
            collect(Telling::Plain, &[request(2_500), request(100), request(2_600), request(9_000)]);
        let counts: Vec<_> =
            intervals.iter().map(|interval| (interval.second, interval.endpoints["login"].latency.count())).collect();
        assert_eq!(counts, [(0, 1), (2, 2), (9, 1)]);
        assert_eq!((facts.requests, facts.late_points), (4, 0));
    }

    #[test]
    fn a_very_late_point_is_counted_and_said() {
        let request = |ms| point(Metric::RequestDuration, ms, 5.0, &[("endpoint", "login")]);
        let (intervals, facts) = collect(Telling::Plain, &[request(100), request(60_000), request(200)]);
        let total: u64 = intervals.iter().map(|interval| interval.endpoints["login"].latency.count()).sum();
        assert_eq!((total, facts.late_points), (3, 1));
        assert!(intervals.is_sorted_by_key(|interval| interval.second));
    }

    #[test]
    fn failures_are_counted_once() {
        let tags = [("endpoint", "login"), ("status", "503"), ("expected_response", "false")];
        let counted = [("endpoint", "login"), ("status", "503"), ("code", "hashing_busy"), ("answerer", "task")];
        let points = [point(Metric::RequestDuration, 100, 5.0, &tags), point(Metric::Failures, 1_100, 1.0, &counted)];
        let codes = |telling, points: &[Point]| {
            let (intervals, _) = collect(telling, points);
            let failures = intervals.iter().flat_map(|interval| &interval.endpoints["login"].failures);
            failures.map(|found| (found.failure.code.clone(), found.count)).collect::<Vec<_>>()
        };
        assert_eq!(codes(Telling::WithFailures, &points), [("hashing_busy".into(), 1)]);
        assert_eq!(codes(Telling::Plain, &points[..1]), [("unknown".into(), 1)]);
    }

    #[test]
    fn endpoints_without_number_are_counted_together() {
        let points: Vec<_> = (0..300)
            .map(|index| point(Metric::RequestDuration, 100, 1.0, &[("endpoint", &format!("e{index}"))]))
            .collect();
        let (intervals, facts) = collect(Telling::Plain, &points);
        assert_eq!(intervals[0].endpoints.len(), MOST_ENDPOINTS + 1);
        assert_eq!(intervals[0].endpoints[OTHER_ENDPOINTS].latency.count(), 200);
        assert!(facts.endpoints_merged);
    }

    #[test]
    fn a_clock_that_jumps_makes_no_seconds() {
        let points = [0, i64::MAX, i64::MIN, 1_000].map(|ms| point(Metric::Vus, ms, 1.0, &[]));
        let (intervals, facts) = collect(Telling::Plain, &points);
        assert_eq!(intervals.iter().map(|interval| interval.second).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(facts.misdated_points, 1);
    }

    #[test]
    fn set_up_is_no_load() {
        let (intervals, facts) = collect(
            Telling::Plain,
            &[point(Metric::RequestDuration, 0, 1.0, &[("group", "::setup"), ("endpoint", "x")])],
        );
        assert!(intervals.is_empty() && facts.requests == 0);
    }
}
