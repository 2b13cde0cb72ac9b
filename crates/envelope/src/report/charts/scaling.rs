//! Capacity by task count: what was found, the law that was fitted to it, and what linear scaling would be.

use super::{Drawing, LegendEntry, Mark, Room, paper_width};
use crate::analysis::UslFit;
use crate::report::document::Table;
use crate::report::format;
use crate::report::svg::{Axis, Element, Scale};

/// Points of the fitted curve.
const STEPS: u32 = 60;
const CURVE: &str = "line s0 d0";
const LINEAR: &str = "line s6 d1";
const BAND: &str = "band";

/// The chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// What it shows.
    pub title: String,
    /// By task count, ascending; at least two.
    pub points: Vec<ScalingPoint>,
    /// The fitted law, where the points identify one.
    pub fit: Option<UslFit>,
}

/// The capacity with one task count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingPoint {
    /// Tasks per service.
    pub tasks: u32,
    /// The highest rate that held, in arrivals a second; of several searches the mean.
    pub holds: f64,
    /// The lowest and the highest of several searches; `None` of one, which says nothing of how far another would be from it.
    pub range: Option<(f64, f64)>,
    /// The lowest rate above it that did not; `None` where the search did not find one.
    pub fails: Option<f64>,
}

impl Scaling {
    pub(super) fn description(&self) -> String {
        let each = |point: &ScalingPoint| format!("{}: {}", point.tasks, format::rate(point.holds));
        let points: Vec<String> = self.points.iter().map(each).collect();
        let fit = if self.fit.is_some() { "the curve is the fitted law" } else { "no law is fitted" };
        let repeats =
            if self.is_repeated() { "" } else { ". Each is one search: how far another would be from it is not known" };
        format!("Arrivals a second that held, by tasks per service: {}; {fit}{repeats}.", points.join("; "))
    }

    /// Whether a task count was searched more than once.
    fn is_repeated(&self) -> bool {
        self.points.iter().any(|point| point.range.is_some())
    }

    /// What the first task count would give if tasks added up.
    fn linear(&self, tasks: f64) -> f64 {
        self.points.first().map_or(0.0, |first| first.holds / f64::from(first.tasks.max(1)) * tasks)
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(
            self.title.clone(),
            &["#Tasks per service", "#Holds", "#Min to max of searches", "#No longer", "#Of linear scaling"],
        );
        if self.fit.is_some() {
            table.add_numeric_column("Fitted law");
            table.add_numeric_column("95 % interval of the law");
        }
        for point in &self.points {
            let linear = self.linear(f64::from(point.tasks));
            let share = if linear > 0.0 { format::percent(point.holds / linear) } else { "-".to_owned() };
            let mut row = vec![
                point.tasks.to_string(),
                format::rate(point.holds),
                point.range.map_or_else(|| "one search".to_owned(), between),
                point.fails.map_or_else(|| "not found".to_owned(), format::rate),
                share,
            ];
            if let Some(fit) = &self.fit {
                let tasks = f64::from(point.tasks);
                let interval = fit.throughput_interval(tasks).map(|interval| between((interval.low, interval.high)));
                row.extend([format::rate(fit.throughput(tasks)), format::or_missing(interval)]);
            }
            table.push(row);
        }
        table
    }

    pub(super) fn legend(&self) -> Vec<LegendEntry> {
        let points = if self.is_repeated() {
            "the highest rate that held, mean, and min to max of repeated searches"
        } else {
            "the highest rate that held, and up to the lowest that did not; one search each"
        };
        let mut entries = vec![
            LegendEntry::new(Mark::Dot, "dot p50", points),
            LegendEntry::new(Mark::Line, LINEAR, "linear scaling"),
        ];
        if self.fit.is_some() {
            entries.push(LegendEntry::new(Mark::Line, CURVE, "Universal Scalability Law"));
            entries.push(LegendEntry::new(Mark::Area, BAND, "its 95 % interval"));
        }
        entries
    }

    pub(super) fn draw(&self, room: Room) -> Drawing {
        let width = paper_width(room);
        let (left, right, top) = (58.0, width - 18.0, 22.0);
        let bottom = if room == Room::Wide { 270.0 } else { 240.0 };
        let most = self.points.last().map_or(1, |point| point.tasks);
        let top_of = |point: &ScalingPoint| {
            let band = self.fit.as_ref().and_then(|fit| fit.throughput_interval(f64::from(point.tasks)));
            let known = [point.fails, point.range.map(|range| range.1), band.map(|band| band.high)];
            known.into_iter().flatten().fold(point.holds, f64::max)
        };
        let highest = self.points.iter().map(top_of).fold(0.0, f64::max);
        let highest = highest.max(self.linear(f64::from(most)));
        let across = Axis::right(Scale::Linear(0.0, f64::from(most) + 0.4), left, right);
        let up = Axis::up(Scale::from_zero(highest), bottom, top);
        let at = |tasks: f64, rate: f64| Some((across.at(tasks), up.at(rate)));

        let ticks: Vec<f64> = self.points.iter().map(|point| f64::from(point.tasks)).collect();
        let mut elements = vec![
            up.grid(left, right, 5, |value| format::decimals(value, usize::from(value.fract() > 0.0))),
            across.grid_at(&ticks, bottom, top, |tasks| format::decimals(tasks, 0)),
            Element::label((left, top - 9.0), "start", "panel", "arrivals a second"),
            Element::label((right, bottom + 32.0), "end", "tick", "tasks per service"),
            Element::polyline([at(0.0, 0.0), at(f64::from(most), self.linear(f64::from(most)))], LINEAR),
        ];
        if let Some(fit) = &self.fit {
            // No further than was measured: beyond it the law is a guess.
            let first = self.points.first().map_or(1.0, |point| f64::from(point.tasks));
            let step = (f64::from(most) - first) / f64::from(STEPS);
            let curve = (0..=STEPS).map(|index| first + step * f64::from(index));
            let within = curve.clone().filter_map(|tasks| Some((tasks, fit.throughput_interval(tasks)?)));
            let within: Vec<_> = within.collect();
            let lower = within.iter().map(|(tasks, interval)| at(*tasks, interval.low));
            let upper = within.iter().rev().map(|(tasks, interval)| at(*tasks, interval.high));
            elements.push(Element::polyline(lower.chain(upper), BAND));
            elements.push(Element::polyline(curve.map(|tasks| at(tasks, fit.throughput(tasks))), CURVE));
        }
        for point in &self.points {
            let (x, y) = (across.at(f64::from(point.tasks)), up.at(point.holds));
            if let Some((low, high)) = point.range.or(point.fails.map(|fails| (point.holds, fails))) {
                elements.push(Element::line((x, up.at(low)), (x, up.at(high)), "range"));
            }
            let of = point.range.map_or_else(|| ", one search".to_owned(), |range| format!(", {}", between(range)));
            let tip = format!("{} tasks per service: {} a second{of}", point.tasks, format::rate(point.holds));
            elements.push(Element::circle((x, y), 5.0, "dot p50").tip(&tip));
        }
        Drawing { width, height: bottom + 40.0, elements }
    }
}

fn between((low, high): (f64, f64)) -> String {
    format!("{} to {}", format::rate(low), format::rate(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{UslPoint, fit_usl};

    fn chart(rates: &[(u32, f64)]) -> Scaling {
        let points: Vec<ScalingPoint> = rates
            .iter()
            .map(|&(tasks, holds)| ScalingPoint { tasks, holds, range: None, fails: Some(holds * 1.05) })
            .collect();
        let measured: Vec<UslPoint> = points
            .iter()
            .flat_map(|point| {
                [point.holds, point.holds * 1.05].map(|throughput| UslPoint { n: point.tasks.into(), throughput })
            })
            .collect();
        Scaling { title: "t".into(), points, fit: fit_usl(&measured).ok() }
    }

    #[test]
    fn the_curve_is_drawn_where_a_law_is_fitted_and_only_there() {
        let drawn =
            |chart: &Scaling| chart.draw(Room::Wide).elements.iter().map(ToString::to_string).collect::<String>();
        let two = chart(&[(1, 100.0), (2, 187.0)]);
        assert!(!drawn(&two).contains(CURVE) && drawn(&two).contains(LINEAR));
        assert_eq!(two.table().rows[1], ["2", "187.00", "one search", "196.35", "94 %"]);
        assert!(!drawn(&two).contains(BAND) && two.description().contains("Each is one search"));
        let four = chart(&[(1, 100.0), (2, 186.9), (4, 315.0), (8, 418.0)]);
        assert!(drawn(&four).contains(CURVE));
        assert!(drawn(&four).contains("class=\"band\""));
        assert_eq!((four.table().columns.len(), four.legend().len()), (7, 4));
    }

    #[test]
    fn several_searches_of_a_task_count_have_their_range() {
        let mut repeated = chart(&[(1, 100.0), (2, 187.0)]);
        repeated.points[1].range = Some((180.0, 194.0));
        assert_eq!(repeated.table().rows[1][2], "180.00 to 194.00");
        let drawn: String = repeated.draw(Room::Wide).elements.iter().map(ToString::to_string).collect();
        assert!(drawn.contains("180.00 to 194.00") && drawn.contains("one search"), "{drawn}");
        assert!(repeated.legend()[0].text.contains("min to max"));
    }
}
