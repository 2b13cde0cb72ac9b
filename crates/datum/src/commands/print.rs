//! Commands that make something and print it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use stack::Service;

use super::{failed, printed};
use crate::api_page::{merged_openapi, openapi_of};

/// `datum keys generate`
pub(super) fn signing_key(file: Option<&Path>) -> ExitCode {
    let pem = match auth::keys::generate_pem() {
        Ok(pem) => pem,
        Err(error) => return failed(format_args!("{error:#}")),
    };
    let Some(file) = file else { return printed(pem.trim_end()) };
    match keep(file, pem.as_bytes()) {
        Ok(Kept::Written) => printed(&format!("{}: written", file.display())),
        Ok(Kept::WasThere) => printed(&format!("{}: is there already", file.display())),
        Err(error) => failed(format_args!("{}: {error}", file.display())),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kept {
    Written,
    WasThere,
}

/// Writes a secret that is made once. It appears under its name when it is complete, and never replaces another: of two
/// processes that do this at once, both read the same key afterwards.
fn keep(file: &Path, content: &[u8]) -> io::Result<Kept> {
    if file.exists() {
        return Ok(Kept::WasThere);
    }
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let part = Path::new(&name);
    let mut writer = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(part)?;
    writer.write_all(content)?;
    writer.sync_all()?;
    let linked = std::fs::hard_link(part, file);
    std::fs::remove_file(part)?;
    match linked {
        Ok(()) => Ok(Kept::Written),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Kept::WasThere),
        Err(error) => Err(error),
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_kept_secret_is_private_and_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("signing.pem");
        assert_eq!(keep(&file, b"first").expect("written"), Kept::Written);
        assert_eq!(keep(&file, b"second").expect("kept"), Kept::WasThere);
        assert_eq!(std::fs::read(&file).expect("the secret"), b"first");
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is left beside it");
    }
}
