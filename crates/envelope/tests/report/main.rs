//! The report of results as they lie on disk: written, read back, rendered, and opened in a browser.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod fixture;
mod page;
mod text;
