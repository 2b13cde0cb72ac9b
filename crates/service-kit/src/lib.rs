//! THE shared crate: only what all three services use.
//!
//! A service describes itself as a [`service::Service`] and hands it to [`service::run`]; everything between the socket
//! and its handlers (timeouts, request ids, stage timing, error shape, health, shutdown) lives here, and nothing about
//! any one service does.

pub mod auth;
pub mod clock;
pub mod config;
pub mod context;
pub mod database;
pub mod display_name;
pub mod entity_tag;
pub mod extract;
pub mod faults;
pub mod fields;
pub mod health;
pub mod middleware;
pub mod openapi;
pub mod problem;
pub mod server;
pub mod service;
pub mod stages;
pub mod telemetry;
pub mod unicode;

/// What a handler returns: its answer, or the problem that becomes `application/problem+json`.
pub type Result<T, E = problem::Problem> = std::result::Result<T, E>;
