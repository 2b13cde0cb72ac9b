//! Amazon Cognito as the services see it: one client a task, with bounds on connections, time, retries and quotas, and one
//! meaning for every answer.
//!
//! What a client of the API is told about it is the services' business; `docs/cognito.md` has the whole table. Nothing that the
//! provider says in words leaves this crate, not even into logs: its messages repeat parameters.

mod admission;
mod answer_size;
mod call;
mod challenge;
mod client;
mod config;
mod error;
mod limit;
mod operation;
mod operations;
mod retry_budget;
mod secret_hash;
mod session_key;
mod tokens;

pub use challenge::Challenge;
pub use client::Cognito;
pub use config::{CognitoConfig, Confirmation, LoginConfig};
pub use error::{CognitoError, Refusal, ThrottledBy, Trouble};
pub use operation::Operation;
pub use operations::{App, NewUser, SignedUp, UserAttributes};
pub use tokens::Tokens;
