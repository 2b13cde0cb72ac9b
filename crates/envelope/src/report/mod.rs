//! The performance-envelope report: runs become a [`Document`], a document becomes Markdown or an HTML page.
//!
//! `sections/` lays out what was measured, one file a section; `rules/` interprets it, one function a rule, and nothing
//! else may interpret; `charts/` and `svg/` draw. A report depends on its runs alone: no clock, no network, no randomness,
//! so that the same results give the same bytes anywhere.

pub mod charts;
pub mod document;
mod escape;
pub mod format;
mod html;
mod markdown;
mod svg;

pub use document::Document;
pub use html::html;
pub use markdown::markdown;
