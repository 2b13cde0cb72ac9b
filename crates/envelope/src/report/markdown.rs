//! The document as Markdown (GitHub's flavour). A chart becomes its table.

use std::fmt::Write as _;

use super::document::{Block, Document, Finding, Severity, Standing, Table};
use super::escape;

/// Renders a document.
#[must_use]
pub fn markdown(document: &Document) -> String {
    let mut page = Page(String::new());
    page.line(&format!("# {}", escape::markdown(&document.title)));
    page.line(&escape::markdown_line(&document.subtitle));
    page.verdict(document);
    for section in &document.sections {
        page.line(&format!("## {}", section.kind.heading()));
        for block in &section.blocks {
            page.block(block);
        }
    }
    if !document.rules.is_empty() {
        page.line("---");
        page.line("Each interpretation above ends with the rule that it follows from:");
        let rules = document.rules.iter().map(|(id, about)| format!("- `{id}`: {}", escape::markdown(about)));
        page.line(&rules.collect::<Vec<_>>().join("\n"));
    }
    page.0
}

struct Page(String);

impl Page {
    /// A paragraph, and the empty line after it.
    fn line(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn verdict(&mut self, document: &Document) {
        let word = match document.verdict.standing {
            Standing::Void => "VOID",
            Standing::Qualified => "WITH RESERVATIONS",
            Standing::Sound => "SOUND",
        };
        let mut quote = format!("> **Verdict: {word}.** {}", escape::markdown(&document.verdict.headline));
        for reason in &document.verdict.reasons {
            let _ = write!(quote, "\n>\n> - {}", finding(reason));
        }
        for figures in &document.verdict.figures {
            let _ = write!(quote, "\n>\n> {}", finding(figures));
        }
        self.line(&quote);
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => self.line(&format!("### {}", escape::markdown(text))),
            Block::Text(text) => self.line(&escape::markdown_line(text)),
            Block::Finding(found) => self.line(&finding(found)),
            Block::Table(table) => self.table(table),
            Block::Chart(chart) => self.table(&chart.table()),
            Block::Charts(charts) => charts.iter().for_each(|chart| self.table(&chart.table())),
        }
    }

    fn table(&mut self, table: &Table) {
        self.line(&format!("**{}**", escape::markdown(&table.caption)));
        let row = |cells: &mut dyn Iterator<Item = String>| format!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        let headings = row(&mut table.columns.iter().map(|column| escape::markdown(&column.heading)));
        let rule = row(&mut table.columns.iter().map(|column| if column.numeric { "---:" } else { "---" }.to_owned()));
        let rows = table.rows.iter().map(|cells| row(&mut cells.iter().map(|cell| escape::markdown(cell))));
        let lines: Vec<String> = [headings, rule].into_iter().chain(rows).collect();
        self.line(&lines.join("\n"));
    }
}

/// A note is plain; what is worse says so first.
fn finding(finding: &Finding) -> String {
    let sentence = escape::markdown_line(&finding.sentence);
    match finding.severity {
        Severity::Note => format!("{sentence} (`{}`)", finding.rule),
        worse => format!("**{}:** {sentence} (`{}`)", worse.word(), finding.rule),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::{Section, SectionKind, Verdict};

    #[test]
    fn everything_has_its_form() {
        let mut table = Table::new("Two | columns", &["Name", "#Value"]);
        table.push(vec!["a|b".into(), "1".into()]);
        let warning = Finding { rule: "a-rule", severity: Severity::Warning, sentence: "Beware of <b>.".into() };
        let document = Document {
            title: "A *title*".into(),
            subtitle: "of a test".into(),
            verdict: Verdict {
                standing: Standing::Void,
                headline: "Nothing follows.".into(),
                reasons: vec![Finding { rule: "worst", severity: Severity::Void, sentence: "It is void.".into() }],
                figures: vec![Finding { rule: "figures", severity: Severity::Note, sentence: "12 a second.".into() }],
            },
            sections: vec![Section {
                kind: SectionKind::Context,
                blocks: vec![Block::Text("Facts.".into()), Block::Finding(warning), Block::Table(table)],
            }],
            rules: vec![("a-rule", "what it looks at")],
        };
        let expected = "\
# A \\*title\\*

of a test

> **Verdict: VOID.** Nothing follows.
>
> - **Void:** It is void. (`worst`)
>
> 12 a second. (`figures`)

## Context

Facts.

**Warning:** Beware of \\<b\\>. (`a-rule`)

**Two \\| columns**

| Name | Value |
| --- | ---: |
| a\\|b | 1 |

---

Each interpretation above ends with the rule that it follows from:

- `a-rule`: what it looks at
";
        assert_eq!(markdown(&document), expected);
    }
}
