//! The ALB stand-in: path rules, target groups with health checks, draining, and one HTTP/1.1 hop that behaves as an
//! Application Load Balancer does.
//!
//! [`Balancer::serve`] accepts clients; [`Balancer::register`] and [`Balancer::deregister`] say who answers them, at any
//! time. A request is sent to one target and never sent again once a byte of it may have left.
//!
//! Where it differs from an ALB on purpose: a connection that a target refuses is tried at the next target (an ALB answers
//! 502), WebSocket and HTTP/2 are not supported, a request with both a length and chunks is refused (an ALB forwards it and
//! closes both connections), and connections over a limit are told so with 503.

mod balancer;
mod clock;
mod config;
mod edge;
pub mod names;
mod registry;
pub mod rules;
mod run;
mod targets;

pub use balancer::{Balancer, UnknownGroup};
pub use config::{Config, ConfigError, FORWARD_DELAY_VARIABLE, Stop, TargetConnections, read_forward_delay};
pub use run::{help, run};
pub use service_kit::server::{Outcome, Shutdown};
pub use targets::{
    Algorithm, GroupConfig, GroupSnapshot, HealthCheck, Reason, SourceError, StatusMatcher, TargetSnapshot,
    TargetSource, TargetState,
};
