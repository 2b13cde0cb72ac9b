//! The server and the middleware as a client sees them, over real sockets: limits in time and size, refusals that can be
//! read, and the four steps of stopping.

mod faults;
mod harness;
mod limits;
mod refusals;
mod requests;
mod stopping;
