//! Whose word is taken for who a target is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// Whose certificates an https target's must be signed by.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// Those that the machine trusts.
    #[default]
    Machine,
    /// These and no others.
    Only(Arc<RootCertStore>),
}

/// Why a file of certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds no certificate, or something that is none.
    #[error("{}: {reason}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Trust {
    /// Reads the certificates of a file (PEM), as a private CA hands them out.
    pub fn of_file(path: &Path) -> Result<Self, TrustError> {
        let pem = fs::read(path).map_err(|source| TrustError::Io { path: path.to_owned(), source })?;
        Self::of_pem(&pem).map_err(|reason| TrustError::Malformed { path: path.to_owned(), reason })
    }

    fn of_pem(pem: &[u8]) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("it is no PEM file of certificates: {error}"))?;
            roots.add(certificate).map_err(|error| format!("a certificate of it cannot be used: {error}"))?;
        }
        if roots.is_empty() {
            return Err("it holds no certificate (`-----BEGIN CERTIFICATE-----`)".to_owned());
        }
        Ok(Self::Only(Arc::new(roots)))
    }

    /// What TLS connections are made with.
    pub(super) fn client_config(&self) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        // Two providers can be compiled in; then rustls needs to be told. Somebody else may have told it already.
        let _ = CryptoProvider::install_default((*provider).clone());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let trusting: ConfigBuilder<ClientConfig, WantsClientCert> = match self {
            Self::Machine => builder.with_platform_verifier()?,
            Self::Only(roots) => builder.with_root_certificates(Arc::clone(roots)),
        };
        Ok(trusting.with_no_client_auth())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.pem");
        assert!(Trust::of_file(&missing).unwrap_err().to_string().contains("missing.pem"));
        for (text, reason) in [
            ("", "holds no certificate"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be used"),
        ] {
            let path = folder.path().join("ca.pem");
            fs::write(&path, text).unwrap();
            let refusal = Trust::of_file(&path).unwrap_err().to_string();
            assert!(refusal.contains("ca.pem") && refusal.contains(reason), "{refusal}");
        }
    }
}
