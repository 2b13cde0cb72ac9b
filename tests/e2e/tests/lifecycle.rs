//! How a system begins and ends: what it refuses, what it keeps, and that it leaves nothing running.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::path::PathBuf;
use std::sync::Arc;

use e2e::{Datum, Person, Process, Signal};
use serde_json::json;
use tempfile::TempDir;
use test_support::{Reply, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DATUM: &str = env!("CARGO_BIN_EXE_e2e-datum");

async fn all_end(processes: &[Process]) {
    let running = || processes.iter().filter(|process| process.is_running()).collect::<Vec<_>>();
    let described = format!("all of {processes:?} end");
    eventually(&described, async || running().is_empty()).await;
}

fn workplace() -> Arc<TempDir> {
    Arc::new(tempfile::tempdir().expect("a temporary folder"))
}

#[tokio::test]
async fn what_is_stored_survives_a_restart() {
    let system = Datum::up(DATUM, &[]);
    let workplace = system.workplace();
    assert!(system.state_dir().join("stack.json").is_file(), "the state is in .datum of the present folder");
    let ada = Person::new(&system.anyone(), "ada").await;
    ada.caller.patch_json("/v1/actors/me", json!({"display_name": "Ada"})).await.assert_status(200);
    let document = ada.upload("kept.txt", "kept").await;
    let keys = system.anyone().get("/.well-known/jwks.json").await.assert_status(200).json();
    let processes = system.all_processes();
    assert!(processes.len() > 5, "tasks and PostgreSQL belong to it: {processes:?}");
    let ended = system.stop();
    assert!(ended.status.success(), "{ended:?}");
    all_end(&processes).await;

    let system = Datum::up_in(DATUM, &[], workplace);
    assert_eq!(system.anyone().get("/.well-known/jwks.json").await.json(), keys, "other keys sign now");
    let refreshed = system.anyone().post_json("/v1/auth/refresh", json!({"refresh_token": ada.refresh_token})).await;
    refreshed.assert_status(200);
    let again = Person::log_in(&system.anyone(), &ada.email).await;
    assert_eq!(again.id, ada.id);
    assert_eq!(again.caller.get("/v1/actors/me").await.json()["display_name"], "Ada");
    let path = format!("/v1/documents/{}/content", document["id"].as_str().unwrap());
    assert_eq!(again.caller.get(&path).await.assert_status(200).text(), "kept");
    assert!(system.stop().status.success());
}

#[tokio::test]
async fn a_second_one_in_the_same_folder_is_refused_and_the_first_goes_on() {
    let system = Datum::up(DATUM, &[]);
    let refused = Datum::refused(DATUM, &[], &system.workplace());
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.output.contains("a stack already runs in"), "{refused:?}");
    assert!(refused.output.contains("datum down"), "it says what to do: {refused:?}");
    let port = system.address().port().to_string();
    let refused = Datum::refused(DATUM, &["--ephemeral", "--port", &port], &workplace());
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.output.contains(&format!("port {port} is taken")), "{refused:?}");
    Person::new(&system.anyone(), "first").await;
    assert!(system.stop().status.success());
}

#[tokio::test]
async fn when_it_is_killed_nothing_is_left_and_the_next_one_starts() {
    let system = Datum::up(DATUM, &["--tasks", "actor=2"]);
    let workplace = system.workplace();
    let ada = Person::new(&system.anyone(), "ada").await;
    let processes = system.all_processes();
    system.signal(Signal::SIGKILL);
    all_end(&processes).await;
    drop(system);

    let system = Datum::up_in(DATUM, &[], workplace);
    assert_eq!(Person::log_in(&system.anyone(), &ada.email).await.id, ada.id, "what was acknowledged is kept");
    assert!(system.stop().status.success());
}

#[tokio::test]
async fn datum_down_stops_it_from_elsewhere() {
    let system = Datum::up(DATUM, &[]);
    let processes = system.all_processes();
    let port = system.address().port().to_string();
    let down = system.run(&["down", "--port", &port]);
    assert!(down.status.success(), "{down:?}");
    all_end(&processes).await;
    let again = system.run(&["down", "--port", &port]);
    assert!(again.status.success() && again.output.contains("nothing runs"), "{again:?}");
    assert!(system.wait().status.success());
}

async fn finishes_what_is_under_way(signal: Signal) {
    let system = Datum::up(DATUM, &["--ephemeral"]);
    let ada = Person::new(&system.anyone(), "ada").await;
    let processes = system.all_processes();

    let mut upload = TcpStream::connect(system.address()).await.unwrap();
    let content = "begun before the signal, finished after it";
    let head = format!(
        "POST /v1/documents?name=slow.txt HTTP/1.1\r\nhost: datum\r\nauthorization: Bearer {}\r\n\
         content-type: text/plain\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        ada.access_token,
        content.len(),
    );
    upload.write_all(head.as_bytes()).await.unwrap();
    // The document task asks for the body: from here on the request is under way.
    let mut go_on = [0; 25];
    upload.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    let (before, after) = content.split_at(content.find(',').unwrap());
    upload.write_all(before.as_bytes()).await.unwrap();
    let state_dir = temporary_state_dir(&system.printed());
    assert!(state_dir.is_dir());
    system.signal(signal);
    eventually("nobody new is let in", async || TcpStream::connect(system.address()).await.is_err()).await;
    upload.write_all(after.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    upload.read_to_end(&mut answer).await.unwrap();
    let reply = Reply::from_bytes(&answer);
    reply.assert_status(201);
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(reply.json()["size_bytes"], content.len());

    let ended = system.wait();
    assert!(ended.status.success(), "{ended:?}");
    all_end(&processes).await;
    assert!(!state_dir.exists(), "{} is left", state_dir.display());
}

/// Where `--ephemeral` has put the state, as `datum up` says it.
fn temporary_state_dir(printed: &str) -> PathBuf {
    let line = printed.lines().find_map(|line| line.strip_prefix("state")?.trim().strip_suffix(" s)"));
    let path = line.and_then(|line| line.split_once(" (temporary)")).map(|(path, _)| path.into());
    path.unwrap_or_else(|| panic!("no temporary state folder in {printed}"))
}

#[tokio::test]
async fn after_ctrl_c_it_finishes_what_is_under_way_and_leaves_nothing() {
    finishes_what_is_under_way(Signal::SIGINT).await;
}

#[tokio::test]
async fn after_sigterm_it_finishes_what_is_under_way_and_leaves_nothing() {
    finishes_what_is_under_way(Signal::SIGTERM).await;
}
