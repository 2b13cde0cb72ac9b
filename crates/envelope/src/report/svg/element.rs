//! One element of SVG, which escapes whatever it is given.

use std::fmt::{Display, Formatter, Result, Write as _};

use crate::report::escape;

/// An element with its attributes and content.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), content: String::new() }
    }

    /// `<g class=…>`
    pub(crate) fn group(class: &str) -> Self {
        Self::new("g").set("class", class)
    }

    pub(crate) fn line(from: (f64, f64), to: (f64, f64), class: &str) -> Self {
        Self::new("line").set("class", class).at("x1", from.0).at("y1", from.1).at("x2", to.0).at("y2", to.1)
    }

    pub(crate) fn rect(corner: (f64, f64), width: f64, height: f64, class: &str) -> Self {
        let rect = Self::new("rect").set("class", class).at("x", corner.0).at("y", corner.1);
        rect.at("width", width.max(0.0)).at("height", height.max(0.0))
    }

    pub(crate) fn circle(centre: (f64, f64), radius: f64, class: &str) -> Self {
        Self::new("circle").set("class", class).at("cx", centre.0).at("cy", centre.1).at("r", radius)
    }

    /// A text whose `anchor` (`start`, `middle`, `end`) is at `position`, on its base line.
    pub(crate) fn label(position: (f64, f64), anchor: &str, class: &str, text: &str) -> Self {
        let label = Self::new("text").set("class", class).set("text-anchor", anchor);
        label.at("x", position.0).at("y", position.1).text(text)
    }

    /// A line through points; where there is none (`None`), the line is interrupted.
    pub(crate) fn polyline(points: impl IntoIterator<Item = Option<(f64, f64)>>, class: &str) -> Self {
        let mut path = String::new();
        let mut pen_is_down = false;
        for point in points {
            let Some((x, y)) = point else {
                pen_is_down = false;
                continue;
            };
            // A point between two gaps has a length of zero, and shows as a dot because of its round cap.
            let (begin, end) = if pen_is_down { ("L", "") } else { ("M", "h0") };
            let _ = write!(path, "{begin}{} {}{end}", short(x), short(y));
            pen_is_down = true;
        }
        Self::new("path").set("class", class).set("d", &path)
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.attributes, " {name}=\"{}\"", escape::markup(value));
        self
    }

    pub(crate) fn at(self, name: &str, value: f64) -> Self {
        self.set(name, &short(value))
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        self.content += &escape::markup(text);
        self
    }

    /// A text that appears when the pointer rests on the element.
    pub(crate) fn tip(self, text: &str) -> Self {
        let tip = Self::new("title").text(text);
        self.with(tip)
    }

    pub(crate) fn with(mut self, child: impl Into<Option<Self>>) -> Self {
        if let Some(child) = child.into() {
            self.content += &child.to_string();
        }
        self
    }

    pub(crate) fn with_all(self, children: impl IntoIterator<Item = Self>) -> Self {
        children.into_iter().fold(self, Self::with)
    }
}

impl Display for Element {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let Self { name, attributes, content } = self;
        if content.is_empty() {
            write!(formatter, "<{name}{attributes}/>")
        } else {
            write!(formatter, "<{name}{attributes}>{content}</{name}>")
        }
    }
}

/// Coordinates to a tenth: finer than any screen shows.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// About how wide a text is in the charts' font, in user units.
#[expect(clippy::cast_precision_loss, reason = "texts are short")]
pub(crate) fn text_width(text: &str, font_size: f64) -> f64 {
    text.chars().count() as f64 * font_size * 0.56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_stays_text() {
        let element = Element::label((1.0, 2.25), "end", "a\"b", "<x> & y");
        assert_eq!(
            element.to_string(),
            "<text class=\"a&quot;b\" text-anchor=\"end\" x=\"1\" y=\"2.2\">&lt;x&gt; &amp; y</text>"
        );
    }

    #[test]
    fn a_gap_interrupts_a_line() {
        let line = Element::polyline([Some((0.0, 0.0)), Some((1.0, 1.0)), None, Some((3.0, 3.0))], "l");
        assert_eq!(line.to_string(), "<path class=\"l\" d=\"M0 0h0L1 1M3 3h0\"/>");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(["0", "12.3", "-0.5"].map(|text| short(text.parse().unwrap())), ["0", "12.3", "-0.5"]);
        assert_eq!(short(-0.01), "0");
    }
}
