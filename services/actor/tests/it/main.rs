//! The actor service as production serves it, against real PostgreSQL: one file an endpoint, and one a thing that all
//! endpoints share.

mod served;

mod get_actor;
mod get_me;
mod update_me;

mod database;
mod first_sight;
mod http;
mod on_cognito;
mod openapi;
mod queries;
mod tokens;
