//! Commands that make something and print it.

use std::process::ExitCode;

use stack::Service;

use super::{failed, printed};
use crate::api_page::{merged_openapi, openapi_of};

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
