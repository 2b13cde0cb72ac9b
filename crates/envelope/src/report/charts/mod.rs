//! The charts: each knows its data, how to draw itself wide and narrow, and the table that says the same.

mod distribution;
mod runs;
mod scaling;
mod stages;
mod timeline;

pub use distribution::{Curve, Distribution};
pub use runs::{RunBar, Runs};
pub use scaling::{Scaling, ScalingPoint};
pub use stages::{StageBar, StagePart, Stages};
pub use timeline::{TimePoint, Timeline};

use super::document::Table;
use super::svg::Element;

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Throughput and percentiles over time.
    Timeline(Timeline),
    /// Latency by percentile.
    Distribution(Distribution),
    /// Stages by endpoint.
    Stages(Stages),
    /// Runs side by side.
    Runs(Runs),
    /// Capacity by task count.
    Scaling(Scaling),
}

/// How much room there is. A chart is drawn for both, and the page shows the one that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// A page of a desktop, or paper.
    Wide,
    /// A telephone, or half a page.
    Narrow,
}

/// An entry of a legend: the class of its mark, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LegendEntry {
    pub(crate) mark: Mark,
    pub(crate) class: String,
    pub(crate) text: String,
}

/// What a legend shows before the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Line,
    Area,
    Dot,
}

impl LegendEntry {
    fn new(mark: Mark, class: impl Into<String>, text: impl Into<String>) -> Self {
        Self { mark, class: class.into(), text: text.into() }
    }
}

impl Chart {
    /// What it shows.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Timeline(chart) => &chart.title,
            Self::Distribution(chart) => &chart.title,
            Self::Stages(chart) => &chart.title,
            Self::Runs(chart) => &chart.title,
            Self::Scaling(chart) => &chart.title,
        }
    }

    /// What somebody who does not see it should know.
    #[must_use]
    pub fn description(&self) -> String {
        match self {
            Self::Timeline(chart) => chart.description(),
            Self::Distribution(chart) => chart.description(),
            Self::Stages(chart) => chart.description(),
            Self::Runs(chart) => chart.description(),
            Self::Scaling(chart) => chart.description(),
        }
    }

    /// The same as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        match self {
            Self::Timeline(chart) => chart.table(),
            Self::Distribution(chart) => chart.table(),
            Self::Stages(chart) => chart.table(),
            Self::Runs(chart) => chart.table(),
            Self::Scaling(chart) => chart.table(),
        }
    }

    pub(crate) fn legend(&self) -> Vec<LegendEntry> {
        match self {
            Self::Timeline(chart) => chart.legend(),
            Self::Distribution(chart) => chart.legend(),
            Self::Stages(chart) => chart.legend(),
            Self::Runs(chart) => chart.legend(),
            Self::Scaling(chart) => chart.legend(),
        }
    }

    /// The drawing. `id` must be unique in the page.
    #[must_use]
    pub fn svg(&self, room: Room, id: &str) -> String {
        let drawing = match self {
            Self::Timeline(chart) => chart.draw(room),
            Self::Distribution(chart) => chart.draw(room),
            Self::Stages(chart) => chart.draw(room),
            Self::Runs(chart) => chart.draw(room),
            Self::Scaling(chart) => chart.draw(room),
        };
        let (title, description) = (format!("{id}-title"), format!("{id}-desc"));
        Element::new("svg")
            .set("xmlns", "http://www.w3.org/2000/svg")
            .set("class", if room == Room::Wide { "wide" } else { "narrow" })
            .set("viewBox", &format!("0 0 {} {}", drawing.width, drawing.height))
            .set("role", "img")
            .set("aria-labelledby", &format!("{title} {description}"))
            .with(Element::new("title").set("id", &title).text(self.title()))
            .with(Element::new("desc").set("id", &description).text(&self.description()))
            .with_all(drawing.elements)
            .to_string()
    }
}

/// What a chart has drawn, and on how much paper.
struct Drawing {
    width: f64,
    height: f64,
    elements: Vec<Element>,
}

/// The width of the paper; one user unit is about a pixel.
fn paper_width(room: Room) -> f64 {
    match room {
        Room::Wide => 960.0,
        Room::Narrow => 380.0,
    }
}

/// Size of labels in user units, as the page's style sets it.
const FONT_SIZE: f64 = 12.0;

/// The class of the `index`-th of several lines: colours repeat after eight, with another dash.
fn line_class(index: usize) -> String {
    format!("line s{} d{}", index % 8, index / 8 % 3)
}
