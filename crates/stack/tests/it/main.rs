//! PostgreSQL and the object store as the stack starts them, against the real programs.
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod object_store;
mod object_store_multipart;
mod postgres;
