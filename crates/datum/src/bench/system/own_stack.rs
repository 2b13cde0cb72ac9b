//! `datum up` as a child process: started, asked, stopped, and never left behind.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use envelope::result::StackFacts;
use stack::control::{self, Reply, Request};
use stack::registry;
use stack::status::StackStatus;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::settings::{COGNITO, StackSettings};

/// What `datum up` prints when everything answers.
const READY: &str = "Datum is ready: ";
/// What begins its line about PostgreSQL.
const POSTGRES: &str = "PostgreSQL ";
/// A first start may download PostgreSQL.
const START_PATIENCE: Duration = Duration::from_mins(10);
/// Longer than everything that a stop waits for together.
const STOP_PATIENCE: Duration = Duration::from_mins(2);
/// How many of its last lines are quoted when it fails.
const LAST_WORDS: usize = 12;

/// Why a system of this machine does not run.
#[derive(Debug, thiserror::Error)]
pub(in crate::bench) enum StackFailure {
    /// It could not be started at all.
    #[error("cannot start `datum up`: {0}")]
    Spawn(#[source] std::io::Error),
    /// It ended, or never became ready; its last words.
    #[error("the system did not become ready ({reason}):\n{last_words}")]
    NotReady {
        /// How it ended.
        reason: String,
        /// What it printed last.
        last_words: String,
        /// Its exit code.
        code: Option<u8>,
    },
    /// The operator wanted to stop.
    #[error("ended before the system was ready")]
    Interrupted,
}

/// A running system of this machine. Dropping it lets go of its lifeline: it then stops by itself, in order.
pub(in crate::bench) struct OwnStack {
    child: Child,
    lifeline: Option<ChildStdin>,
    base_url: String,
    state_dir: PathBuf,
    settings: StackSettings,
    facts: StackFacts,
    output: Output,
}

/// The last lines that it printed.
#[derive(Debug, Clone, Default)]
struct Output(Arc<Mutex<VecDeque<String>>>);

impl OwnStack {
    /// Starts it and waits until every task gets requests.
    pub(in crate::bench) async fn start(
        settings: &StackSettings,
        stop: &CancellationToken,
    ) -> Result<Self, StackFailure> {
        let mut command = Command::new(own_program());
        command
            .args(settings.arguments())
            // Exported for another program, it would make the run write into a database that somebody needs.
            .env_remove("DATABASE_URL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C of the terminal is for the run, which stops the system when it has written its result.
            .process_group(0);
        if !settings.is_pool_welcome {
            // A user pool that somebody works with, or what was told to another double.
            let names = std::env::vars_os().map(|(name, _)| name);
            names.filter(|name| name.to_string_lossy().starts_with(COGNITO)).for_each(|name| {
                command.env_remove(name);
            });
        }
        command.envs(settings.environment());
        let mut child = command.spawn().map_err(StackFailure::Spawn)?;
        let lifeline = child.stdin.take();
        let output = Output::default();
        let (ready, found) = announcements();
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(output.clone().collect(errors, None));
        }
        if let Some(lines) = child.stdout.take() {
            tokio::spawn(output.clone().collect(lines, Some(ready)));
        }
        let announced = tokio::select! {
            announced = found => announced.ok(),
            () = tokio::time::sleep(START_PATIENCE) => None,
            () = stop.cancelled() => {
                drop(lifeline);
                end(&mut child).await;
                return Err(StackFailure::Interrupted);
            }
        };
        let located = announced.as_ref().and_then(|announced| state_dir_of(&announced.base_url));
        let (Some(announced), Some(state_dir)) = (announced, located) else {
            drop(lifeline);
            let status = end(&mut child).await;
            return Err(StackFailure::NotReady {
                reason: status.map_or_else(|| "it was killed".to_owned(), |status| status.to_string()),
                code: status.and_then(|status| u8::try_from(status.code()?).ok()),
                last_words: output.last_words(),
            });
        };
        let shell: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let facts = settings.facts(&shell, announced.postgres);
        Ok(Self { child, lifeline, base_url: announced.base_url, state_dir, settings: settings.clone(), facts, output })
    }

    /// The balancer: `http://127.0.0.1:port`, without a slash at the end.
    pub(in crate::bench) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Its state folder.
    pub(in crate::bench) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// How it was started.
    pub(in crate::bench) fn settings(&self) -> &StackSettings {
        &self.settings
    }

    /// What the capsule says of it.
    pub(in crate::bench) fn facts(&self) -> &StackFacts {
        &self.facts
    }

    /// What it says of its processes; none when it does not answer.
    pub(in crate::bench) async fn status(&self) -> Option<StackStatus> {
        let mut answer = None;
        let asked = control::ask(&self.state_dir, Request::Status, |reply| {
            if let Reply::Status { status } = reply {
                answer = Some(*status);
            }
        });
        tokio::time::timeout(Duration::from_secs(5), asked).await.ok()?.ok()?;
        answer
    }

    /// Ends when it has died by itself; a sentence with its last words.
    pub(in crate::bench) async fn died(&mut self) -> String {
        let status = self.child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string());
        format!("the system ended by itself ({status}):\n{}", self.output.last_words())
    }

    /// Stops it in order; ends when nothing of it runs.
    pub(in crate::bench) async fn stop(mut self) {
        drop(self.lifeline.take());
        end(&mut self.child).await;
    }
}

/// Waits for the end of a child without a lifeline, and kills it when that takes too long.
async fn end(child: &mut Child) -> Option<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(STOP_PATIENCE, child.wait()).await {
        return status.ok();
    }
    // Its tasks and its database notice.
    let _ = child.kill().await;
    None
}

/// This very program, also after its file was replaced by a newer build.
fn own_program() -> PathBuf {
    let image = Path::new("/proc/self/exe");
    if image.exists() { image.to_owned() } else { std::env::current_exe().unwrap_or_else(|_| "datum".into()) }
}

/// The registry knows every system that runs, by its port.
fn state_dir_of(base_url: &str) -> Option<PathBuf> {
    let port: u16 = base_url.rsplit(':').next()?.parse().ok()?;
    let entry = registry::running().ok()?.into_iter().find(|entry| entry.port == port)?;
    Some(entry.state_dir)
}

/// What the system says of itself when it is ready.
#[derive(Debug)]
struct Announced {
    base_url: String,
    postgres: String,
}

type Announcement = oneshot::Sender<Announced>;

fn announcements() -> (Announcement, oneshot::Receiver<Announced>) {
    oneshot::channel()
}

impl Output {
    /// Reads lines to their end: a pipe that nobody reads would stop the writer.
    async fn collect(self, from: impl AsyncRead + Unpin, mut ready: Option<Announcement>) {
        let mut lines = BufReader::new(from).lines();
        let mut postgres = String::new();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(found) = line.strip_prefix(POSTGRES) {
                postgres = postgres_version(found);
            }
            if let Some(url) = line.strip_prefix(READY).and_then(|rest| rest.split(' ').next())
                && let Some(ready) = ready.take()
            {
                let _ = ready.send(Announced { base_url: url.to_owned(), postgres: std::mem::take(&mut postgres) });
            }
            self.push(line);
        }
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_WORDS {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn last_words(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    }
}

/// `version 15 from /usr/lib/…  (1.6 s)` → `15`; of a database that was given, what was found.
fn postgres_version(found: &str) -> String {
    let found = found.trim().rsplit_once("  (").map_or(found.trim(), |(found, _)| found.trim());
    let version = found.strip_prefix("version ").and_then(|rest| rest.split(' ').next());
    version.unwrap_or(found).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_line_that_says_it() {
        assert_eq!(postgres_version("   version 15 from /usr/lib/postgresql/15/bin  (1.6 s)"), "15");
        assert_eq!(
            postgres_version("   PostgreSQL 17 at db:5432, 100 connections  (0.1 s)"),
            "PostgreSQL 17 at db:5432, 100 connections"
        );
    }

    #[tokio::test]
    async fn readiness_is_announced_with_everything_known_by_then() {
        let printed =
            "state  x\nPostgreSQL    version 15 from /p  (1.0 s)\n\nDatum is ready: http://127.0.0.1:4711 (3.0 s)\n";
        let (ready, found) = announcements();
        let output = Output::default();
        output.clone().collect(printed.as_bytes(), Some(ready)).await;
        let announced = found.await.expect("announced");
        assert_eq!((announced.base_url.as_str(), announced.postgres.as_str()), ("http://127.0.0.1:4711", "15"));
        assert!(output.last_words().contains("PostgreSQL"));
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let output = Output::default();
        let lines: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        output.clone().collect(lines.join("\n").as_bytes(), None).await;
        assert_eq!(output.last_words().lines().count(), LAST_WORDS);
        assert!(output.last_words().ends_with("line 99"));
    }
}
