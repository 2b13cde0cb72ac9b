//! The document as one self-contained HTML page: no script, nothing from elsewhere, and a policy that says so.

mod chart;

use std::fmt::Write as _;

use super::document::{Block, Document, Finding, Severity, Standing, Table};
use super::escape;

const STYLE: &str = include_str!("style.css");

/// Nothing is loaded and no script runs, whatever a result file may contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Renders a document.
#[must_use]
pub fn html(document: &Document) -> String {
    let mut page = Page { text: String::new(), charts: 0 };
    page.head(document);
    page.verdict(document);
    page.contents(document);
    page.push("<main>\n");
    for section in &document.sections {
        let anchor = section.kind.anchor();
        page.push(&format!("<section id=\"{anchor}\" aria-labelledby=\"{anchor}-heading\">\n"));
        page.push(&format!("<h2 id=\"{anchor}-heading\">{}</h2>\n", section.kind.heading()));
        section.blocks.iter().for_each(|block| page.block(block));
        page.push("</section>\n");
    }
    page.push("</main>\n");
    page.rules(document);
    page.push("</body>\n</html>\n");
    page.text
}

struct Page {
    text: String,
    charts: usize,
}

impl Page {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn head(&mut self, document: &Document) {
        let (title, subtitle) = (escape::markup(&document.title), escape::markup(&document.subtitle));
        let _ = write!(
            self.text,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header>\n<h1>{title}</h1>\n<p class=\"subtitle\">{subtitle}</p>\n\
             </header>\n"
        );
    }

    fn verdict(&mut self, document: &Document) {
        let (class, word) = match document.verdict.standing {
            Standing::Void => ("void", "Void"),
            Standing::Qualified => ("qualified", "With reservations"),
            Standing::Sound => ("sound", "Sound"),
        };
        let headline = escape::markup(&document.verdict.headline);
        let _ = write!(
            self.text,
            "<aside class=\"verdict {class}\" aria-label=\"Verdict\">\n<p class=\"standing\">{word}</p>\n\
             <p class=\"headline\">{headline}</p>\n"
        );
        if !document.verdict.reasons.is_empty() {
            self.push("<ul>\n");
            for reason in &document.verdict.reasons {
                let _ = writeln!(self.text, "<li>{}</li>", sentence(reason));
            }
            self.push("</ul>\n");
        }
        for figures in &document.verdict.figures {
            let _ = writeln!(self.text, "<p class=\"figures\">{}</p>", sentence(figures));
        }
        self.push("</aside>\n");
    }

    fn contents(&mut self, document: &Document) {
        self.push("<nav aria-label=\"Sections\">\n<ul>\n");
        for section in &document.sections {
            let _ =
                writeln!(self.text, "<li><a href=\"#{}\">{}</a></li>", section.kind.anchor(), section.kind.heading());
        }
        self.push("</ul>\n</nav>\n");
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => self.push(&format!("<h3>{}</h3>\n", escape::markup(text))),
            Block::Text(text) => self.push(&format!("<p>{}</p>\n", running_text(text))),
            Block::Finding(found) => {
                let class = match found.severity {
                    Severity::Void => "void",
                    Severity::Warning => "warning",
                    Severity::Note => "note",
                };
                self.push(&format!("<p class=\"finding {class}\">{}</p>\n", sentence(found)));
            }
            Block::Table(table) => self.push(&table_of(table)),
            Block::Chart(chart) => self.chart(chart),
            Block::Charts(charts) => {
                self.push("<div class=\"charts\">\n");
                for chart in charts {
                    self.chart(chart);
                }
                self.push("</div>\n");
            }
        }
    }

    fn chart(&mut self, chart: &super::charts::Chart) {
        self.charts += 1;
        let figure = chart::figure(chart, self.charts);
        self.push(&figure);
    }

    fn rules(&mut self, document: &Document) {
        if document.rules.is_empty() {
            return;
        }
        self.push("<footer>\n<details>\n<summary>The rules that the interpretations follow from</summary>\n<dl>\n");
        for (id, about) in &document.rules {
            let _ =
                writeln!(self.text, "<dt id=\"rule-{id}\"><code>{id}</code></dt><dd>{}</dd>", escape::markup(about));
        }
        self.push("</dl>\n</details>\n</footer>\n");
    }
}

/// A sentence, the worse ones with a word before, and its rule.
fn sentence(finding: &Finding) -> String {
    let text = running_text(&finding.sentence);
    let rule =
        format!("<a class=\"rule\" href=\"#rule-{0}\" title=\"the rule that this follows from\">{0}</a>", finding.rule);
    match finding.severity {
        Severity::Note => format!("{text} {rule}"),
        worse => format!("<strong>{}.</strong> {text} {rule}", worse.word()),
    }
}

/// Escaped, with figures and their units kept on one line.
fn running_text(text: &str) -> String {
    const UNITS: [&str; 8] = ["%", "ms", "s", "min", "B", "KiB", "MiB", "GiB"];
    let mut kept = String::with_capacity(text.len());
    for word in text.split(' ') {
        let bare = word.trim_end_matches(['.', ',', ';', ':', ')']);
        let after_figure = kept.ends_with(|character: char| character.is_ascii_digit());
        if !kept.is_empty() {
            kept.push(if after_figure && UNITS.contains(&bare) { '\u{a0}' } else { ' ' });
        }
        kept.push_str(word);
    }
    escape::markup(&kept)
}

/// A table that scrolls by itself where the page is too narrow, also by keyboard.
fn table_of(table: &Table) -> String {
    let caption = escape::markup(&table.caption);
    let mut text = format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n<table>\n<caption><span>{caption}</span></caption>\n\
         <thead><tr>"
    );
    let class = |numeric: bool| if numeric { " class=\"number\"" } else { "" };
    for column in &table.columns {
        let _ = write!(text, "<th scope=\"col\"{}>{}</th>", class(column.numeric), escape::markup(&column.heading));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (index, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
            let (cell, class) = (escape::markup(cell), class(column.numeric));
            let _ = if index == 0 {
                write!(text, "<th scope=\"row\"{class}>{cell}</th>")
            } else {
                write!(text, "<td{class}>{cell}</td>")
            };
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stay_with_their_units() {
        let text = running_text("at 75.3 ms, 91 % of 2 <b> runs (5 s).");
        assert_eq!(text, "at 75.3\u{a0}ms, 91\u{a0}% of 2 &lt;b&gt; runs (5\u{a0}s).");
    }

    #[test]
    fn a_table_keeps_markup_as_text_and_names_its_rows() {
        let mut table = Table::new("<i>caption</i>", &["Name", "#Value"]);
        table.push(vec!["<script>alert(1)</script>".into(), "1".into()]);
        let text = table_of(&table);
        assert!(!text.contains("<script") && !text.contains("<i>"), "{text}");
        assert!(
            text.contains("<th scope=\"row\">&lt;script&gt;alert(1)&lt;/script&gt;</th><td class=\"number\">1</td>")
        );
    }
}
