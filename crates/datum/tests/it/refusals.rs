//! What cannot work is refused at once, with the reason and what to do, and leaves nothing behind.

use std::net::TcpListener;

use stack::postgres::{Options, Postgres};

use crate::harness::{Done, Home, finish, names_in};

fn assert_refused(done: &Done, code: i32, parts: &[&str]) {
    assert_eq!(done.code, Some(code), "{done:?}");
    for part in parts {
        assert!(done.stderr.contains(part), "`{part}` is missing in:\n{}", done.stderr);
    }
    assert!(!done.stdout.contains("is ready"), "{done:?}");
}

#[test]
fn cognito_is_not_in_this_build() {
    let home = Home::new();
    assert_refused(&home.run(&["up", "--identity", "cognito"]), 64, &["not available in this build"]);
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
fn a_task_that_refuses_its_configuration_ends_the_system_with_its_words() {
    let home = Home::new();
    let done = home.run(&["up", "--ephemeral", "--port", "0", "--set", "DB_POOL_MIN=99"]);
    assert_refused(&done, 64, &["DB_POOL_MIN must not be above DB_POOL_MAX"]);
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
