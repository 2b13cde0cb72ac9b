//! TLS to PostgreSQL: libpq's `sslmode`, on rustls.
//!
//! | mode | encrypted | certificate | host name |
//! |---|---|---|---|
//! | `disable` | no | – | – |
//! | `prefer` (default without a root certificate) | where the server offers it | not checked | not checked |
//! | `require` | yes | checked where a root certificate is given | not checked |
//! | `verify-ca` | yes | checked against the root certificate | not checked |
//! | `verify-full` (default with a root certificate) | yes | checked, by the platform's roots where none is given | checked |
//!
//! Host names are compared with the subject alternative names only (RFC 9525); a common name counts for nothing.

use std::sync::Arc;

use anyhow::Context as _;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// libpq's `sslmode`, but for `allow`: it prefers not to be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err("has an sslmode that is none of disable, prefer, require, verify-ca, verify-full".to_owned()),
        }
    }
}

/// Whose certificates are believed.
#[derive(Debug, Clone)]
pub(super) enum Trust {
    /// Anybody's: protects from listeners, not from an impostor.
    Anyone,
    /// Those that one of these authorities signed.
    Authorities { roots: Arc<RootCertStore>, check_name: bool },
    /// Those that the platform believes, for the host's name.
    Platform,
}

/// How connections are secured.
#[derive(Debug, Clone)]
pub(super) struct Security {
    pub(super) encryption: tokio_postgres::config::SslMode,
    pub(super) trust: Trust,
}

impl Security {
    /// Combines mode and root certificate (a PEM file, or `system`) as libpq 16 does. A combination that looks safer than
    /// it is is an error.
    pub(super) fn new(mode: Option<SslMode>, root_cert: Option<&str>) -> Result<Self, String> {
        use tokio_postgres::config::SslMode as Encryption;
        let mode = mode.unwrap_or(if root_cert.is_some() { SslMode::VerifyFull } else { SslMode::Prefer });
        let authorities = |check_name| {
            move |path: &str| Ok::<_, String>(Trust::Authorities { roots: Arc::new(read_roots(path)?), check_name })
        };
        let (encryption, trust) = match (mode, root_cert) {
            (SslMode::Disable, None) => (Encryption::Disable, Trust::Anyone),
            (SslMode::Prefer, None) => (Encryption::Prefer, Trust::Anyone),
            (SslMode::Require, None) => (Encryption::Require, Trust::Anyone),
            (SslMode::Disable | SslMode::Prefer, Some(_)) => {
                return Err("has no effect with an sslmode that checks no certificate; use verify-full".to_owned());
            }
            (SslMode::Require | SslMode::VerifyCa, Some("system")) => {
                return Err("cannot be system without a check of the host name; use sslmode=verify-full".to_owned());
            }
            (SslMode::VerifyCa, None) => {
                return Err("is needed with sslmode=verify-ca: without a host name, only a private authority says \
                            anything"
                    .to_owned());
            }
            (SslMode::Require | SslMode::VerifyCa, Some(path)) => (Encryption::Require, authorities(false)(path)?),
            (SslMode::VerifyFull, None | Some("system")) => (Encryption::Require, Trust::Platform),
            (SslMode::VerifyFull, Some(path)) => (Encryption::Require, authorities(true)(path)?),
        };
        Ok(Self { encryption, trust })
    }

    /// What `tokio-postgres` makes its TLS connections with.
    pub(super) fn connector(&self) -> anyhow::Result<MakeRustlsConnect> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &self.trust {
            Trust::Anyone => Arc::new(AnyCertificate(Arc::clone(&provider))),
            Trust::Platform => Arc::new(
                rustls_platform_verifier::Verifier::new(Arc::clone(&provider))
                    .context("loading the platform's root certificates for the database")?,
            ),
            Trust::Authorities { roots, check_name } => {
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&provider)).build()?;
                if *check_name { verifier } else { Arc::new(AnyName(verifier)) }
            }
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        // Needed for sslnegotiation=direct, ignored by servers before PostgreSQL 17.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(MakeRustlsConnect::new(config))
    }
}

fn read_roots(path: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| format!("{path} is not PEM: {error}"))?;
        roots.add(certificate).map_err(|error| format!("{path} has a certificate that cannot be used: {error}"))?;
    }
    if roots.is_empty() { Err(format!("{path} has no certificate in it")) } else { Ok(roots) }
}

/// `require`: whoever answers, but the handshake must be signed with the key of the certificate it shows.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// `verify-ca`: the chain is checked, the name is not.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // rustls compares the name last: with this error everything else has passed.
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode as Encryption;

    use super::*;

    #[test]
    fn without_settings_tls_is_used_where_offered_and_with_the_platforms_roots_it_is_demanded() {
        assert_eq!(Security::new(None, None).expect("valid").encryption, Encryption::Prefer);
        let system = Security::new(None, Some("system")).expect("valid");
        assert_eq!(system.encryption, Encryption::Require);
        assert!(matches!(system.trust, Trust::Platform));
    }

    #[test]
    fn combinations_that_look_safer_than_they_are_are_refused() {
        for (mode, root) in [
            (SslMode::Disable, Some("/ca.pem")),
            (SslMode::Prefer, Some("/ca.pem")),
            (SslMode::Require, Some("system")),
            (SslMode::VerifyCa, Some("system")),
            (SslMode::VerifyCa, None),
        ] {
            assert!(Security::new(Some(mode), root).is_err(), "{mode:?} {root:?}");
        }
    }

    #[test]
    fn a_root_certificate_that_is_none_is_refused() {
        let error = Security::new(Some(SslMode::VerifyFull), Some("/nowhere/ca.pem")).expect_err("missing");
        assert!(error.contains("cannot be read"), "{error}");
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let error = Security::new(Some(SslMode::VerifyFull), Some(manifest)).expect_err("no PEM");
        assert!(error.contains("no certificate"), "{error}");
    }
}
