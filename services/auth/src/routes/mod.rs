//! One endpoint a file: its request, its answer, its handler.

pub(crate) mod confirm;
pub(crate) mod jwks;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod password;
pub(crate) mod refresh;
pub(crate) mod register;
pub(crate) mod resend;
mod tokens;
