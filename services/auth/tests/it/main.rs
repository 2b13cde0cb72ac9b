//! The auth service as production serves it, against real PostgreSQL, and in `cognito` against a stub: one file an endpoint, and one a thing that several
//! endpoints share.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod served;

mod confirm;
mod jwks;
mod login;
mod logout;
mod password;
mod refresh;
mod register;

mod bodies;
mod cognito;
mod database;
mod faults;
mod hashing;
mod http;
mod logs;
mod openapi;
mod queries;
mod races;
mod sweep;
mod throttle;
