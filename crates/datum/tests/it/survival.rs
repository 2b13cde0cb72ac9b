//! What happens when a process is killed.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Home, eventually, is_alive, names_in, pids, task};

#[test]
fn a_killed_task_comes_back_and_a_killed_database_too() {
    let home = Home::new();
    let up = home.up(&["--ephemeral", "--tasks", "auth=2"]);
    let victim = home.pid_of("auth", 2).unwrap();
    kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
    eventually("a new process for auth-2", || {
        let task = task(&home.status(), "auth", 2);
        task["health"] == "healthy" && task["restarts"] == 1 && task["pid"] != victim
    });
    up.wait_for_line("auth-2 ended (signal: 9 (SIGKILL))");

    let postgres = i32::try_from(home.status()["postgres"]["pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(postgres), Signal::SIGKILL).unwrap();
    eventually("PostgreSQL to be back", || {
        let status = &home.status()["postgres"];
        status["health"] == "healthy" && status["restarts"] == 1
    });
    // The tasks have lived through it and find it again.
    let ready = format!("http://127.0.0.1:{}/ready", task(&home.status(), "actor", 1)["port"]);
    eventually("a task to be ready again", || home.run(&["healthcheck", &ready]).code == Some(0));
    assert_eq!(task(&home.status(), "actor", 1)["restarts"], 0);
}

#[test]
fn nothing_survives_a_killed_parent_and_the_next_start_tidies_up() {
    let home = Home::new();
    let up = home.up(&["--ephemeral"]);
    let processes = pids(&home.status());
    let folder = names_in(&home.temporary()).remove(0);
    up.signal(Signal::SIGKILL);
    up.end();
    for pid in processes {
        eventually(&format!("process {pid} to end"), || !is_alive(pid));
    }
    assert_eq!(home.run(&["down"]).stdout, "nothing runs\n");

    // Too early to get far, late enough to have tidied up.
    let next = home.start(&["--ephemeral"]);
    next.wait_for_line("state");
    assert!(!names_in(&home.temporary()).contains(&folder), "{folder} is left");
    next.signal(Signal::SIGTERM);
    next.end();
}
