//! Commands that make something and print it.

use std::process::ExitCode;

use stack::Service;

use super::failed;
use crate::api_page::{merged_openapi, openapi_of};
use crate::terminal::try_say;

/// `datum keys generate`
pub(super) fn signing_key() -> ExitCode {
    match auth::keys::generate_pem() {
        Ok(pem) => printed(pem.trim_end()),
        Err(error) => failed(format_args!("{error:#}")),
    }
}

/// `datum openapi`
pub(super) fn openapi(service: Option<Service>) -> ExitCode {
    let document = service.map_or_else(merged_openapi, openapi_of);
    match document.to_pretty_json() {
        Ok(json) => printed(&json),
        Err(error) => failed(error),
    }
}

/// What goes into a file must not be cut short without a word, as on a full disk.
fn printed(text: &str) -> ExitCode {
    match try_say(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(format_args!("cannot write: {error}")),
    }
}
