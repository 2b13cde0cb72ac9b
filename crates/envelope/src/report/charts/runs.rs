//! Runs side by side: throughput as bars from zero, percentiles as dots on a logarithmic axis.

use super::timeline::axis_ms;
use super::{Drawing, FONT_SIZE, LegendEntry, Mark, Room, paper_width};
use crate::report::document::Table;
use crate::report::format;
use crate::report::svg::{Axis, Element, Scale, text_width};
use crate::statistics::{Support, support};

/// As many colours the style has for groups.
const ROLE_COLOURS: usize = 8;

/// The chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs {
    /// What it shows.
    pub title: String,
    /// In the order of the report.
    pub bars: Vec<RunBar>,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunBar {
    /// Its name.
    pub name: String,
    /// Its role, and which of the roles that is, for its colour.
    pub role: (String, usize),
    /// Whether nothing may be concluded from it.
    pub void: bool,
    /// Requests that ended a second.
    pub throughput: Option<f64>,
    /// Those of them that got the right answer.
    pub goodput: Option<f64>,
    /// Right answers that the percentiles are of; 0 where that is not known.
    pub requests: u64,
    /// What a reference had, requests a second.
    pub reference: Option<f64>,
    /// Percentiles in milliseconds.
    pub p50_ms: Option<f64>,
    /// 95th.
    pub p95_ms: Option<f64>,
    /// 99th.
    pub p99_ms: Option<f64>,
}

const ROW: f64 = 28.0;

impl Runs {
    pub(super) fn description(&self) -> String {
        let rate = |bar: &RunBar| bar.throughput.map(|rate| format!("{} {}", bar.name, format::rate(rate)));
        let rates: Vec<String> = self.bars.iter().filter_map(rate).collect();
        format!("Requests a second: {}.", rates.join("; "))
    }

    pub(super) fn table(&self) -> Table {
        let with_failures = self.has_failures();
        let mut table = Table::new(self.title.clone(), &["Run", "Role", "#Requests/s"]);
        for heading in ["Goodput/s"].into_iter().filter(|_| with_failures).chain(["p50 ms", "p95 ms", "p99 ms"]) {
            table.add_numeric_column(heading);
        }
        let with_reference = self.bars.iter().any(|bar| bar.reference.is_some());
        if with_reference {
            table.add_numeric_column("Reference requests/s");
        }
        for bar in &self.bars {
            let role = if bar.void { format!("{} (void)", bar.role.0) } else { bar.role.0.clone() };
            let mut row = vec![bar.name.clone(), role, format::or_missing(bar.throughput.map(format::rate))];
            if with_failures {
                row.push(format::or_missing(bar.goodput.map(format::rate)));
            }
            let percentiles = [(bar.p50_ms, 50.0), (bar.p95_ms, 95.0), (bar.p99_ms, 99.0)];
            row.extend(percentiles.map(|(value, percent)| format::percentile_ms(value, percent, bar.requests)));
            if with_reference {
                row.push(bar.reference.map_or_else(|| "-".to_owned(), format::rate));
            }
            table.push(row);
        }
        table
    }

    fn has_latency(&self) -> bool {
        self.bars.iter().any(|bar| bar.p50_ms.or(bar.p95_ms).or(bar.p99_ms).is_some())
    }

    fn has_failures(&self) -> bool {
        self.bars.iter().any(|bar| bar.throughput.zip(bar.goodput).is_some_and(|(all, good)| good < all))
    }

    pub(super) fn legend(&self) -> Vec<LegendEntry> {
        let mut entries: Vec<LegendEntry> = Vec::new();
        for bar in &self.bars {
            let class = role_class(bar.role.1);
            if !entries.iter().any(|entry| entry.class == class && entry.text == bar.role.0) {
                entries.push(LegendEntry::new(Mark::Area, class, bar.role.0.clone()));
            }
        }
        if self.has_failures() {
            entries.push(LegendEntry::new(Mark::Area, "failures", "failed"));
        }
        if self.bars.iter().any(|bar| bar.reference.is_some()) {
            entries.push(LegendEntry::new(Mark::Line, "reference", "reference"));
        }
        if self.has_latency() {
            for name in ["p50", "p95", "p99"] {
                entries.push(LegendEntry::new(Mark::Dot, format!("dot {name}"), name));
            }
        }
        entries
    }

    pub(super) fn draw(&self, room: Room) -> Drawing {
        let width = paper_width(room);
        #[expect(clippy::cast_precision_loss, reason = "a few runs")]
        let height = self.bars.len() as f64 * ROW;
        let top = 26.0;
        let bottom = top + height;
        match (room, self.has_latency()) {
            (Room::Wide, true) => {
                let mut elements = self.rates((150.0, 540.0), (top, bottom), true);
                elements.extend(self.dots((610.0, width - 24.0), (top, bottom), false));
                Drawing { width, height: bottom + 26.0, elements }
            }
            (Room::Wide, false) => {
                let elements = self.rates((150.0, width - 60.0), (top, bottom), true);
                Drawing { width, height: bottom + 26.0, elements }
            }
            (Room::Narrow, has_latency) => {
                let mut elements = self.rates((112.0, width - 50.0), (top, bottom), true);
                let mut end = bottom;
                if has_latency {
                    let second = (bottom + 62.0, bottom + 62.0 + height);
                    elements.extend(self.dots((112.0, width - 18.0), second, true));
                    end = second.1;
                }
                Drawing { width, height: end + 26.0, elements }
            }
        }
    }

    fn rates(&self, across: (f64, f64), (top, bottom): (f64, f64), named: bool) -> Vec<Element> {
        let rates = self.bars.iter().flat_map(|bar| [bar.throughput, bar.reference]).flatten();
        let axis = Axis::right(Scale::from_zero(rates.fold(0.0, f64::max)), across.0, across.1);
        let mut elements = vec![
            axis.grid(bottom, top, 4, |value| format::decimals(value, usize::from(value.fract() > 0.0))),
            Element::label((across.0, top - 10.0), "start", "panel", "requests a second"),
        ];
        for (bar, y) in self.bars.iter().zip(rows(top)) {
            if named {
                elements.push(name(bar, across.0, y));
            }
            if let Some(rate) = bar.throughput {
                let class = format!("bar {}{}", role_class(bar.role.1), if bar.void { " is-void" } else { "" });
                let rect = Element::rect((across.0, y - 9.0), axis.at(rate) - across.0, 18.0, &class);
                elements.push(rect.tip(&format!("{}: {} requests a second", bar.name, format::rate(rate))));
                if let Some(good) = bar.goodput.filter(|good| *good < rate) {
                    let (from, to) = (axis.at(good), axis.at(rate));
                    let failed = Element::rect((from, y - 9.0), to - from, 18.0, "failures");
                    elements.push(failed.tip(&format!("{}: {} a second failed", bar.name, format::rate(rate - good))));
                }
                let value = format::rate(rate);
                let end = axis.at(rate.max(bar.reference.unwrap_or(0.0)));
                elements.push(Element::label((end + 6.0, y + 4.0), "start", "value", &value));
            }
            if let Some(reference) = bar.reference {
                let x = axis.at(reference);
                let line = Element::line((x, y - 12.0), (x, y + 12.0), "reference");
                elements.push(line.tip(&format!("reference: {} requests a second", format::rate(reference))));
            }
        }
        elements
    }

    fn dots(&self, across: (f64, f64), (top, bottom): (f64, f64), named: bool) -> Vec<Element> {
        let all = self.bars.iter().flat_map(|bar| [bar.p50_ms, bar.p95_ms, bar.p99_ms]).flatten();
        let axis = Axis::right(Scale::enclosing(all), across.0, across.1);
        let mut elements = vec![
            axis.grid(bottom, top, 6, axis_ms),
            Element::label((across.0, top - 10.0), "start", "panel", "latency in ms, logarithmic"),
        ];
        for (bar, y) in self.bars.iter().zip(rows(top)) {
            if named {
                elements.push(name(bar, across.0, y));
            }
            let dots = [("p50", bar.p50_ms), ("p95", bar.p95_ms), ("p99", bar.p99_ms)];
            let known: Vec<(&str, f64)> = dots
                .into_iter()
                .zip([50.0, 95.0, 99.0])
                .filter(|(_, percent)| support(*percent, bar.requests) != Support::None)
                .filter_map(|((name, value), _)| value.map(|value| (name, value)))
                .collect();
            if let [(_, first), .., (_, last)] = known[..] {
                elements.push(Element::line((axis.at(first), y), (axis.at(last), y), "range"));
            }
            for (percentile, value) in known {
                let dot = Element::circle((axis.at(value), y), 5.0, &format!("dot {percentile}"));
                elements.push(dot.tip(&format!("{}, {percentile}: {}", bar.name, format::ms(value))));
            }
        }
        elements
    }
}

/// The middle of each row.
fn rows(top: f64) -> impl Iterator<Item = f64> {
    (0_u32..).map(move |index| top + ROW * (f64::from(index) + 0.5))
}

/// A run's name before its bar, shortened to the room there is; the whole name is its tip.
fn name(bar: &RunBar, end: f64, y: f64) -> Element {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of letters")]
    let room = ((end - 10.0) / text_width("x", FONT_SIZE)) as usize;
    let shown = if bar.name.chars().count() <= room {
        bar.name.clone()
    } else {
        // Names of results end with what tells them apart: the scenario or the number of the run.
        let skipped = bar.name.chars().count() - room.saturating_sub(1);
        std::iter::once('…').chain(bar.name.chars().skip(skipped)).collect()
    };
    Element::label((end - 8.0, y + 4.0), "end", "name", &shown).tip(&bar.name)
}

/// A colour for each of eight groups; further ones are the same colours, paler.
fn role_class(index: usize) -> String {
    let again = if index < ROLE_COLOURS { "" } else { " again" };
    format!("role-{}{again}", index % ROLE_COLOURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, throughput: f64) -> RunBar {
        RunBar {
            name: name.into(),
            role: ("steady state".into(), 0),
            void: false,
            throughput: Some(throughput),
            goodput: Some(throughput),
            requests: 0,
            reference: None,
            p50_ms: Some(6.5),
            p95_ms: None,
            p99_ms: Some(852.0),
        }
    }

    #[test]
    fn each_group_has_a_colour_of_its_own_and_its_entry_in_the_legend() {
        let of = |index: usize| RunBar { role: (format!("group {index}"), index), ..bar("run", 100.0) };
        let chart = Runs { title: "t".into(), bars: (0..12).map(of).collect() };
        let legend = chart.legend();
        let groups: Vec<&LegendEntry> = legend.iter().filter(|entry| entry.text.starts_with("group ")).collect();
        assert_eq!(groups.len(), 12);
        let classes: std::collections::BTreeSet<&str> = groups.iter().map(|entry| entry.class.as_str()).collect();
        assert_eq!(classes.len(), 12, "{classes:?}");
        let drawn: String = chart.draw(Room::Wide).elements.iter().map(ToString::to_string).collect();
        for class in classes {
            assert!(drawn.contains(&format!("class=\"bar {class}\"")), "{class} is in the legend only");
        }
    }

    #[test]
    fn a_reference_stands_beside_only_where_there_is_one() {
        let plain = Runs { title: "t".into(), bars: vec![bar("a", 1.0)] };
        assert_eq!(plain.table().columns.len(), 6);
        let with =
            Runs { title: "t".into(), bars: vec![bar("a", 1.0), RunBar { reference: Some(222.35), ..bar("b", 2.0) }] };
        let table = with.table();
        assert_eq!((table.rows[0][6].as_str(), table.rows[1][6].as_str()), ("-", "222.35"));
        assert_eq!(table.rows[0][4], format::NOT_RECORDED);
    }

    #[test]
    fn long_names_keep_their_end_and_their_tip() {
        let label = name(&bar("20261130T210000Z-baseline-mix-run-3", 1.0), 112.0, 0.0).to_string();
        assert!(label.contains("-run-3<title>20261130T210000Z-baseline-mix-run-3</title>"), "{label}");
        assert!(label.contains('…'), "{label}");
    }
}
