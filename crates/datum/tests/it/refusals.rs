//! What cannot work is refused at once, with the reason and what to do, and leaves nothing behind.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::process::Stdio;

use stack::Location;
use stack::postgres::{Options, Postgres};
use stack::registry::Entry;
use stack::state_dir::{self, StateDir};

use crate::harness::{Done, Home, finish, names_in, status};

fn assert_refused(done: &Done, code: i32, parts: &[&str]) {
    assert_eq!(done.code, Some(code), "{done:?}");
    for part in parts {
        assert!(done.stderr.contains(part), "`{part}` is missing in:\n{}", done.stderr);
    }
    assert!(!done.stdout.contains("is ready"), "{done:?}");
}

#[test]
fn a_user_pool_is_given_whole_or_not_at_all() {
    let home = Home::new();
    let half = home.run(&["up", "--identity", "cognito", "--set", "COGNITO_CLIENT_ID=web"]);
    assert_refused(&half, 64, &["COGNITO_USER_POOL_ID is not set", "neither for the Cognito double"]);
    let throttled = home.run(&["up", "--identity", "cognito", "--throttle", "off"]);
    assert_refused(&throttled, 64, &["a user pool throttles logins itself"]);
    assert!(names_in(&home.work()).is_empty());
}

#[test]
fn a_double_that_cannot_be_is_refused_before_anything_starts() {
    let home = Home::new();
    let mut command = home.command(&["up", "--identity", "cognito"]);
    let done = finish(command.env("COGNITO_DOUBLE_LATENCY", "InitiateAuth=soon"));
    assert_refused(&done, 64, &["COGNITO_DOUBLE_LATENCY", "`soon` is no time"]);
    assert!(names_in(&home.work()).is_empty());
}

#[test]
fn a_port_that_is_taken_names_who_has_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let home = Home::new();
    let done = home.run(&["up", "--ephemeral", "--port", &port]);
    assert_refused(&done, 1, &[&format!("port {port} is taken"), "--port"]);
    if cfg!(target_os = "linux") {
        assert_refused(&done, 1, &[&format!("process {}", std::process::id())]);
    }
    assert!(names_in(&home.temporary()).is_empty(), "the temporary folder is left");
}

#[test]
fn a_state_folder_that_cannot_be_made_is_named() {
    let home = Home::new();
    let done = home.run(&["up", "--port", "0", "--state-dir", "/dev/null/state"]);
    assert_refused(&done, 1, &["/dev/null/state", "--state-dir"]);
}

#[test]
fn without_a_usable_postgresql_the_reason_is_said() {
    let home = Home::new();
    let empty = home.work();
    let done = finish(home.command(&["up", "--ephemeral", "--port", "0"]).env("DATUM_POSTGRES_BIN", &empty));
    assert_refused(&done, 1, &["DATUM_POSTGRES_BIN", empty.to_str().unwrap()]);
    assert!(names_in(&home.temporary()).is_empty(), "the temporary folder is left");
}

#[test]
fn data_of_another_version_is_not_touched() {
    let home = Home::new();
    let cluster = home.state().join("postgres/cluster");
    std::fs::create_dir_all(&cluster).unwrap();
    std::fs::write(cluster.join("PG_VERSION"), "9\n").unwrap();
    let done = home.run(&["up", "--port", "0"]);
    assert_refused(&done, 1, &["PostgreSQL 9", cluster.to_str().unwrap()]);
    assert_eq!(names_in(&cluster), ["PG_VERSION"]);
}

#[test]
fn a_database_that_does_not_answer_is_said_without_its_password() {
    let home = Home::new();
    let done =
        home.run(&["up", "--ephemeral", "--port", "0", "--database-url", "postgres://admin:hunter2@127.0.0.1:1/datum"]);
    assert_refused(&done, 1, &["DATABASE_URL"]);
    assert!(!done.stderr.contains("hunter2") && !done.stdout.contains("hunter2"), "{done:?}");
}

#[tokio::test]
async fn a_database_with_too_few_connections_is_refused_before_anything_uses_it() {
    let home = Home::new();
    let folder = home.temporary().join("postgres");
    let small = Options { ephemeral: true, max_connections: 20, ..Options::new(&folder) };
    let postgres = Postgres::start(small).await.unwrap();
    let url = postgres.url("postgres");
    let done =
        tokio::task::spawn_blocking(move || home.run(&["up", "--ephemeral", "--port", "0", "--database-url", &url]))
            .await
            .unwrap();
    // 3 tasks and one that is being replaced, with 14 each, and 5 for administration; 3 of 20 are reserved.
    assert_refused(&done, 1, &["61 connections", "allows 17", "DB_POOL_MAX"]);
    postgres.stop().await;
}

#[test]
fn variables_that_only_the_stack_can_decide_are_refused() {
    let done = Home::new().run(&["up", "--ephemeral", "--port", "0", "--set", "PORT=1"]);
    assert_refused(&done, 64, &["--set PORT"]);
}

#[test]
fn what_the_tasks_would_refuse_and_what_none_of_them_reads_is_refused_before_anything_is_started() {
    let home = Home::new();
    let set = ["DB_POOL_MIN=99", "DOCUMENT_MAX_BYTES=0", "DB_POOL_MAXX=20", "AUTH_THROTTLE=maybe"];
    let mut arguments = vec!["up", "--ephemeral", "--port", "0"];
    arguments.extend(set.iter().flat_map(|variable| ["--set", variable]));
    let done = home.run(&arguments);
    let errors = [
        "DB_POOL_MIN must not be above DB_POOL_MAX",
        "DOCUMENT_MAX_BYTES must be",
        "AUTH_THROTTLE must be",
        "--set DB_POOL_MAXX: no service reads",
        "datum task auth --help",
    ];
    assert_refused(&done, 64, &errors);
    assert_eq!(done.stderr.matches("DB_POOL_MIN must").count(), 1, "{}", done.stderr);
    assert!(!done.stdout.contains("PostgreSQL") && !done.stdout.contains("object store"), "{done:?}");
    assert!(names_in(&home.temporary()).is_empty(), "the temporary folder is left");
}

#[test]
fn where_nothing_runs_that_is_said() {
    let home = Home::new();
    let down = home.run(&["down"]);
    assert_eq!((down.code, down.stdout.as_str()), (Some(0), "nothing runs\n"), "{down:?}");
    assert_refused(&home.run(&["status"]), 1, &["nothing runs"]);
    assert_refused(&home.run(&["restart"]), 1, &["nothing runs"]);
    assert_refused(&home.run(&["logs"]), 1, &["nothing runs"]);
    assert_eq!(home.run(&["down", "--port", "1"]).stdout, "nothing runs on port 1\n");
}

#[test]
fn of_several_systems_none_is_stopped_unasked() {
    let home = Home::new();
    // Only the folders must be held for them to count as running.
    let systems = [home.work().join("my system's state"), home.work().join("b")];
    let systems = systems.map(|path| StateDir::open(&Location::Persistent(path)).unwrap());
    let registry = home.runtime().join("datum");
    std::fs::DirBuilder::new().mode(0o700).create(&registry).unwrap();
    for (port, system) in [4_711, 4_712].into_iter().zip(&systems) {
        let entry = Entry { port, pid: std::process::id(), state_dir: system.path().to_owned() };
        std::fs::write(registry.join(format!("{port}.json")), serde_json::to_vec(&entry).unwrap()).unwrap();
    }
    for command in ["down", "status", "restart"] {
        let quoted = r"my system'\''s state'";
        assert_refused(&home.run(&[command]), 1, &["several systems run", "--port 4711", "--port 4712", quoted]);
    }
}

#[test]
fn what_cannot_be_written_is_no_success_and_a_reader_who_has_enough_is_no_failure() {
    let home = Home::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let held = StateDir::open(&Location::Persistent(home.state())).unwrap();
    state_dir::write_status(held.path(), &status(true)).unwrap();
    for arguments in [&["status"][..], &["status", "--json"], &["openapi"]] {
        let whole = home.run(arguments);
        assert_eq!(whole.code, Some(0), "{arguments:?}: {whole:?}");
        let mut child = home.command(arguments).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{arguments:?}");
        assert!(errors.contains("cannot write"), "{arguments:?}: {errors}");
    }
    let helps = [&["task", "auth", "--help"][..], &["migrate", "--help"]];
    for arguments in [&["status"][..], &["status", "--json"], &["openapi"]].into_iter().chain(helps) {
        let mut child = home.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Closed before anything is written, or after some of it: quiet in both cases.
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""), "{arguments:?}");
    }
}
