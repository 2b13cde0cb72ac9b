//! The performance-envelope report: runs become a [`Document`], a document becomes Markdown or an HTML page.
//!
//! `sections/` lays out what was measured, one file a section; `rules/` interprets it, one constant a rule, and nothing
//! else may interpret; `charts/` and `svg/` draw. A report depends on its runs alone: no clock, no network, no randomness,
//! so that the same results give the same bytes anywhere.

pub mod anatomy;
pub mod attribution;
mod build;
pub mod charts;
pub mod document;
mod escape;
mod facts;
pub mod format;
mod group;
mod html;
mod markdown;
pub mod reference;
mod rules;
mod sections;
mod svg;
#[cfg(test)]
pub(crate) mod testing;

pub use build::build;
pub use document::Document;
pub use html::html;
pub use markdown::markdown;
pub use reference::Reference;

use crate::analysis::Capacity;

/// What a report should have beside its runs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its title; otherwise one is made from scenarios and targets.
    pub title: Option<String>,
    /// Published figures to stand beside its own.
    pub reference: Option<Reference>,
    /// Searches for capacity that the runs belong to, each with its tasks per service, ascending.
    pub capacities: Vec<(u32, Capacity)>,
}
