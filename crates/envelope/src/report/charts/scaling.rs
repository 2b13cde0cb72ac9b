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
    /// The highest rate that held, in arrivals a second.
    pub holds: f64,
    /// The lowest rate above it that did not; `None` where the search did not find one.
    pub fails: Option<f64>,
}

impl Scaling {
    pub(super) fn description(&self) -> String {
        let each = |point: &ScalingPoint| format!("{}: {}", point.tasks, format::rate(point.holds));
        let points: Vec<String> = self.points.iter().map(each).collect();
        let fit = if self.fit.is_some() { "the curve is the fitted law" } else { "no law is fitted" };
        format!("Arrivals a second that held, by tasks per service: {}; {fit}.", points.join("; "))
    }

    /// What the first task count would give if tasks added up.
    fn linear(&self, tasks: f64) -> f64 {
        self.points.first().map_or(0.0, |first| first.holds / f64::from(first.tasks.max(1)) * tasks)
    }

    pub(super) fn table(&self) -> Table {
        let mut table =
            Table::new(self.title.clone(), &["#Tasks per service", "#Holds", "#No longer", "#Of linear scaling"]);
        if self.fit.is_some() {
            table.add_numeric_column("Fitted law");
        }
        for point in &self.points {
            let linear = self.linear(f64::from(point.tasks));
            let share = if linear > 0.0 { format::percent(point.holds / linear) } else { "-".to_owned() };
            let mut row = vec![
                point.tasks.to_string(),
                format::rate(point.holds),
                point.fails.map_or_else(|| "not found".to_owned(), format::rate),
                share,
            ];
            row.extend(self.fit.as_ref().map(|fit| format::rate(fit.throughput(f64::from(point.tasks)))));
            table.push(row);
        }
        table
    }

    pub(super) fn legend(&self) -> Vec<LegendEntry> {
        let mut entries = vec![
            LegendEntry::new(Mark::Dot, "dot p50", "the highest rate that held, and up to the lowest that did not"),
            LegendEntry::new(Mark::Line, LINEAR, "linear scaling"),
        ];
        if self.fit.is_some() {
            entries.push(LegendEntry::new(Mark::Line, CURVE, "Universal Scalability Law"));
        }
        entries
    }

    pub(super) fn draw(&self, room: Room) -> Drawing {
        let width = paper_width(room);
        let (left, right, top) = (58.0, width - 18.0, 22.0);
        let bottom = if room == Room::Wide { 270.0 } else { 240.0 };
        let most = self.points.last().map_or(1, |point| point.tasks);
        let highest = self.points.iter().map(|point| point.fails.unwrap_or(point.holds)).fold(0.0, f64::max);
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
            elements.push(Element::polyline(curve.map(|tasks| at(tasks, fit.throughput(tasks))), CURVE));
        }
        for point in &self.points {
            let (x, y) = (across.at(f64::from(point.tasks)), up.at(point.holds));
            if let Some(fails) = point.fails {
                elements.push(Element::line((x, y), (x, up.at(fails)), "range"));
            }
            let tip = format!("{} tasks per service: {} a second", point.tasks, format::rate(point.holds));
            elements.push(Element::circle((x, y), 5.0, "dot p50").tip(&tip));
        }
        Drawing { width, height: bottom + 40.0, elements }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{UslPoint, fit_usl};

    fn chart(rates: &[(u32, f64)]) -> Scaling {
        let points: Vec<ScalingPoint> =
            rates.iter().map(|&(tasks, holds)| ScalingPoint { tasks, holds, fails: Some(holds * 1.05) }).collect();
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
        assert_eq!(two.table().rows[1], ["2", "187.00", "196.35", "94 %"]);
        let four = chart(&[(1, 100.0), (2, 186.9), (4, 315.0), (8, 418.0)]);
        assert!(drawn(&four).contains(CURVE));
        assert_eq!((four.table().columns.len(), four.legend().len()), (5, 3));
    }
}
