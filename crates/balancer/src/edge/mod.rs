//! The client's side: accepting, the state of a connection, one request after the other, and what the balancer answers
//! itself. Which target gets a request is not decided here but in [`crate::targets`].

mod answer;
mod body;
mod connection;
mod exchange;
mod forward;
mod headers;
mod identity;
mod listener;
mod meters;
mod refusal;
mod session;
mod stream;
mod wakeups;

pub(crate) use body::{BodyState, RequestBody};
pub(crate) use listener::{Edge, serve};
