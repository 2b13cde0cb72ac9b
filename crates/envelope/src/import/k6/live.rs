//! Points of Datum's own scripts as k6 writes them (`--out json`), a line at a time.

use time::OffsetDateTime;

use super::intervals::{Collector, K6Facts, Telling};
use super::json;
use crate::result::Interval;

/// The seconds that are not finished yet, and what counts over the whole run. Nothing counts before the script has said that the
/// load began.
#[derive(Default)]
pub struct K6Points {
    collecting: Option<Collecting>,
}

struct Collecting {
    began: OffsetDateTime,
    collector: Collector,
    /// Seconds before this one were handed out.
    next: u32,
    vus: u32,
}

impl K6Points {
    /// When second 0 was; none before the load.
    #[must_use]
    pub fn began(&self) -> Option<OffsetDateTime> {
        self.collecting.as_ref().map(|it| it.began)
    }

    /// The newest second that a point was of.
    #[must_use]
    pub fn newest(&self) -> Option<u32> {
        self.collecting.as_ref()?.collector.newest()
    }

    /// What is known beside the seconds.
    #[must_use]
    pub fn facts(&self) -> K6Facts {
        self.collecting.as_ref().map(|it| it.collector.facts.clone()).unwrap_or_default()
    }

    /// Takes a line; what is no point of the load says nothing. Gives the seconds to which nothing will be added any more, in
    /// order and without gaps.
    pub fn take(&mut self, line: &str) -> Vec<Interval> {
        let Ok(Some(point)) = json::point(line.trim_ascii().as_bytes()) else { return Vec::new() };
        let Some(collecting) = &mut self.collecting else {
            self.collecting = point.load_began_ms().and_then(Collecting::since);
            return Vec::new();
        };
        let mut closed = Vec::new();
        collecting.collector.add(&point, &mut |interval| closed.push(interval));
        let until = collecting.collector.closed_before();
        collecting.without_gaps(closed, until)
    }

    /// Gives the seconds that are left.
    pub fn finish(&mut self) -> Vec<Interval> {
        let Some(collecting) = &mut self.collecting else { return Vec::new() };
        let Some(newest) = collecting.collector.newest() else { return Vec::new() };
        let mut closed = Vec::new();
        collecting.collector.close_all(&mut |interval| closed.push(interval));
        collecting.without_gaps(closed, newest + 1)
    }
}

impl Collecting {
    fn since(began_ms: i64) -> Option<Self> {
        let began = OffsetDateTime::from_unix_timestamp_nanos(i128::from(began_ms) * 1_000_000).ok()?;
        let collector = Collector::new(began_ms, Telling::Datum);
        Some(Self { began, collector, next: 0, vus: 0 })
    }

    /// With an empty second for each of which no point came.
    fn without_gaps(&mut self, closed: Vec<Interval>, until: u32) -> Vec<Interval> {
        let mut seconds = Vec::with_capacity(closed.len());
        let mut closed = closed.into_iter().peekable();
        while self.next < until {
            let second = self.next;
            let interval = closed.next_if(|interval| interval.second == second).unwrap_or_else(|| Interval {
                second,
                active_vus: self.vus,
                ..Interval::default()
            });
            self.vus = interval.active_vus;
            seconds.push(interval);
            self.next += 1;
        }
        seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Answerer;

    const BEGAN: &str = r#"{"metric":"load_began","type":"Point","data":{"time":"2026-01-01T00:00:00.02Z","value":1767225600000,"tags":{"phase":"ramp"}}}"#;

    fn point(metric: &str, time: &str, value: f64, tags: &str) -> String {
        format!(
            r#"{{"metric":"{metric}","type":"Point","data":{{"time":"2026-01-01T00:00:{time}+00:00","value":{value},"tags":{{{tags}}}}}}}"#
        )
    }

    /// The seconds that are handed out while these lines come, and the points so far.
    fn points(lines: &[String]) -> (Vec<Interval>, K6Points) {
        let mut points = K6Points::default();
        let mut seconds = points.take(BEGAN);
        seconds.extend(lines.iter().flat_map(|line| points.take(line)));
        (seconds, points)
    }

    #[test]
    fn points_become_seconds_without_gaps() {
        let tags = r#""endpoint":"login","phase":"measure","status":"200""#;
        let (early, mut points) = points(&[
            point("vus", "00.5", 3.0, ""),
            point("latency", "00.9", 12.5, tags),
            point("stage_db", "00.9", 2.0, tags),
            point("unattributed", "00.9", 0.5, tags),
            point("latency", "02.0", 14.5, tags),
            point("identities", "02.0", 1.0, ""),
            point("identities", "02.1", 1.0, ""),
        ]);
        assert_eq!(early, []);
        let seconds = points.finish();
        assert_eq!(seconds.iter().map(|it| it.second).collect::<Vec<_>>(), [0, 1, 2]);
        let login = &seconds[0].endpoints["login"];
        assert_eq!((login.latency.max_ms(), login.latency.count()), (Some(12.503), 1));
        assert_eq!(login.stages["db"].count(), 1);
        assert_eq!(login.unattributed.count(), 1);
        assert_eq!(seconds.iter().map(|it| it.active_vus).collect::<Vec<_>>(), [3, 3, 3]);
        assert_eq!((seconds[0].work.offered, seconds[1].work.offered, seconds[2].work.completed), (1, 0, 1));
        assert_eq!(points.facts().identities, 2);
    }

    #[test]
    fn failures_are_counted_by_cause_and_add_up_to_their_latencies() {
        let refused = r#""endpoint":"upload","status":"503","code":"pool_timeout","answerer":"task""#;
        let gone = r#""endpoint":"upload","status":"0","code":"reset","answerer":"nobody""#;
        let (early, mut points) = points(&[
            point("failures", "00.1", 1.0, refused),
            point("failed_latency", "00.1", 5.0, refused),
            point("failures", "00.2", 1.0, refused),
            point("failed_latency", "00.2", 5.0, refused),
            point("failures", "00.3", 1.0, gone),
            point("failed_latency", "00.3", 1.0, gone),
        ]);
        assert_eq!(early, []);
        let seconds = points.finish();
        let upload = &seconds[0].endpoints["upload"];
        let counts: Vec<_> =
            upload.failures.iter().map(|it| (it.failure.status, it.failure.answerer, it.count)).collect();
        assert_eq!(counts, [(None, Answerer::Nobody, 1), (Some(503), Answerer::Task, 2)]);
        assert_eq!(upload.failures[1].failure.code, "pool_timeout");
        assert_eq!((upload.failed_latency.count(), upload.latency.count()), (3, 0));
    }

    #[test]
    fn a_second_is_handed_out_when_it_is_whole_and_latecomers_are_counted() {
        let tags = r#""endpoint":"login""#;
        let (early, mut points) = points(&[point("latency", "00.1", 1.0, tags), point("latency", "04.1", 1.0, tags)]);
        assert_eq!(early.iter().map(|it| it.second).collect::<Vec<_>>(), [0, 1]);
        points.take(&point("latency", "00.2", 1.0, tags));
        assert_eq!(points.facts().late_points, 1);
        let rest = points.finish();
        assert_eq!(rest[0].endpoints["login"].latency.count(), 1, "it counts in the second that is still open");
        assert_eq!(rest.iter().map(|it| it.second).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn set_up_is_no_work_and_what_was_dropped_was_offered() {
        let (early, mut points) = points(&[
            point("latency", "00.1", 1.0, r#""endpoint":"set-up""#),
            point("dropped_iterations", "00.2", 4.0, ""),
        ]);
        assert_eq!(early, []);
        let seconds = points.finish();
        assert_eq!((seconds[0].work.offered, seconds[0].work.completed, seconds[0].work.dropped), (4, 0, 4));
    }

    #[test]
    fn what_is_no_point_of_the_load_says_nothing() {
        let mut points = K6Points::default();
        points.take(&point("latency", "00.1", 1.0, r#""endpoint":"set-up""#));
        assert_eq!((points.began(), points.newest()), (None, None), "before the load");
        for line in
            ["", "{}", "\u{1b}[2J", "running (1m02s)", r#"{"type":"Metric","data":{"name":"vus"},"metric":"vus"}"#]
        {
            points.take(line);
        }
        points.take(BEGAN);
        points.take(&point("latency", "00.1", f64::from(u32::MAX), ""));
        assert_eq!(points.finish().len(), 1);
        assert!(points.finish().is_empty());
    }
}
