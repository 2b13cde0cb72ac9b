//! What is loaded: a system of this machine that is started for the run, or one elsewhere.
//!
//! An own system is a child process, `datum up`: balancer, object store and tasks are then outside the process that sends the
//! requests, and the CPU of each is known.

mod cpu;
mod elsewhere;
mod own_stack;
mod settings;

pub(super) use cpu::{CpuWatch, cpu_seconds_of, peak_memory_bytes_of};
pub(super) use elsewhere::Elsewhere;
pub(super) use own_stack::{OwnStack, StackFailure};
pub(super) use settings::{Delay, Double, StackSettings, is_secret};
