//! The passwords and keys that the parts of one stack share. Made once per state folder, never shown.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::service::Service;

/// Random secrets of one stack, kept in a file that only its owner can read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    auth_password: String,
    actor_password: String,
    document_password: String,
    /// The object store's access key id.
    pub s3_access_key_id: String,
    /// The object store's secret key.
    pub s3_secret_access_key: String,
}

impl Secrets {
    /// Fresh secrets: 192 bits each, in hexadecimal so that they need no escaping in a URL.
    #[must_use]
    pub fn random() -> Self {
        Self {
            auth_password: random_hex(),
            actor_password: random_hex(),
            document_password: random_hex(),
            s3_access_key_id: format!("datum-{}", &random_hex()[..14]),
            s3_secret_access_key: random_hex(),
        }
    }

    /// The database password of a service's role.
    #[must_use]
    pub fn role_password(&self, service: Service) -> &str {
        match service {
            Service::Auth => &self.auth_password,
            Service::Actor => &self.actor_password,
            Service::Document => &self.document_password,
        }
    }

    /// What tells this state folder from all others, and is no secret.
    #[must_use]
    pub fn id(&self) -> String {
        // Derived, so that folders from before there were ids have one.
        hex::encode(&digest(&SHA256, self.s3_access_key_id.as_bytes()).as_ref()[..8])
    }

    /// The secrets in `path`, which are made if there are none.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds something else.
    pub fn ensure(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let secrets = Self::random();
                let text = serde_json::to_vec_pretty(&secrets)?;
                let partial = path.with_extension("partial");
                let mut file: File =
                    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
                file.write_all(&text)?;
                file.sync_all()?;
                std::fs::rename(&partial, path)?;
                Ok(secrets)
            }
            Err(error) => Err(error),
        }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(redacted)")
    }
}

fn random_hex() -> String {
    hex::encode(rand::random::<[u8; 24]>())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secrets_are_made_once_and_only_their_owner_reads_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secrets.json");
        let first = Secrets::ensure(&path).expect("made");
        let second = Secrets::ensure(&path).expect("kept");
        for service in Service::ALL {
            assert_eq!(first.role_password(service), second.role_password(service));
            assert_eq!(first.role_password(service).len(), 48);
        }
        assert_eq!(first.id(), second.id());
        assert_ne!(first.id(), Secrets::random().id());
        assert_ne!(first.role_password(Service::Auth), first.role_password(Service::Actor));
        assert_eq!(std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn secrets_do_not_show() {
        let secrets = Secrets::random();
        assert!(!format!("{secrets:?}").contains(&secrets.s3_secret_access_key));
    }

    #[test]
    fn a_file_that_holds_something_else_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secrets.json");
        std::fs::write(&path, "{}").expect("written");
        assert_eq!(Secrets::ensure(&path).expect_err("refused").kind(), io::ErrorKind::InvalidData);
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "{}");
    }
}
