//! The report as data: what the renderers turn into Markdown and HTML. All texts are plain; renderers escape them.

use super::charts::Chart;

/// A whole report.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// One line about what it is of.
    pub subtitle: String,
    /// What comes before everything else.
    pub verdict: Verdict,
    /// In the order of [`SectionKind::ALL`], each once.
    pub sections: Vec<Section>,
    /// The rules that spoke: id and what the rule looks at.
    pub rules: Vec<(&'static str, &'static str)>,
}

impl Document {
    /// Every finding in the order in which it stands.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of_sections = self.sections.iter().flat_map(|section| &section.blocks);
        of_sections.filter_map(|block| if let Block::Finding(finding) = block { Some(finding) } else { None })
    }
}

/// What the runs are worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// How much.
    pub standing: Standing,
    /// One sentence.
    pub headline: String,
    /// What voids or qualifies them, the worst first.
    pub reasons: Vec<Finding>,
    /// What one looks for first: the answer to a question that the runs ask, then the figures, a sentence for each group of runs
    /// that counts.
    pub figures: Vec<Finding>,
}

/// How much the runs are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// At least one run, or the question of capacity, is void.
    Void,
    /// They stand, with reservations.
    Qualified,
    /// They stand.
    Sound,
}

/// A section.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Which one.
    pub kind: SectionKind,
    /// Its content.
    pub blocks: Vec<Block>,
}

/// The sections, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionKind {
    /// What was asked, of what, by what load.
    Context,
    /// Every run with its role and everything that it was run with.
    Provenance,
    /// Requests a second, all runs and steady state.
    Throughput,
    /// Latency over all endpoints.
    Latency,
    /// Errors by cause and owner, with the exact bound.
    Errors,
    /// Latency by endpoint.
    Endpoints,
    /// Where the time went.
    Attribution,
    /// The rate to run at.
    OperatingPoint,
    /// What more tasks brought.
    Scaling,
    /// What limits.
    Bottleneck,
    /// What follows.
    Conclusion,
}

impl SectionKind {
    /// In the order of the document.
    pub const ALL: [Self; 11] = [
        Self::Context,
        Self::Provenance,
        Self::Throughput,
        Self::Latency,
        Self::Errors,
        Self::Endpoints,
        Self::Attribution,
        Self::OperatingPoint,
        Self::Scaling,
        Self::Bottleneck,
        Self::Conclusion,
    ];

    /// What stands above it.
    #[must_use]
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Context => "Context",
            Self::Provenance => "Run provenance",
            Self::Throughput => "Throughput",
            Self::Latency => "Latency",
            Self::Errors => "Errors by cause and owner",
            Self::Endpoints => "Endpoint summary",
            Self::Attribution => "Attribution",
            Self::OperatingPoint => "Operating point",
            Self::Scaling => "Scaling interpretation",
            Self::Bottleneck => "Bottleneck",
            Self::Conclusion => "Conclusion",
        }
    }

    /// Its name in links.
    #[must_use]
    pub const fn anchor(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Provenance => "run-provenance",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Errors => "errors-by-cause-and-owner",
            Self::Endpoints => "endpoint-summary",
            Self::Attribution => "attribution",
            Self::OperatingPoint => "operating-point",
            Self::Scaling => "scaling-interpretation",
            Self::Bottleneck => "bottleneck",
            Self::Conclusion => "conclusion",
        }
    }
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading within a section.
    Heading(String),
    /// Facts in a sentence, without interpretation.
    Text(String),
    /// An interpretation, with the rule that it follows from.
    Finding(Finding),
    /// A table.
    Table(Table),
    /// A chart; its table is its alternative.
    Chart(Chart),
    /// Charts that belong beside each other.
    Charts(Vec<Chart>),
}

/// A sentence and the rule that it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's id.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What follows, with its numbers.
    pub sentence: String,
}

/// How much a finding matters. Ordered: the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something must not be concluded from the runs.
    Void,
    /// The reader must know before believing.
    Warning,
    /// An observation.
    Note,
}

impl Severity {
    /// The word that stands before a sentence.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Void => "Void",
            Self::Warning => "Warning",
            Self::Note => "Note",
        }
    }
}

/// A table: every row has as many cells as there are columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows; the first cell names the row.
    pub rows: Vec<Vec<String>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading, with the unit.
    pub heading: String,
    /// Whether it holds numbers, which are aligned at their ends.
    pub numeric: bool,
}

impl Table {
    /// A table without rows. A heading that begins with `#` is of a column of numbers.
    #[must_use]
    pub fn new(caption: impl Into<String>, headings: &[&str]) -> Self {
        let columns = headings.iter().map(|heading| match heading.strip_prefix('#') {
            Some(heading) => Column { heading: heading.to_owned(), numeric: true },
            None => Column { heading: (*heading).to_owned(), numeric: false },
        });
        Self { caption: caption.into(), columns: columns.collect(), rows: Vec::new() }
    }

    /// Adds a column of numbers at the end; rows are added after it.
    pub fn add_numeric_column(&mut self, heading: impl Into<String>) {
        self.columns.push(Column { heading: heading.into(), numeric: true });
    }

    /// Adds a row; missing cells at its end are left empty.
    pub fn push(&mut self, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }
}
