//! Latency by percentile: the curve of a whole histogram, both axes logarithmic, so that the tail has room.

use super::timeline::axis_ms;
use super::{Drawing, LegendEntry, Mark, Room, line_class, paper_width};
use crate::report::document::Table;
use crate::report::format;
use crate::report::svg::{Axis, Element, Scale};
use crate::result::Latencies;
use crate::statistics::SAMPLES_BEYOND;

/// Points of a curve.
const POINTS: u32 = 200;
/// 99.999 %: further right even long runs have single requests.
const MOST_NINES: f64 = 5.0;
/// The percentiles that get a label, and the table's columns.
const LABELLED: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

/// What the longest label takes, in user units.
const LABEL_WIDTH: f64 = 44.0;

/// The chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// What it shows.
    pub title: String,
    /// One line each.
    pub curves: Vec<Curve>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Whose.
    pub name: String,
    /// Everything it is drawn from; not empty.
    pub latencies: Latencies,
}

impl Distribution {
    /// The chart of those that have a histogram with something in it; `None` if none has.
    #[must_use]
    pub fn of<'a>(
        title: impl Into<String>,
        curves: impl IntoIterator<Item = (String, Option<&'a Latencies>)>,
    ) -> Option<Self> {
        let usable = curves.into_iter().filter_map(|(name, latencies)| {
            let latencies = latencies.filter(|latencies| !latencies.is_empty())?.clone();
            Some(Curve { name, latencies })
        });
        let curves: Vec<Curve> = usable.collect();
        (!curves.is_empty()).then(|| Self { title: title.into(), curves })
    }

    pub(super) fn description(&self) -> String {
        let of_curve = |curve: &Curve| {
            let count = curve.latencies.count();
            let at = |percent| format::percentile_in_words(curve.latencies.percentile_ms(percent), percent, count);
            let parts = [("half", at(50.0)), ("99 %", at(99.0)), ("all", curve.latencies.max_ms().map(format::ms))];
            let known = parts.into_iter().filter_map(|(share, ms)| ms.map(|ms| format!("{share} within {ms}")));
            format!("{}: {}", curve.name, known.collect::<Vec<_>>().join(", "))
        };
        let parts: Vec<String> = self.curves.iter().map(of_curve).collect();
        format!("{}. Both axes are logarithmic.", parts.join("; "))
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(self.title.clone(), &["Of", "#Requests"]);
        let shown: Vec<f64> = LABELLED.into_iter().filter(|percent| nines(*percent) <= self.nines() + 1e-9).collect();
        for percent in &shown {
            table.add_numeric_column(if *percent == 0.0 { "min ms".to_owned() } else { format!("p{percent} ms") });
        }
        table.add_numeric_column("max ms");
        for Curve { name, latencies } in &self.curves {
            let mut row = vec![name.clone(), format::count(latencies.count())];
            for &percent in &shown {
                row.push(if percent == 0.0 {
                    format::or_missing(latencies.min_ms().map(format::plain_ms))
                } else {
                    format::percentile_ms(latencies.percentile_ms(percent), percent, latencies.count())
                });
            }
            row.push(format::or_missing(latencies.max_ms().map(format::plain_ms)));
            table.push(row);
        }
        table
    }

    pub(super) fn legend(&self) -> Vec<LegendEntry> {
        let entry =
            |(index, curve): (usize, &Curve)| LegendEntry::new(Mark::Line, line_class(index), curve.name.clone());
        self.curves.iter().enumerate().map(entry).collect()
    }

    /// How far right there is something to show.
    fn nines(&self) -> f64 {
        self.curves.iter().map(|curve| nines_of(&curve.latencies)).fold(1.0, f64::max)
    }

    pub(super) fn draw(&self, room: Room) -> Drawing {
        let width = paper_width(room);
        let (left, right, top) = (52.0, width - LABEL_WIDTH / 2.0 - 4.0, 22.0);
        let bottom = if room == Room::Wide { 300.0 } else { 270.0 };
        let across = Axis::right(Scale::Linear(0.0, self.nines()), left, right);
        let points: Vec<Vec<(f64, f64)>> = self.curves.iter().map(|curve| curve_points(&curve.latencies)).collect();
        let up = Axis::up(Scale::enclosing(points.iter().flatten().map(|(_, ms)| *ms)), bottom, top);

        let mut ticks: Vec<f64> = Vec::new();
        for tick in LABELLED.into_iter().map(nines).filter(|nines| *nines <= self.nines() + 1e-9) {
            let has_room = ticks.last().is_none_or(|before| across.at(tick) - across.at(*before) >= LABEL_WIDTH);
            if has_room {
                ticks.push(tick);
            }
        }
        let mut elements = vec![
            up.grid(left, right, 8, axis_ms),
            across.grid_at(&ticks, bottom, top, |nines| format!("{} %", percent_of(nines))),
            Element::label((left, top - 9.0), "start", "panel", "latency in ms, logarithmic"),
            Element::label((right, bottom + 32.0), "end", "tick", "share of requests that are not slower"),
        ];
        for (index, points) in points.iter().enumerate() {
            let line = |from: usize, to: usize| {
                points[from..to].iter().map(|(nines, ms)| Some((across.at(*nines), up.at(*ms))))
            };
            // Where fewer than ten requests are left, the curve is of single ones.
            let rough = points.iter().position(|(nines, _)| *nines > supported_nines(&self.curves[index].latencies));
            let rough = rough.unwrap_or(points.len()).max(1).min(points.len());
            elements.push(Element::polyline(line(0, rough), &line_class(index)));
            if rough < points.len() {
                elements
                    .push(Element::polyline(line(rough - 1, points.len()), &format!("{} rough", line_class(index))));
            }
        }
        Drawing { width, height: bottom + 40.0, elements }
    }
}

/// How many nines a percentage has: 90 % is 1, 99 % is 2.
fn nines(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).log10()
}

/// The percentage with so many nines, without the noise of floating point.
fn percent_of(nines: f64) -> f64 {
    let percent = 100.0 * (1.0 - 10_f64.powf(-nines));
    (percent * 1_000.0).round() / 1_000.0
}

/// The highest percentile that a number of requests resolves: one of them is above it.
#[expect(clippy::cast_precision_loss, reason = "a position on a chart")]
fn nines_of(latencies: &Latencies) -> f64 {
    (latencies.count() as f64).log10().clamp(0.0, MOST_NINES)
}

/// How far right ten requests are left.
#[expect(clippy::cast_precision_loss, reason = "a position on a chart")]
fn supported_nines(latencies: &Latencies) -> f64 {
    (latencies.count() as f64 / SAMPLES_BEYOND).log10().max(0.0)
}

fn curve_points(latencies: &Latencies) -> Vec<(f64, f64)> {
    let end = nines_of(latencies);
    let at = |step: u32| {
        let nines = end * f64::from(step) / f64::from(POINTS);
        // The exact percentage: `percent_of` rounds for labels.
        let value = latencies.percentile_ms(100.0 * (1.0 - 10_f64.powf(-nines)));
        value.map(|ms| (nines, ms))
    };
    (0..=POINTS).filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(count: u64) -> Latencies {
        let mut latencies = Latencies::new();
        (1..=count).for_each(|ms| latencies.record_micros(ms * 1_000));
        latencies
    }

    #[test]
    fn a_curve_is_the_histogram_and_ends_where_the_count_resolves_nothing_more() {
        let points = curve_points(&uniform(1_000));
        let (nines, ms) = points[points.len() - 1];
        assert!((nines - 3.0).abs() < 1e-9 && (ms - 999.0).abs() < 2.0, "{nines} {ms}");
        let (_, median) = points.iter().min_by(|a, b| (a.0 - 0.301).abs().total_cmp(&(b.0 - 0.301).abs())).unwrap();
        assert!((median - 500.0).abs() < 10.0, "{median}");
    }

    #[test]
    fn the_part_of_a_curve_that_few_requests_are_left_for_is_drawn_faintly() {
        let drawn = |count| {
            let latencies = uniform(count);
            let chart = Distribution::of("t", [("a".into(), Some(&latencies))]).unwrap();
            let elements = chart.draw(Room::Wide).elements;
            elements.iter().map(ToString::to_string).filter(|element| element.starts_with("<path")).collect::<Vec<_>>()
        };
        let many = drawn(1_000);
        assert_eq!(many.len(), 2);
        assert!(many[0].contains("class=\"line s0 d0\"") && many[1].contains("class=\"line s0 d0 rough\""), "{many:?}");
        assert_eq!(drawn(5).len(), 2, "a curve of five is rough from its beginning");
    }

    #[test]
    fn percentiles_that_a_small_count_cannot_have_are_not_invented() {
        let (many, few) = (uniform(1_000), uniform(50));
        let chart = Distribution::of("t", [("many".into(), Some(&many)), ("few".into(), Some(&few))]).unwrap();
        let table = chart.table();
        let headings: Vec<&str> = table.columns.iter().map(|column| column.heading.as_str()).collect();
        assert_eq!(headings, ["Of", "Requests", "min ms", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"]);
        assert_eq!(table.rows[1][5..7], ["too few", "too few"]);
        assert_eq!(table.rows[1][4], "≈45.0", "five of fifty lie beyond");
        assert_eq!(table.rows[0][5..7], ["990", "≈1,000"]);
        assert!(Distribution::of("t", [("none".into(), None), ("empty".into(), Some(&Latencies::new()))]).is_none());
    }
}
