//! The service on a Cognito user pool: no database, and Cognito's part played by a stub on the wire.

mod answers;
mod confirm;
mod limits;
mod login;
mod password;
mod readiness;
mod register;
mod served;
mod sessions;
