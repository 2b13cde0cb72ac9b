//! k6's points (`--out json`), a JSON object a line, become seconds.
//!
//! What the points mean is agreed with `tests/load/k6`: `latency` of right answers, `failed_latency` of the others, `failures`
//! by cause, `stage_NAME` and `unattributed`, each tagged with its `endpoint`; `load_began` is when second 0 was.

use std::borrow::Cow;
use std::collections::BTreeMap;

use envelope::result::SET_UP;
use envelope::result::{Answerer, Failure, FailureCount, Interval, Work};
use serde::Deserialize;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// k6 writes its points out several times a second, those of all virtual users together. A second counts as whole when
/// points have come that are this much newer.
const LAG_SECONDS: u32 = 3;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    metric: Cow<'a, str>,
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    time: Option<Cow<'a, str>>,
    value: Option<f64>,
    #[serde(borrow, default)]
    tags: Option<Tags<'a>>,
}

#[derive(Default, Deserialize)]
struct Tags<'a> {
    #[serde(borrow, default)]
    endpoint: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    code: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    answerer: Option<Cow<'a, str>>,
}

/// The seconds that are not finished yet, and what counts over the whole run.
#[derive(Debug, Default)]
pub(super) struct Points {
    began: Option<OffsetDateTime>,
    open: BTreeMap<u32, Interval>,
    /// Seconds before this one were handed out.
    next: u32,
    newest: Option<u32>,
    busy: u32,
    identities: f64,
    late: u64,
}

impl Points {
    /// When second 0 was; none before the load.
    pub(super) fn began(&self) -> Option<OffsetDateTime> {
        self.began
    }

    /// The newest second that a point was of.
    pub(super) fn newest(&self) -> Option<u32> {
        self.newest
    }

    /// Distinct identities that sent requests.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, as k6 writes counts")]
    pub(super) fn identities(&self) -> u64 {
        self.identities.max(0.0).round() as u64
    }

    /// Points whose second had been handed out.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Takes a line; what is no point of ours says nothing.
    pub(super) fn take(&mut self, line: &str) {
        let Ok(Line { metric, data }) = serde_json::from_str::<Line<'_>>(line) else { return };
        let (Some(time), Some(value)) = (data.time, data.value) else { return };
        let tags = data.tags.unwrap_or_default();
        match &*metric {
            "load_began" => {
                self.began = OffsetDateTime::from_unix_timestamp_nanos(nanos_of_millis(value)).ok().or(self.began);
                return;
            }
            "identities" => {
                self.identities += value;
                return;
            }
            _ => {}
        }
        let (Some(began), Ok(at)) = (self.began, OffsetDateTime::parse(&time, &Rfc3339)) else { return };
        let Some(second) = second_of(at - began) else { return };
        self.newest = self.newest.max(Some(second));
        let second = if second < self.next {
            self.late += u64::from(&*metric == "latency" || &*metric == "failures");
            self.next
        } else {
            second
        };
        if &*metric == "vus" {
            self.busy = whole(value);
        }
        let busy = self.busy;
        let interval = self.open.entry(second).or_insert_with(|| empty(second, busy));
        match &*metric {
            "vus" => interval.active_vus = busy,
            "dropped_iterations" => {
                interval.work.dropped += u64::from(whole(value));
                interval.work.offered += u64::from(whole(value));
            }
            metric => {
                if let Some(endpoint) = tags.endpoint.as_deref() {
                    request(interval, endpoint, metric, value, &tags);
                }
            }
        }
    }

    /// Hands out, in order and without gaps, the seconds to which nothing will be added; at the end all of them.
    pub(super) fn finished(&mut self, all: bool) -> Vec<Interval> {
        let Some(newest) = self.newest else { return Vec::new() };
        let until = if all { newest + 1 } else { newest.saturating_sub(LAG_SECONDS) };
        let mut finished = Vec::new();
        while self.next < until {
            let users = finished.last().map_or(0, |it: &Interval| it.active_vus);
            finished.push(self.open.remove(&self.next).unwrap_or_else(|| empty(self.next, users)));
            self.next += 1;
        }
        finished
    }
}

fn empty(second: u32, active_vus: u32) -> Interval {
    Interval { second, active_vus, ..Interval::default() }
}

fn request(interval: &mut Interval, endpoint: &str, metric: &str, value: f64, tags: &Tags<'_>) {
    let in_mix = endpoint != SET_UP;
    // Metrics of k6's own are tagged with the endpoint, too.
    let is_ours = matches!(metric, "latency" | "failed_latency" | "failures" | "unattributed");
    let stage = metric.strip_prefix("stage_");
    if !is_ours && stage.is_none() {
        return;
    }
    let of = interval.endpoints.entry(endpoint.to_owned()).or_default();
    match (metric, stage) {
        (_, Some(stage)) => {
            of.stages.entry(stage.to_owned()).or_default().record_micros(micros(value));
        }
        ("failures", _) => failure(&mut of.failures, tags),
        ("unattributed", _) => of.unattributed.record_micros(micros(value)),
        ("failed_latency", _) => {
            of.failed_latency.record_micros(micros(value));
            count(&mut interval.work, in_mix);
        }
        _ => {
            of.latency.record_micros(micros(value));
            count(&mut interval.work, in_mix);
        }
    }
}

/// An iteration is one request: it is begun and completed by the time k6 tells of it.
fn count(work: &mut Work, in_mix: bool) {
    if in_mix {
        work.offered += 1;
        work.started += 1;
        work.completed += 1;
    }
}

fn failure(failures: &mut Vec<FailureCount>, tags: &Tags<'_>) {
    let failure = Failure {
        status: tags.status.as_deref().and_then(|status| status.parse().ok()).filter(|status| *status != 0),
        code: tags.code.as_deref().unwrap_or("unknown").to_owned(),
        answerer: match tags.answerer.as_deref() {
            Some("task") => Answerer::Task,
            Some("balancer") => Answerer::Balancer,
            Some("nobody") => Answerer::Nobody,
            _ => Answerer::Unknown,
        },
    };
    match failures.iter_mut().find(|it| it.failure == failure) {
        Some(known) => known.count += 1,
        None => failures.push(FailureCount { failure, count: 1 }),
    }
}

fn second_of(since: Duration) -> Option<u32> {
    // A clock that was set back, or a point from before the load.
    (!since.is_negative()).then(|| u32::try_from(since.whole_seconds()).ok()).flatten()
}

#[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit")]
fn nanos_of_millis(millis: f64) -> i128 {
    (millis * 1e6) as i128
}

/// k6 writes milliseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating, and never negative")]
fn micros(millis: f64) -> u64 {
    (millis.max(0.0) * 1000.0).round() as u64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating, and never negative")]
fn whole(value: f64) -> u32 {
    value.max(0.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: &str = r#"{"metric":"load_began","type":"Point","data":{"time":"2026-01-01T00:00:00.02Z","value":1767225600000,"tags":{"phase":"ramp"}}}"#;

    fn point(metric: &str, time: &str, value: f64, tags: &str) -> String {
        format!(
            r#"{{"metric":"{metric}","type":"Point","data":{{"time":"2026-01-01T00:00:{time}+00:00","value":{value},"tags":{{{tags}}}}}}}"#
        )
    }

    fn points(lines: &[String]) -> Points {
        let mut points = Points::default();
        points.take(BEGAN);
        for line in lines {
            points.take(line);
        }
        points
    }

    #[test]
    fn points_become_seconds_without_gaps() {
        let tags = r#""endpoint":"login","phase":"measure","status":"200""#;
        let mut points = points(&[
            point("vus", "00.5", 3.0, ""),
            point("latency", "00.9", 12.5, tags),
            point("stage_db", "00.9", 2.0, tags),
            point("unattributed", "00.9", 0.5, tags),
            point("latency", "02.0", 14.5, tags),
            point("identities", "02.0", 1.0, ""),
            point("identities", "02.1", 1.0, ""),
        ]);
        assert_eq!(points.finished(false), []);
        let seconds = points.finished(true);
        assert_eq!(seconds.iter().map(|it| it.second).collect::<Vec<_>>(), [0, 1, 2]);
        let login = &seconds[0].endpoints["login"];
        assert_eq!((login.latency.max_ms(), login.latency.count()), (Some(12.503), 1));
        assert_eq!(login.stages["db"].count(), 1);
        assert_eq!(login.unattributed.count(), 1);
        assert_eq!(seconds.iter().map(|it| it.active_vus).collect::<Vec<_>>(), [3, 3, 3]);
        assert_eq!((seconds[0].work.offered, seconds[1].work.offered, seconds[2].work.completed), (1, 0, 1));
        assert_eq!(points.identities(), 2);
    }

    #[test]
    fn failures_are_counted_by_cause_and_add_up_to_their_latencies() {
        let refused = r#""endpoint":"upload","status":"503","code":"pool_timeout","answerer":"task""#;
        let gone = r#""endpoint":"upload","status":"0","code":"reset","answerer":"nobody""#;
        let mut points = points(&[
            point("failures", "00.1", 1.0, refused),
            point("failed_latency", "00.1", 5.0, refused),
            point("failures", "00.2", 1.0, refused),
            point("failed_latency", "00.2", 5.0, refused),
            point("failures", "00.3", 1.0, gone),
            point("failed_latency", "00.3", 1.0, gone),
        ]);
        let seconds = points.finished(true);
        let upload = &seconds[0].endpoints["upload"];
        assert_eq!(upload.failures.iter().map(|it| it.count).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(upload.failures[0].failure.code, "pool_timeout");
        assert_eq!((upload.failures[1].failure.status, upload.failures[1].failure.answerer), (None, Answerer::Nobody));
        assert_eq!((upload.failed_latency.count(), upload.latency.count()), (3, 0));
    }

    #[test]
    fn a_second_is_handed_out_when_it_is_whole_and_latecomers_are_counted() {
        let tags = r#""endpoint":"login""#;
        let mut points = points(&[point("latency", "00.1", 1.0, tags), point("latency", "04.1", 1.0, tags)]);
        assert_eq!(points.finished(false).iter().map(|it| it.second).collect::<Vec<_>>(), [0]);
        points.take(&point("latency", "00.2", 1.0, tags));
        assert_eq!(points.late(), 1);
        let rest = points.finished(true);
        assert_eq!(rest[0].endpoints["login"].latency.count(), 1, "it counts in the second that is still open");
        assert_eq!(rest.len(), 4);
    }

    #[test]
    fn set_up_is_no_work_and_what_was_dropped_was_offered() {
        let mut points = points(&[
            point("latency", "00.1", 1.0, r#""endpoint":"set-up""#),
            point("dropped_iterations", "00.2", 4.0, ""),
        ]);
        let seconds = points.finished(true);
        assert_eq!((seconds[0].work.offered, seconds[0].work.completed, seconds[0].work.dropped), (4, 0, 4));
    }

    #[test]
    fn what_is_no_point_of_the_load_says_nothing() {
        let mut points = Points::default();
        points.take(&point("latency", "00.1", 1.0, r#""endpoint":"set-up""#));
        assert_eq!((points.began(), points.newest()), (None, None), "before the load");
        for line in
            ["", "{}", "\u{1b}[2J", "running (1m02s)", r#"{"type":"Metric","data":{"name":"vus"},"metric":"vus"}"#]
        {
            points.take(line);
        }
        points.take(BEGAN);
        points.take(&point("latency", "00.1", f64::from(u32::MAX), ""));
        assert_eq!(points.finished(true).len(), 1);
        assert!(points.finished(true).is_empty());
    }
}
