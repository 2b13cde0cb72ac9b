//! A chart on the page: caption, legend, the drawing in two widths, and its table behind a click.

use std::fmt::Write as _;

use super::table_of;
use crate::report::charts::{Chart, LegendEntry, Mark, Room};
use crate::report::escape;

/// The `number`-th chart of the page.
pub(super) fn figure(chart: &Chart, number: usize) -> String {
    let mut text = format!("<figure class=\"chart\">\n<figcaption>{}</figcaption>\n", escape::markup(chart.title()));
    let legend = chart.legend();
    if !legend.is_empty() {
        text.push_str("<ul class=\"legend\">\n");
        for entry in &legend {
            let _ = writeln!(text, "<li>{}{}</li>", swatch(entry), escape::markup(&entry.text));
        }
        text.push_str("</ul>\n");
    }
    for (room, name) in [(Room::Wide, "wide"), (Room::Narrow, "narrow")] {
        let _ = writeln!(text, "{}", chart.svg(room, &format!("chart-{number}-{name}")));
    }
    let _ = write!(
        text,
        "<details>\n<summary>The same as a table</summary>\n{}</details>\n</figure>\n",
        table_of(&chart.table())
    );
    text
}

fn swatch(entry: &LegendEntry) -> String {
    let class = escape::markup(&entry.class);
    let mark = match entry.mark {
        Mark::Line => format!("<path class=\"{class}\" d=\"M1 6H23\"/>"),
        Mark::Area => format!("<rect class=\"{class}\" x=\"5\" y=\"0\" width=\"14\" height=\"12\"/>"),
        Mark::Dot => format!("<circle class=\"{class}\" cx=\"12\" cy=\"6\" r=\"5\"/>"),
    };
    format!("<svg class=\"swatch\" viewBox=\"0 0 24 12\" aria-hidden=\"true\">{mark}</svg>")
}
