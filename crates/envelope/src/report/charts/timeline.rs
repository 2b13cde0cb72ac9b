//! Throughput and latency percentiles over time, one run; what was not measured is shaded.

use std::fmt::Write as _;

use super::{Drawing, LegendEntry, Mark, Room, paper_width};
use crate::report::document::Table;
use crate::report::format;
use crate::report::svg::{Axis, Element, Scale};
use crate::result::Phase;
use crate::run::{Run, Second};

/// More points than this are not told apart on a screen.
const MOST_POINTS: usize = 480;
/// Rows of the table.
const MOST_ROWS: usize = 12;

/// The chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// What it shows.
    pub title: String,
    /// In time's order.
    pub points: Vec<TimePoint>,
    /// Seconds that a point stands for.
    pub seconds_per_point: u32,
    /// The first second, and the one after the last.
    pub span: (u32, u32),
    /// The measured stretch; everything else is shaded.
    pub measured: Option<(u32, u32)>,
    /// Second and name of what began there.
    pub marks: Vec<(u32, String)>,
}

/// One or more seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimePoint {
    /// The first second.
    pub second: u32,
    /// Requests that ended, a second.
    pub requests_per_second: f64,
    /// Those that failed, in all the seconds.
    pub failed: u64,
    /// Percentiles in milliseconds: the highest of the seconds, for percentiles are not averaged.
    pub p50_ms: Option<f64>,
    /// 95th.
    pub p95_ms: Option<f64>,
    /// 99th.
    pub p99_ms: Option<f64>,
}

impl Timeline {
    /// The chart of a run; `None` if its source has no seconds.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        let (first, last) = (run.series.first()?.second, run.series.last()?.second);
        let width = run.series.len().div_ceil(MOST_POINTS).max(1);
        let phases = run.capsule.as_ref().map_or(&[][..], |capsule| &capsule.phases);
        Some(Self {
            title: format!("{}: throughput and latency over time", run.label),
            points: points(&run.series, width),
            seconds_per_point: u32::try_from(width).unwrap_or(u32::MAX),
            span: (first, last + 1),
            measured: run.window.as_ref().map(|window| (window.from_second, window.until_second)),
            marks: phases.iter().filter_map(named).collect(),
        })
    }

    pub(super) fn description(&self) -> String {
        let rates = self.measured_points().map(|point| point.requests_per_second);
        let (low, high) = rates.fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
        let slowest = self.measured_points().filter_map(|point| point.p99_ms).reduce(f64::max);
        let mut text = if low <= high {
            format!("Between {} and {} requests a second while measuring", format::rate(low), format::rate(high))
        } else {
            "No second was measured".to_owned()
        };
        if let Some(slowest) = slowest {
            let _ = write!(text, "; the highest 99th percentile of a point is {}", format::ms(slowest));
        }
        text += ".";
        if self.seconds_per_point > 1 {
            let _ = write!(
                text,
                " A point stands for {} seconds: mean throughput, and the highest of the seconds' percentiles.",
                self.seconds_per_point
            );
        }
        text
    }

    fn measured_points(&self) -> impl Iterator<Item = &TimePoint> {
        let (from, until) = self.measured.unwrap_or(self.span);
        self.points.iter().filter(move |point| (from..until).contains(&point.second))
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(
            format!("{}; percentiles are the highest of the single seconds'", self.title),
            &["Seconds", "#Requests/s", "#Failed", "#p50 ms", "#p95 ms", "#p99 ms", "Measured"],
        );
        let group = self.points.len().div_ceil(MOST_ROWS).max(1);
        for points in self.points.chunks(group) {
            let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
            let until = (last.second + self.seconds_per_point).min(self.span.1);
            #[expect(clippy::cast_precision_loss, reason = "at most MOST_POINTS")]
            let rate = points.iter().map(|point| point.requests_per_second).sum::<f64>() / points.len() as f64;
            let highest = |of: fn(&TimePoint) -> Option<f64>| {
                format::or_missing(points.iter().filter_map(of).reduce(f64::max).map(format::plain_ms))
            };
            table.push(vec![
                format!("{} to {until}", first.second),
                format::rate(rate),
                format::count(points.iter().map(|point| point.failed).sum()),
                highest(|point| point.p50_ms),
                highest(|point| point.p95_ms),
                highest(|point| point.p99_ms),
                self.how_much_is_measured(first.second, until).to_owned(),
            ]);
        }
        table
    }

    fn how_much_is_measured(&self, from: u32, until: u32) -> &'static str {
        match self.measured {
            None => format::NOT_RECORDED,
            Some((first, end)) if from >= first && until <= end => "yes",
            Some((first, end)) if until <= first || from >= end => "discarded",
            Some(_) => "in part",
        }
    }

    pub(super) fn legend(&self) -> Vec<LegendEntry> {
        let mut entries = vec![
            LegendEntry::new(Mark::Line, "line rate", "requests a second"),
            LegendEntry::new(Mark::Line, "line p50", "p50"),
            LegendEntry::new(Mark::Line, "line p95", "p95"),
            LegendEntry::new(Mark::Line, "line p99", "p99"),
        ];
        if self.points.iter().any(|point| point.failed > 0) {
            entries.push(LegendEntry::new(Mark::Area, "failures", "failures"));
        }
        if !self.discarded().is_empty() {
            entries.push(LegendEntry::new(Mark::Area, "discarded", "discarded"));
        }
        entries
    }

    /// Stretches that were not measured.
    fn discarded(&self) -> Vec<(u32, u32)> {
        let Some((from, until)) = self.measured else { return Vec::new() };
        let both = [(self.span.0, from.min(self.span.1)), (until.max(self.span.0), self.span.1)];
        both.into_iter().filter(|(from, until)| from < until).collect()
    }

    pub(super) fn draw(&self, room: Room) -> Drawing {
        let width = paper_width(room);
        let (left, right) = (52.0, width - 14.0);
        let (upper, lower) = match room {
            Room::Wide => ((22.0, 152.0), (190.0, 350.0)),
            Room::Narrow => ((22.0, 142.0), (180.0, 330.0)),
        };
        let time = Axis::right(Scale::Linear(f64::from(self.span.0), f64::from(self.span.1)), left, right);
        let rate = Axis::up(
            Scale::from_zero(self.points.iter().map(|point| point.requests_per_second).fold(0.0, f64::max)),
            upper.1,
            upper.0,
        );
        let of_percentiles = self.points.iter().flat_map(|point| [point.p50_ms, point.p95_ms, point.p99_ms]);
        let latency = Axis::up(Scale::enclosing(of_percentiles.flatten()), lower.1, lower.0);
        let time_ticks = if room == Room::Wide { 10 } else { 5 };

        let mut elements = self.shades(time, [upper, lower]);
        elements.push(rate.grid(left, right, 4, |value| format::decimals(value, usize::from(value.fract() > 0.0))));
        elements.push(latency.grid(left, right, 7, axis_ms));
        elements.push(time.grid(lower.1, lower.0, time_ticks, |second| format::decimals(second, 0)));
        elements.push(Element::label((left, upper.0 - 9.0), "start", "panel", "requests a second"));
        elements.push(Element::label((left, lower.0 - 9.0), "start", "panel", "latency in ms, logarithmic"));
        elements.push(Element::label((right, lower.1 + 32.0), "end", "tick", "seconds since the load began"));
        elements.extend(self.phase_marks(time, [upper, lower]));
        elements.extend(self.failures(time, upper.1));
        let middle = f64::from(self.seconds_per_point) / 2.0;
        let line = |axis: Axis, class: &str, of: fn(&TimePoint) -> Option<f64>| {
            let at =
                |point: &TimePoint| of(point).map(|value| (time.at(f64::from(point.second) + middle), axis.at(value)));
            Element::polyline(self.points.iter().map(at), class)
        };
        elements.push(line(rate, "line rate", |point| Some(point.requests_per_second)));
        elements.push(line(latency, "line p99", |point| point.p99_ms));
        elements.push(line(latency, "line p95", |point| point.p95_ms));
        elements.push(line(latency, "line p50", |point| point.p50_ms));
        Drawing { width, height: lower.1 + 40.0, elements }
    }

    fn shades(&self, time: Axis, panels: [(f64, f64); 2]) -> Vec<Element> {
        let mut shades = Vec::new();
        for (from, until) in self.discarded() {
            let (x, end) = (time.at(f64::from(from)), time.at(f64::from(until)));
            for (top, bottom) in panels {
                let shade = Element::rect((x, top), end - x, bottom - top, "discarded");
                shades.push(shade.tip(&format!("seconds {from} to {until}: discarded")));
            }
        }
        shades
    }

    fn phase_marks(&self, time: Axis, panels: [(f64, f64); 2]) -> Vec<Element> {
        let mut marks = Vec::new();
        for (second, name) in &self.marks {
            let x = time.at(f64::from(*second));
            marks.extend(panels.map(|(top, bottom)| Element::line((x, top), (x, bottom), "mark")));
            marks.push(Element::label((x + 4.0, panels[0].0 + 12.0), "start", "tick halo", name));
        }
        marks
    }

    fn failures(&self, time: Axis, bottom: f64) -> Vec<Element> {
        let width =
            (time.at(f64::from(self.span.0 + self.seconds_per_point)) - time.at(f64::from(self.span.0))).max(1.5);
        let with_failures = self.points.iter().filter(|point| point.failed > 0);
        with_failures
            .map(|point| {
                let bar = Element::rect((time.at(f64::from(point.second)), bottom - 8.0), width, 8.0, "failures");
                bar.tip(&format!("second {}: {} failed", point.second, point.failed))
            })
            .collect()
    }
}

/// Labels of a logarithmic axis in milliseconds.
pub(super) fn axis_ms(value: f64) -> String {
    if value >= 1.0 {
        return format::decimals(value, 0);
    }
    let places = if value >= 0.1 {
        1
    } else if value >= 0.01 {
        2
    } else {
        3
    };
    format::decimals(value, places)
}

fn named(phase: &Phase) -> Option<(u32, String)> {
    phase.name.as_ref().map(|name| (phase.from_second, name.clone()))
}

fn points(series: &[Second], width: usize) -> Vec<TimePoint> {
    let highest = |seconds: &[Second], of: fn(&Second) -> Option<f64>| seconds.iter().filter_map(of).reduce(f64::max);
    let point = |seconds: &[Second]| {
        let first = seconds.first()?;
        #[expect(clippy::cast_precision_loss, reason = "requests of a few seconds")]
        let rate = seconds.iter().map(|second| second.requests).sum::<u64>() as f64 / seconds.len() as f64;
        Some(TimePoint {
            second: first.second,
            requests_per_second: rate,
            failed: seconds.iter().map(|second| second.failed).sum(),
            p50_ms: highest(seconds, |second| second.p50_ms),
            p95_ms: highest(seconds, |second| second.p95_ms),
            p99_ms: highest(seconds, |second| second.p99_ms),
        })
    };
    series.chunks(width).filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u32, requests: u64, p99_ms: f64) -> Second {
        Second { second, requests, p99_ms: Some(p99_ms), ..Second::default() }
    }

    #[test]
    fn long_runs_are_drawn_by_mean_throughput_and_the_highest_percentile() {
        let series = [second(0, 10, 5.0), second(1, 20, 900.0), second(2, 40, 7.0)];
        let points = points(&series, 2);
        assert_eq!(points.len(), 2);
        assert!((points[0].requests_per_second - 15.0).abs() < 1e-9);
        assert_eq!(points[0].p99_ms, Some(900.0));
        assert_eq!((points[1].second, points[1].p99_ms, points[1].p50_ms), (2, Some(7.0), None));
    }

    #[test]
    fn what_was_not_measured_is_shaded_before_and_after() {
        let chart = Timeline {
            title: "t".into(),
            points: points(&[second(0, 1, 1.0), second(1, 1, 1.0), second(2, 1, 1.0), second(3, 1, 1.0)], 1),
            seconds_per_point: 1,
            span: (0, 4),
            measured: Some((1, 3)),
            marks: vec![],
        };
        assert_eq!(chart.discarded(), [(0, 1), (3, 4)]);
        let column: Vec<String> = chart.table().rows.iter().map(|row| row[6].clone()).collect();
        assert_eq!(column, ["discarded", "yes", "yes", "discarded"]);
        assert_eq!(Timeline { measured: None, ..chart }.discarded(), []);
    }

    #[test]
    fn labels_of_latency_have_no_needless_zeros() {
        assert_eq!([0.002, 0.05, 0.5, 5.0, 2_000.0].map(axis_ms), ["0.002", "0.05", "0.5", "5", "2,000"]);
    }
}
