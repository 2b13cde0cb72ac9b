//! Commands that run or ask one part.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::harness::{Home, finish};

/// A server that gives one answer to one request; its port.
fn answering(status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request);
        let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    });
    port
}

#[test]
fn a_healthcheck_succeeds_only_with_a_success() {
    let home = Home::new();
    let check = |url: &str| home.run(&["healthcheck", url]).code;
    assert_eq!(check(&format!("http://127.0.0.1:{}/ready", answering("200 OK"))), Some(0));
    assert_eq!(check(&format!("http://127.0.0.1:{}/ready", answering("503 Service Unavailable"))), Some(1));
    assert_eq!(check(&format!("http://127.0.0.1:{}/ready", answering("302 Found"))), Some(1));
    assert_eq!(check("http://127.0.0.1:1/ready"), Some(1));
    assert_eq!(check("https://127.0.0.1/ready"), Some(64));

    // As in an image's HEALTHCHECK: the port is the task's own.
    let own = finish(home.command(&["healthcheck"]).env("PORT", answering("200 OK").to_string()));
    assert_eq!(own.code, Some(0), "{own:?}");
}

#[test]
fn each_generated_key_is_another_one() {
    let home = Home::new();
    let (one, two) = (home.run(&["keys", "generate"]), home.run(&["keys", "generate"]));
    assert_eq!(one.code, Some(0), "{one:?}");
    assert!(one.stdout.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{}", one.stdout);
    assert!(one.stdout.ends_with("-----END PRIVATE KEY-----\n"), "{}", one.stdout);
    assert_ne!(one.stdout, two.stdout);
}

#[test]
fn the_openapi_document_is_of_all_or_of_one() {
    let home = Home::new();
    let document = |arguments: &[&str]| -> Value { serde_json::from_str(&home.run(arguments).stdout).unwrap() };
    let all = document(&["openapi"]);
    assert!(all["openapi"].as_str().unwrap().starts_with("3.1"), "{}", all["openapi"]);
    let paths = all["paths"].as_object().unwrap().len();
    let single: usize = ["auth", "actor", "document"]
        .iter()
        .map(|service| document(&["openapi", "--service", service])["paths"].as_object().unwrap().len())
        .sum();
    assert_eq!(paths, single);
}

#[test]
fn a_task_without_configuration_lists_everything_that_is_missing() {
    let home = Home::new();
    let done = finish(home.command(&["task", "auth"]).env_clear());
    assert_eq!(done.code, Some(64), "{done:?}");
    for name in ["DATABASE_URL", "AUTH_ISSUER", "AUTH_SIGNING_KEYS"] {
        assert!(done.stderr.contains(name), "{name} is missing in:\n{}", done.stderr);
    }
}

/// A variable that a service learns to read must either be wired by the stack or reach it from the user's environment;
/// otherwise `LIMIT=1 datum up` would be ignored without a word.
#[test]
fn every_variable_of_every_task_is_wired_or_passed_on() {
    const WIRED: [&str; 19] = [
        "AUTH_AUDIENCE",
        "AUTH_IDENTITY_PROVIDER",
        "AUTH_ISSUER",
        "AUTH_JWKS_URL",
        "AUTH_SIGNING_KEYS",
        "AUTH_SIGNING_KEYS_FILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "COGNITO_CLIENT_ID",
        "DATABASE_URL",
        // The URL has the password.
        "DB_PASSWORD",
        "DATUM_LIFELINE",
        "HOST",
        "PORT",
        "S3_BUCKET",
        "S3_ENDPOINT",
        "S3_FORCE_PATH_STYLE",
    ];
    /// With `--set` only: a fault that is left in a shell must slow nothing down, and in production no key set of this machine is
    /// taken.
    const TYPED: [&str; 3] = ["DATUM_ALLOW_FAULTS", "DATUM_ENVIRONMENT", "FAULT_STAGE_DELAY"];
    let home = Home::new();
    for service in ["auth", "actor", "document"] {
        let help = home.run(&["task", service, "--help"]).stdout;
        let is_variable = |word: &&str| {
            word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        };
        let variables: Vec<&str> =
            help.lines().filter_map(|line| line.split_whitespace().next()).filter(is_variable).collect();
        assert!(variables.len() > 20, "{service}: {variables:?}");
        for name in variables {
            let known = WIRED.contains(&name)
                || TYPED.contains(&name)
                || name == "TRUSTED_PROXY_HOPS"
                || stack::environment::is_passed_on(name);
            assert!(known, "{service} reads {name}, which datum up neither wires nor passes on");
        }
    }
}
