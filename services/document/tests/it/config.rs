//! What the environment may and may not say.

use document::Config;
use service_kit::config::{self, Environment};

const ENOUGH: [(&str, &str); 4] = [
    ("DATABASE_URL", "postgres://datum_document@localhost/datum"),
    ("AUTH_ISSUER", "https://datum.test"),
    ("AUTH_JWKS_URL", "http://127.0.0.1:1/.well-known/jwks.json"),
    ("S3_BUCKET", "documents"),
];

fn errors(pairs: &[(&str, &str)]) -> String {
    let environment = Environment::from_pairs(ENOUGH.iter().chain(pairs).copied());
    config::load(&environment, Config::read).map_or_else(|errors| errors.to_string(), |_| String::new())
}

#[test]
fn a_database_an_issuer_and_a_bucket_are_enough() {
    assert_eq!(errors(&[]), "");
}

#[test]
fn an_upload_may_not_outlast_the_age_of_a_leftover() {
    let allowed = [("DOCUMENT_UPLOAD_TIMEOUT_SECONDS", "100"), ("DOCUMENT_SWEEP_AGE_SECONDS", "101")];
    assert_eq!(errors(&allowed), "");
    let refused = [("DOCUMENT_UPLOAD_TIMEOUT_SECONDS", "100"), ("DOCUMENT_SWEEP_AGE_SECONDS", "100")];
    assert!(errors(&refused).contains("DOCUMENT_SWEEP_AGE_SECONDS must exceed"), "{}", errors(&refused));
}

#[test]
fn every_error_is_reported_at_once() {
    let wrong = [
        ("DOCUMENT_MAX_BYTES", "0"),
        ("DOCUMENT_UPLOAD_BUFFERS", "none"),
        ("DOCUMENT_UPLOAD_WAIT_MS", "-1"),
        ("S3_BUCKET", ""),
        ("S3_ENDPOINT", "not a url"),
        ("S3_MAX_ATTEMPTS", "0"),
    ];
    let reported = errors(&wrong);
    for (name, _) in wrong {
        assert!(reported.contains(name), "{name} is not in:\n{reported}");
    }
}

#[test]
fn the_help_names_every_variable_with_its_unit() {
    let help = config::help(|settings| {
        Config::read(settings);
    });
    for name in [
        "DATABASE_URL",
        "AUTH_ISSUER",
        "S3_BUCKET",
        "S3_OPERATION_TIMEOUT_MS",
        "DOCUMENT_MAX_BYTES",
        "DOCUMENT_UPLOAD_BUFFERS",
        "DOCUMENT_UPLOAD_WAIT_MS",
        "DOCUMENT_UPLOAD_TIMEOUT_SECONDS",
        "DOCUMENT_SWEEP_INTERVAL_SECONDS",
        "DOCUMENT_SWEEP_AGE_SECONDS",
    ] {
        assert!(help.contains(name), "{name} is not in:\n{help}");
    }
}
