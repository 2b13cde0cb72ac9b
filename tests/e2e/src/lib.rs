//! The harness of the journeys: the whole system, started with the command that a user types, and people who use it.
//!
//! Nothing here reaches into the system: it is started and stopped as a process, asked with `datum status`, and used through
//! the balancer.

mod command;
mod datum;
mod person;
mod processes;
mod shared;

pub use command::Running;
pub use datum::{Datum, Ended, Task};
pub use person::{PASSWORD, Person, new_email};
pub use processes::Process;
pub use shared::Shared;

pub use nix::sys::signal::Signal;
