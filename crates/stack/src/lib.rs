//! ECS on one machine: PostgreSQL, an object store, N tasks per service as child processes, and the balancer before them.
//!
//! [`Stack::start`] brings all of it up and [`Stack::stop`] takes it down; `datum up` is a terminal around the two. What
//! belongs here is whatever a cloud would do *for* the services: choosing ports, passing the environment, restarting the
//! dead, replacing the living, limiting CPU. What a service does itself (configuration, health, draining) stays in
//! service-kit, and what a load balancer does in balancer.

pub mod backoff;
pub mod cognito;
pub mod control;
pub mod cpu_quota;
pub mod environment;
pub mod error;
pub mod identity;
pub mod logs;
pub mod object_store;
pub mod observer;
pub mod options;
pub mod ports;
pub mod postgres;
pub mod probe;
pub mod registry;
pub mod secrets;
pub mod service;
pub mod shell;
pub mod signing_key;
pub mod state_dir;
pub mod status;

mod board;
mod database;
mod launcher;
mod postgres_keeper;
mod running;
mod slot;
mod start;
mod targets;

pub use error::StackError;
pub use observer::{Event, Observer, Step};
pub use options::{Executable, Location, StackOptions, TaskCounts};
pub use running::Stack;
pub use service::{Service, TaskId};
pub use slot::READY_WITHIN;
pub use status::{Health, TaskStatus};
