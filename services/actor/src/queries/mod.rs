//! SQL as functions: one file a table, one function a statement, no decisions.

pub mod actors;
