//! Who the caller is: access tokens checked here, in the task, with the issuer's published keys.
//!
//! A handler takes [`Authenticated`]; behind it a [`Verifier`] checks the token against a [`Policy`] with keys from a
//! [`KeySource`]. [`JwksClient`] keeps fetched keys fresh, and [`jwk`] is their form on the wire. Issuing tokens is the
//! business of the identity providers, and nothing here can sign.

mod cache;
mod claims;
mod config;
mod error;
mod extractor;
pub mod jwk;
mod jwks_client;
mod jwks_fetch;
mod key_set;
mod key_source;
mod policy;
mod token;
mod verifier;

pub use claims::{Claims, Scopes};
pub use config::{JwksConfig, Production, VerifierConfig};
pub use error::VerifyError;
pub use extractor::{Authenticated, PresentedToken};
pub use jwks_client::JwksClient;
pub use jwks_fetch::FetchError;
pub use key_source::KeySource;
pub use policy::Policy;
pub use token::MAX_TOKEN_BYTES;
pub use verifier::Verifier;
