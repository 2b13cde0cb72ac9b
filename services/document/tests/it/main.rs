//! The document service as production serves it, against real PostgreSQL and a real S3 server: one file an endpoint, and one a
//! thing that all endpoints share.

#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod proxy;
mod served;

mod delete;
mod download;
mod faults;
mod list;
mod metadata;
mod upload;
mod upload_forms;
mod upload_limits;

mod aborts;
mod config;
mod database;
mod http;
mod object_store;
mod openapi;
mod queries;
mod sweeper;
