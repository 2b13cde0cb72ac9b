//! Encrypted connections to the database, as RDS demands them.

use std::time::Duration;

use migrator::{MigrateError, Migrator};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use stack::postgres::ServerCertificate;
use test_support::{TestPostgres, test_passwords};

use crate::quietly;

/// A certificate authority's PEM, and a certificate for 127.0.0.1 that it issued.
fn authority_and_certificate() -> (String, ServerCertificate) {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    (authority_pem, ServerCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
}

#[tokio::test]
async fn the_servers_certificate_is_verified_when_the_url_asks_for_it() {
    let (authority, certificate) = authority_and_certificate();
    let server = TestPostgres::start_with_tls(certificate).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let url = |pem: &str| {
        std::fs::write(&file, pem).unwrap();
        format!("{}?sslmode=verify-full&sslrootcert={}", server.admin_url(), file.display())
    };

    migrator::run(&url(&authority), &test_passwords()).await.unwrap();

    let (stranger, _) = authority_and_certificate();
    // Trying again could not help: the long wait is not used.
    let patient = Migrator::new(test_passwords()).connect_wait(Duration::from_hours(1));
    let error = patient.run(&url(&stranger), &mut quietly).await.unwrap_err();
    assert!(matches!(error, MigrateError::Refused(_)), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_when_the_url_requires_it() {
    let server = TestPostgres::start(&[]).await;
    let url = format!("{}?sslmode=require", server.admin_url());
    let error = migrator::run(&url, &test_passwords()).await.unwrap_err();
    assert!(matches!(error, MigrateError::Refused(_)), "{error}");
}
