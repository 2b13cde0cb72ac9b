//! `datum logs`: the last lines of tasks' logs, and those to come. Works after the system has ended, too.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use stack::logs::{Follower, tail};
use stack::{TaskId, state_dir};

use super::{failed, find};
use crate::cli::{DEFAULT_STATE_DIR, LogSource, LogsArgs};
use crate::terminal::{log_lines, try_say};

/// Between two looks at the files.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) fn run(args: &LogsArgs) -> ExitCode {
    let state_dir = match find::running(&args.which) {
        Ok(running) => running.state_dir,
        // Nothing runs: what the last run of a folder left is as interesting.
        Err(nothing) => match args.which.state_dir.clone().or_else(|| Some(DEFAULT_STATE_DIR.into())) {
            Some(folder) if args.which.port.is_none() && state_dir::logs(&folder).is_dir() => folder,
            _ => return failed(nothing),
        },
    };
    let tasks = tasks_with_logs(&state_dir::logs(&state_dir), args.task);
    if tasks.is_empty() {
        return failed(format_args!("there is no such log in {}", state_dir::logs(&state_dir).display()));
    }
    // Before the last lines are read, so that none falls between them and the next.
    let followers =
        tasks.iter().map(|task| (*task, Follower::from_end(state_dir::log_file(&state_dir, *task)))).collect();
    for (task, line) in last_lines(&state_dir, &tasks, args.lines) {
        if try_say(log_lines::render(task, &line)).is_err() {
            return ExitCode::SUCCESS;
        }
    }
    if args.follow {
        follow(followers);
    }
    ExitCode::SUCCESS
}

fn tasks_with_logs(folder: &Path, wanted: Option<LogSource>) -> Vec<TaskId> {
    let files =
        std::fs::read_dir(folder).map(|files| files.flatten().map(|file| file.path()).collect::<Vec<PathBuf>>());
    let mut tasks: Vec<TaskId> = files
        .unwrap_or_default()
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .filter_map(|path| path.file_stem()?.to_str()?.parse().ok())
        .filter(|task: &TaskId| match wanted {
            None => true,
            Some(LogSource::Service(service)) => task.service == service,
            Some(LogSource::Task(wanted)) => *task == wanted,
        })
        .collect();
    tasks.sort();
    tasks
}

/// The last lines of every task, in the order in which they were written.
fn last_lines(state_dir: &Path, tasks: &[TaskId], count: usize) -> Vec<(TaskId, String)> {
    let mut lines: Vec<(String, TaskId, String)> = Vec::new();
    for task in tasks {
        let mut written = String::new();
        for line in tail(&state_dir::log_file(state_dir, *task), count).unwrap_or_default() {
            // A line without a time, such as one of a panic, belongs to the one before it.
            written = timestamp(&line).unwrap_or(written);
            lines.push((written.clone(), *task, line));
        }
    }
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    lines.into_iter().map(|(_, task, line)| (task, line)).collect()
}

fn timestamp(line: &str) -> Option<String> {
    let record: Value = serde_json::from_str(line).ok()?;
    record.get("timestamp")?.as_str().map(str::to_owned)
}

/// Until nobody reads any more, or Ctrl-C.
fn follow(mut followers: Vec<(TaskId, Follower)>) {
    loop {
        for (task, follower) in &mut followers {
            for line in follower.lines().unwrap_or_default() {
                if try_say(log_lines::render(*task, &line)).is_err() {
                    return;
                }
            }
        }
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use stack::Service;

    use super::*;

    fn state_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(state_dir::logs(folder.path())).expect("made");
        for (name, text) in files {
            std::fs::write(state_dir::logs(folder.path()).join(name), text).expect("written");
        }
        folder
    }

    #[test]
    fn logs_are_chosen_by_service_and_task() {
        let state = state_with(&[
            ("auth-1.log", ""),
            ("auth-2.log", ""),
            ("actor-1.log", ""),
            ("auth-1.old.log", ""),
            ("x.txt", ""),
        ]);
        let names = |wanted| -> Vec<String> {
            tasks_with_logs(&state_dir::logs(state.path()), wanted).iter().map(ToString::to_string).collect()
        };
        assert_eq!(names(None), ["auth-1", "auth-2", "actor-1"]);
        assert_eq!(names(Some(LogSource::Service(Service::Auth))), ["auth-1", "auth-2"]);
        assert_eq!(names(Some(LogSource::Task(TaskId::new(Service::Actor, 1)))), ["actor-1"]);
        assert!(names(Some(LogSource::Service(Service::Document))).is_empty());
    }

    #[test]
    fn lines_of_several_tasks_are_put_in_order() {
        let state = state_with(&[
            (
                "auth-1.log",
                "{\"timestamp\":\"2026-01-01T00:00:01Z\"}\n  a panic\n{\"timestamp\":\"2026-01-01T00:00:03Z\"}\n",
            ),
            ("actor-1.log", "{\"timestamp\":\"2026-01-01T00:00:02Z\"}\n"),
        ]);
        let tasks = tasks_with_logs(&state_dir::logs(state.path()), None);
        let lines: Vec<String> =
            last_lines(state.path(), &tasks, 10).into_iter().map(|(task, line)| format!("{task} {line}")).collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines[0].starts_with("auth-1") && lines[1] == "auth-1   a panic" && lines[2].starts_with("actor-1"),
            "{lines:?}"
        );
    }
}
