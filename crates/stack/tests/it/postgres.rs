//! A server that is found, started, watched, and gone when it should be.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, Uid, getpgid},
};
use stack::postgres::{Options, Postgres, PostgresError, ServerCertificate};
use test_support::eventually;
use tokio_postgres::{Client, NoTls};

/// Set for the copy of this test program that is killed.
const CHILD_FOLDER: &str = "DATUM_TEST_POSTGRES_FOLDER";

/// A folder that PostgreSQL's account can enter.
fn folder() -> tempfile::TempDir {
    folder_with_mode(0o755)
}

fn folder_with_mode(mode: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    folder
}

fn options(folder: &Path) -> Options {
    Options { ephemeral: true, ..Options::new(folder) }
}

async fn connect(postgres: &Postgres, database: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(&postgres.url(database), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn is_alive(pid: u32) -> bool {
    kill(Pid::from_raw(pid.try_into().unwrap()), None).is_ok()
}

#[tokio::test]
async fn data_survives_a_stop_and_a_crash_of_the_server() {
    let folder = folder();
    let postgres = Postgres::start(Options::new(folder.path())).await.unwrap();
    postgres.ensure_database("datum").await.unwrap();
    connect(&postgres, "datum")
        .await
        .batch_execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
        .await
        .unwrap();
    assert!(postgres.stop().await.success());

    let postgres = Postgres::start(Options::new(folder.path())).await.unwrap();
    postgres.ensure_database("datum").await.unwrap();
    connect(&postgres, "datum").await.batch_execute("INSERT INTO kept VALUES (2)").await.unwrap();
    let postmaster = Pid::from_raw(postgres.pid().unwrap().try_into().unwrap());
    kill(postmaster, Signal::SIGQUIT).unwrap();
    postgres.exited().await;
    assert!(!postgres.is_running());
    drop(postgres);

    let postgres = Postgres::start(Options::new(folder.path())).await.unwrap();
    let kept: i64 = connect(&postgres, "datum").await.query_one("SELECT count(*) FROM kept", &[]).await.unwrap().get(0);
    assert_eq!(kept, 2);
}

#[tokio::test]
async fn a_dropped_server_shuts_down_and_the_next_start_waits_for_it() {
    let folder = folder();
    let first = Postgres::start(options(folder.path())).await.unwrap();
    let pid = first.pid().unwrap();
    drop(first);
    let second = Postgres::start(options(folder.path())).await.unwrap();
    assert_ne!(second.pid(), Some(pid));
    eventually("the first server has ended", async || !is_alive(pid)).await;
}

#[tokio::test]
async fn nothing_is_left_when_the_process_is_killed() {
    let parent = folder();
    let data_dir = parent.path().join("data");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "postgres::holds_a_server_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CHILD_FOLDER, &data_dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pid: u32 = lines.find_map(|line| line.split("postmaster ").nth(1)?.parse().ok()).unwrap();
    assert!(is_alive(pid));

    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the server has ended", async || !is_alive(pid)).await;
    eventually("its folder has been removed", async || !data_dir.join("cluster").exists()).await;
}

#[tokio::test]
#[ignore = "run by nothing_is_left_when_the_process_is_killed, in a process of its own"]
async fn holds_a_server_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let options = Options { remove_when_stopped: true, ..options(&PathBuf::from(folder)) };
    let postgres = Postgres::start(options).await.unwrap();
    // At the start of a line, whatever the test runner has printed before.
    println!("\npostmaster {}", postgres.pid().unwrap());
    postgres.exited().await;
}

#[tokio::test]
async fn a_ctrl_c_in_the_terminal_does_not_reach_the_server() {
    let folder = folder();
    let postgres = Postgres::start(options(folder.path())).await.unwrap();
    let postmaster = Pid::from_raw(postgres.pid().unwrap().try_into().unwrap());
    assert_ne!(getpgid(Some(postmaster)).unwrap(), getpgid(None).unwrap());
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = folder();
    let error = Postgres::start(Options { port: Some(port), ..options(folder.path()) }).await.unwrap_err();
    assert!(matches!(error, PostgresError::PortTaken { port: named } if named == port), "{error}");
}

#[tokio::test]
async fn a_folder_has_one_server() {
    let folder = folder();
    let _first = Postgres::start(options(folder.path())).await.unwrap();
    let error = Postgres::start(options(folder.path())).await.unwrap_err();
    assert!(matches!(error, PostgresError::FolderInUse { .. }), "{error}");
}

#[tokio::test]
async fn data_of_another_major_version_is_refused_with_both_versions() {
    let folder = folder();
    let postgres = Postgres::start(options(folder.path())).await.unwrap();
    let (cluster, major) = (postgres.cluster().to_owned(), postgres.major_version().to_string());
    postgres.stop().await;
    std::fs::write(cluster.join("PG_VERSION"), "13\n").unwrap();
    let error = Postgres::start(options(folder.path())).await.unwrap_err();
    assert!(matches!(error, PostgresError::VersionMismatch { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("PostgreSQL 13") && text.contains(&format!("PostgreSQL {major}")), "{text}");
}

#[tokio::test]
async fn an_interrupted_setup_is_begun_anew() {
    let folder = folder();
    let unfinished = folder.path().join("cluster.unfinished");
    std::fs::create_dir(&unfinished).unwrap();
    std::fs::write(unfinished.join("PG_VERSION"), "half").unwrap();
    let postgres = Postgres::start(options(folder.path())).await.unwrap();
    connect(&postgres, "postgres").await;
    assert!(!unfinished.exists());
}

#[tokio::test]
async fn a_server_that_will_not_start_shows_the_end_of_its_log() {
    let folder = folder();
    let extra_config = vec!["no_such_parameter = 1".to_owned()];
    let error = Postgres::start(Options { extra_config, ..options(folder.path()) }).await.unwrap_err();
    assert!(matches!(error, PostgresError::EndedWhileStarting { .. }), "{error}");
    assert!(error.to_string().contains("no_such_parameter"), "{error}");
}

#[tokio::test]
async fn only_the_password_opens_the_server_and_it_is_private() {
    let folder = folder();
    let postgres = Postgres::start(options(folder.path())).await.unwrap();
    let mut url = url::Url::parse(&postgres.url("postgres")).unwrap();
    url.set_password(Some("wrong")).unwrap();
    let refused = tokio_postgres::connect(url.as_str(), NoTls).await.err().unwrap();
    assert_eq!(refused.code(), Some(&tokio_postgres::error::SqlState::INVALID_PASSWORD));
    let file = std::fs::metadata(folder.path().join("superuser.password")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    let listens: String =
        connect(&postgres, "postgres").await.query_one("SHOW listen_addresses", &[]).await.unwrap().get(0);
    assert_eq!(listens, "127.0.0.1");
}

#[tokio::test]
async fn tls_is_offered_when_a_certificate_is_given() {
    let folder = folder();
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Some(ServerCertificate { certificate_pem: key.cert.pem(), key_pem: key.signing_key.serialize_pem() });
    let postgres = Postgres::start(Options { tls, ..options(folder.path()) }).await.unwrap();
    let ssl: String = connect(&postgres, "postgres").await.query_one("SHOW ssl", &[]).await.unwrap().get(0);
    assert_eq!(ssl, "on");
}

/// Only root can have a folder that PostgreSQL's account cannot enter.
#[tokio::test]
async fn data_that_cannot_stay_in_its_folder_is_found_again_aside() {
    if !Uid::effective().is_root() {
        return;
    }
    let folder = folder_with_mode(0o700);
    let postgres = Postgres::start(options(folder.path())).await.unwrap();
    let aside = postgres.cluster().parent().unwrap().to_owned();
    assert!(!aside.starts_with(folder.path()));
    connect(&postgres, "postgres").await.batch_execute("CREATE TABLE kept ()").await.unwrap();
    postgres.stop().await;

    let postgres = Postgres::start(options(folder.path())).await.unwrap();
    connect(&postgres, "postgres").await.batch_execute("SELECT FROM kept").await.unwrap();
    postgres.stop().await;
    std::fs::remove_dir_all(aside).unwrap();
}
