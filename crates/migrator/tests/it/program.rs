//! The program: its configuration, what it prints, how it ends.

use std::process::{Command, Output, Stdio};

use test_support::{TestDatabase, test_passwords};

fn migrator(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_migrator"))
        .env_clear()
        .envs(variables.iter().copied())
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_migrates_says_what_it_did_and_ends_with_0() {
    let database = TestDatabase::empty().await;
    let (url, passwords) = (database.admin_url(), test_passwords());
    let variables = [
        ("MIGRATOR_DATABASE_URL", url.as_str()),
        ("DATUM_AUTH_DB_PASSWORD", passwords.auth.expose()),
        ("DATUM_ACTOR_DB_PASSWORD", passwords.actor.expose()),
        ("DATUM_DOCUMENT_DB_PASSWORD", passwords.document.expose()),
    ];
    let first = migrator(&variables, &[]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let printed = text(&first.stdout);
    assert!(printed.contains(&format!("actor: applied {}", migrator::newest_version("actor"))), "{printed}");
    for secret in [&passwords.auth, &passwords.actor, &passwords.document] {
        assert!(!printed.contains(secret.expose()), "{printed}");
    }
    let second = migrator(&variables, &[]);
    assert_eq!(second.status.code(), Some(0));
    assert!(text(&second.stdout).contains("done, 0 applied"), "{}", text(&second.stdout));
    database.connect("document").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_who_goes_away_does_not_end_it() {
    let database = TestDatabase::empty().await;
    let (url, passwords) = (database.admin_url(), test_passwords());
    let mut child = Command::new(env!("CARGO_BIN_EXE_migrator"))
        .env_clear()
        .env("MIGRATOR_DATABASE_URL", &url)
        .env("DATUM_AUTH_DB_PASSWORD", passwords.auth.expose())
        .env("DATUM_ACTOR_DB_PASSWORD", passwords.actor.expose())
        .env("DATUM_DOCUMENT_DB_PASSWORD", passwords.document.expose())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    database.connect("document").await.batch_execute("SELECT FROM _sqlx_migrations").await.unwrap();
}

#[test]
fn every_missing_variable_is_named_at_once() {
    let output = migrator(&[("MIGRATOR_LOCK_WAIT_SECONDS", "soon")], &[]);
    assert_eq!(output.status.code(), Some(64));
    let printed = text(&output.stderr);
    for name in [
        "MIGRATOR_DATABASE_URL",
        "DATUM_AUTH_DB_PASSWORD",
        "DATUM_ACTOR_DB_PASSWORD",
        "DATUM_DOCUMENT_DB_PASSWORD",
        "MIGRATOR_LOCK_WAIT_SECONDS",
    ] {
        assert!(printed.contains(name), "{name} missing in:\n{printed}");
    }
}

#[test]
fn a_server_that_is_not_there_is_given_up_with_1_and_without_the_password() {
    let variables = [
        ("MIGRATOR_DATABASE_URL", "postgres://admin:hunter2hunter2@127.0.0.1:1/datum"),
        ("DATUM_AUTH_DB_PASSWORD", "a"),
        ("DATUM_ACTOR_DB_PASSWORD", "b"),
        ("DATUM_DOCUMENT_DB_PASSWORD", "c"),
        ("MIGRATOR_CONNECT_WAIT_SECONDS", "1"),
    ];
    let output = migrator(&variables, &[]);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stderr);
    assert!(printed.contains("no connection to PostgreSQL within 1 s"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
}

#[test]
fn a_url_of_another_database_is_refused_before_anything_is_asked() {
    // Whoever were to connect would be seen here.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("mysql://admin:hunter2hunter2@{}/datum", listener.local_addr().unwrap());
    let variables = [
        ("MIGRATOR_DATABASE_URL", url.as_str()),
        ("DATUM_AUTH_DB_PASSWORD", "a"),
        ("DATUM_ACTOR_DB_PASSWORD", "b"),
        ("DATUM_DOCUMENT_DB_PASSWORD", "c"),
    ];
    let output = migrator(&variables, &[]);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stderr);
    assert!(printed.contains("neither postgres nor postgresql"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it connected");
}

#[test]
fn help_lists_every_variable() {
    let output = migrator(&[], &["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stdout);
    assert!(printed.contains("MIGRATOR_DATABASE_URL") && printed.contains("MIGRATOR_LOCK_WAIT_SECONDS"), "{printed}");
}
