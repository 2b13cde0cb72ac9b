//! A restart whose new tasks cannot become ready, and how a system that is not well presents itself.

use nix::sys::signal::Signal;
use stack::Location;
use stack::state_dir::{self, StateDir};

use crate::harness::{Home, eventually, status, task};

/// From now on the role's password is another one than its tasks know, and who is connected is not any more.
fn lock_out(home: &Home, service: &str) {
    let status = state_dir::read_status(&home.state()).unwrap();
    let url = state_dir::database_url(&home.state(), &status).unwrap().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let role = format!("datum_{service}");
        // One after the other: who is thrown out must meet the new password.
        for statement in [
            format!("ALTER ROLE {role} PASSWORD 'another'"),
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"),
        ] {
            client.batch_execute(&statement).await.unwrap();
        }
        drop(client);
        connection.await.unwrap().unwrap();
    });
}

#[test]
fn a_task_that_cannot_become_ready_is_waited_for_so_long_named_and_not_replaced() {
    let home = Home::new();
    let _up = home.up(&[]);
    let before = home.pid_of("actor", 1);
    assert!(home.run(&["status"]).stdout.contains(", ready)"), "{:?}", home.run(&["status"]));
    assert_eq!(home.status()["state"], "ready");

    lock_out(&home, "actor");
    eventually("actor to be unhealthy", || task(&home.status(), "actor", 1)["health"] == "unhealthy");
    let status = home.run(&["status"]);
    assert!(status.stdout.contains("degraded: actor 0 of 1 healthy"), "{status:?}");
    assert_eq!((status.code, home.status()["state"].as_str()), (Some(0), Some("degraded")));

    let restart = home.run(&["restart", "actor", "--timeout", "5"]);
    assert_eq!(restart.code, Some(1), "{restart:?}");
    for part in
        ["replacing actor-1, whose new process has 5 s", "actor-1: waiting for", "no connection to the database"]
    {
        assert!(restart.stdout.contains(part), "`{part}` is missing in:\n{}", restart.stdout);
    }
    for part in ["task actor-1 is not ready", "no connection to the database", "the old one stays"] {
        assert!(restart.stderr.contains(part), "`{part}` is missing in:\n{}", restart.stderr);
    }
    assert_eq!(home.pid_of("actor", 1), before);

    // A task that died in this state and does not become ready again can be given up for another, and that is told as well.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(before.unwrap()), nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually("another process for actor-1", || {
        let pid = home.pid_of("actor", 1);
        pid.is_some() && pid != before
    });
    let restart = home.run(&["restart", "actor", "--timeout", "1"]);
    assert_eq!(restart.code, Some(1), "{restart:?}");
    assert!(restart.stderr.contains("task actor-1 is not ready"), "{restart:?}");
    assert!(home.run(&["status"]).stdout.contains("degraded: actor 0 of 1 healthy"));
    assert_eq!(home.run(&["restart", "auth"]).code, Some(0), "others can be replaced");
}

#[test]
fn a_start_that_waits_for_a_provider_tells_what_for() {
    let home = Home::new();
    let pool = ["COGNITO_USER_POOL_ID=us-east-1_a", "COGNITO_CLIENT_ID=web", "COGNITO_ENDPOINT_URL=http://127.0.0.1:1"];
    let mut arguments = vec!["--ephemeral", "--identity", "cognito"];
    arguments.extend(pool.iter().flat_map(|setting| ["--set", setting]));
    let up = home.start(&arguments);
    eventually("a reason", || up.output().contains("auth-1 is not ready after 5 s: /ready says 503"));
    assert!(!up.output().contains("is ready:"), "{}", up.output());
    up.signal(Signal::SIGINT);
    let _ = up.end();
}

#[test]
fn a_system_that_is_still_starting_or_already_stopping_says_so() {
    let home = Home::new();
    // Held by this process, and nobody listens: as a system is before it is ready, and after it was told to stop.
    let held = StateDir::open(&Location::Persistent(home.state())).unwrap();
    let said = |command: &str| {
        let done = home.run(&[command]);
        (done.code, format!("{}{}", done.stdout, done.stderr))
    };
    for command in ["status", "restart"] {
        let (code, text) = said(command);
        assert!(code == Some(1) && text.contains("is still starting"), "{command}: {text}");
    }
    for (ready, status_says, restart_says) in
        [(false, "still starting", "is still starting"), (true, "ready", "is stopping")]
    {
        state_dir::write_status(held.path(), &status(ready)).unwrap();
        let (code, text) = said("status");
        assert!(code == Some(0) && text.contains(&format!(", {status_says})")), "{text}");
        let (code, text) = said("restart");
        assert!(code == Some(1) && text.contains(restart_says) && !text.contains("os error"), "{text}");
    }
}
