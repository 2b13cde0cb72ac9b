//! What happens when a process is killed.

use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stack::cpu_quota::{Quotas, use_of};

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

/// The groups that a system has made for its tasks.
fn groups_of(system: i32) -> Vec<PathBuf> {
    let name = format!("datum-{system}-");
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(folder) = open.pop() {
        // Groups come and go while one looks.
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())) {
            let is_of_it = entry.file_name().to_str().is_some_and(|it| it.starts_with(&name));
            if is_of_it { found.push(entry.path()) } else { open.push(entry.path()) }
        }
    }
    found
}

/// Where the machine that runs this test permits quotas (root on most build machines).
#[test]
fn groups_of_a_killed_system_are_removed_by_the_next_one_though_it_has_no_quota() {
    if Quotas::prepare("256".parse().unwrap()).is_err() {
        return;
    }
    let home = Home::new();
    let up = home.up(&["--ephemeral", "--task-cpu", "1024"]);
    let (system, processes) = (up.pid(), pids(&home.status()));
    assert_eq!(groups_of(system).len(), 3, "one a task");
    let shown = home.run(&["status"]);
    assert!(shown.stdout.contains(", 1024 CPU units a task"), "{shown:?}");
    let task = u32::try_from(home.pid_of("auth", 1).unwrap()).unwrap();
    let used = use_of(task).expect("the kernel tells what the quota does");
    assert!(used.periods > 0 && used.throttled_periods <= used.periods, "{used:?}");

    up.signal(Signal::SIGKILL);
    up.end();
    for pid in processes {
        eventually(&format!("process {pid} to end"), || !is_alive(pid));
    }
    assert_eq!(groups_of(system).len(), 3, "nobody was left to remove them");
    let next = home.start(&["--ephemeral"]);
    eventually("the groups to be removed", || groups_of(system).is_empty());
    next.signal(Signal::SIGTERM);
    next.end();
}
