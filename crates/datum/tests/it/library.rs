//! The system started in this process, as a benchmark does it, with tasks that can be made to fail.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stack::observer::Silent;
use stack::{Health, Service, Stack, StackError, StackOptions, TaskId, TaskStatus, probe};
use tokio_util::sync::CancellationToken;

const ACTOR: TaskId = TaskId::new(Service::Actor, 1);

/// A program that runs tasks as `datum` does, until it is told to end with a status instead.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Self { folder };
        let (path, flag) = (program.path(), program.flag());
        let datum = env!("CARGO_BIN_EXE_datum");
        let script = format!(
            "#!/bin/sh\nif [ -e '{flag}' ]; then read -r status <'{flag}'; echo told to end; exit \"$status\"; fi\nexec '{datum}' \"$@\"\n",
            flag = flag.display()
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn flag(&self) -> PathBuf {
        self.folder.path().join("end")
    }

    /// From now on every new process ends at once.
    fn break_with(&self, status: u8) {
        std::fs::write(self.flag(), format!("{status}\n")).unwrap();
    }

    fn repair(&self) {
        std::fs::remove_file(self.flag()).unwrap();
    }

    async fn start(&self) -> Result<Stack, StackError> {
        let options = StackOptions::ephemeral(self.path(), auth::keys::generate_pem);
        Stack::start(options, Arc::new(Silent), CancellationToken::new()).await
    }

    async fn stack(&self) -> Stack {
        self.start().await.unwrap()
    }
}

fn actor(stack: &Stack) -> TaskStatus {
    stack.tasks().into_iter().find(|task| task.service == Service::Actor).unwrap()
}

async fn until(stack: &Stack, is_so: impl Fn(&TaskStatus) -> bool) {
    let waiting = async {
        while !is_so(&actor(stack)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(3), waiting).await.unwrap_or_else(|_| panic!("still {:?}", actor(stack)));
}

fn kill_actor(stack: &Stack) -> u32 {
    let pid = actor(stack).pid.unwrap();
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
    pid
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_does_not_come_up_leaves_the_old_task_alone() {
    let program = Program::new();
    let stack = program.stack().await;
    let before = actor(&stack);

    program.break_with(3);
    let error = stack.replace_task(ACTOR).await.unwrap_err();
    assert!(error.to_string().contains("exit status: 3"), "{error}");
    assert!(error.to_string().contains("told to end"), "its last words are missing: {error}");
    let same = actor(&stack);
    assert_eq!((same.pid, same.port, same.health), (before.pid, before.port, Health::Healthy));

    program.repair();
    stack.replace_task(ACTOR).await.unwrap();
    let after = actor(&stack);
    assert!(after.pid != before.pid && after.port != before.port, "{after:?}");
    assert_eq!((after.restarts, after.health), (0, Health::Healthy));

    let nobody = TaskId::new(Service::Actor, 9);
    assert!(matches!(stack.replace_task(nobody).await, Err(StackError::NoSuchTask(task)) if task == nobody));
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_keeps_dying_is_tried_again_and_comes_back_when_it_can() {
    let program = Program::new();
    let stack = program.stack().await;
    let port = actor(&stack).port;

    program.break_with(1);
    let killed = kill_actor(&stack);
    until(&stack, |task| task.restarts >= 3).await;
    program.repair();
    until(&stack, |task| task.health == Health::Healthy && task.pid != Some(killed)).await;
    assert_eq!(actor(&stack).port, port, "it has not kept its port");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_whose_tasks_only_die_ends_with_their_last_words() {
    let program = Program::new();
    program.break_with(1);
    let error = program.start().await.unwrap_err();
    assert!(matches!(&error, StackError::TaskDies { deaths: 3, output, .. } if output == "told to end"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_configuration_has_become_wrong_ends_the_stack_and_is_not_tried_for_ever() {
    let program = Program::new();
    let mut stack = program.stack().await;
    program.break_with(64);
    kill_actor(&stack);
    let ended = stack.ended().await;
    let Some(StackError::TaskConfiguration { task, output }) = ended else { panic!("{ended:?}") };
    assert_eq!((task, output.as_str()), (ACTOR, "told to end"));
    assert_eq!((actor(&stack).restarts, actor(&stack).health), (1, Health::Stopped));
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_while_every_task_is_replaced() {
    let program = Program::new();
    let stack = program.stack().await;
    let authority = stack.base_url().strip_prefix("http://").unwrap().to_owned();
    let over = CancellationToken::new();
    let asking = tokio::spawn({
        let over = over.clone();
        async move {
            let mut count = 0;
            while !over.is_cancelled() {
                let answer = probe::get(&authority, "/.well-known/jwks.json", Duration::from_secs(30)).await.unwrap();
                assert_eq!(answer.status.as_u16(), 200, "request {count}: {}", answer.body);
                count += 1;
            }
            count
        }
    });
    stack.restart(None).await.unwrap();
    over.cancel();
    assert!(asking.await.unwrap() > 0);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_start_leaves_nothing() {
    let program = Program::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let options = StackOptions::ephemeral(program.path(), auth::keys::generate_pem);
    let error = Stack::start(options, Arc::new(Silent), cancel).await.unwrap_err();
    assert!(matches!(error, StackError::Interrupted), "{error}");
}
