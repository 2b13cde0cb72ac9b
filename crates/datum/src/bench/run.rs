//! One run: verify, populate, load, and write down what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use envelope::result::{Capsule, Dataset, IntervalWriter, Target, write_capsule};
use loadgen::run::{Event, Outcome, Plan, Timeouts};
use loadgen::scenario::{Identities, Scenario, Schedule};
use loadgen::verify::OK;
use service_kit::clock::{Clock, SystemClock};
use time::OffsetDateTime;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::capsule::{self, Facts};
use super::drivers::Driver;
use super::error::BenchError;
use super::machine::this_machine;
use super::operator::Operator;
use super::progress::Progress;
use super::system::{CpuWatch, OwnStack};
use super::{command_line, populate};
use crate::terminal::say;
use crate::terminal::screen::seconds;

/// Events that may wait while the last one is written: a second each.
const EVENTS_WAITING: usize = 64;

/// What is to be run.
#[derive(Debug, Clone)]
pub(super) struct RunSpec {
    /// With the run's changes applied.
    pub(super) scenario: Scenario,
    pub(super) driver: Driver,
    /// Users that are to be in the database.
    pub(super) users: Option<u64>,
    pub(super) seed: u64,
    pub(super) role: Option<String>,
    pub(super) label: Option<String>,
    /// Folder of the results.
    pub(super) out: PathBuf,
}

/// What is loaded.
pub(super) enum LoadTarget<'a> {
    /// A system of this machine.
    Own(&'a mut OwnStack),
    /// One elsewhere.
    Elsewhere(&'a Url),
}

/// A run with its result.
#[derive(Debug)]
pub(super) struct Finished {
    /// The result's folder.
    pub(super) folder: PathBuf,
    /// What stands in its capsule.
    pub(super) capsule: Capsule,
}

/// Runs it against a system that is ready.
pub(super) async fn run(spec: &RunSpec, target: LoadTarget<'_>, operator: &Operator) -> Result<Finished, BenchError> {
    run_observed(spec, target, operator, &mut |_| {}).await
}

/// The same; `on_second` is called after each second with its number.
pub(super) async fn run_observed(
    spec: &RunSpec,
    mut target: LoadTarget<'_>,
    operator: &Operator,
    on_second: &mut dyn FnMut(u32),
) -> Result<Finished, BenchError> {
    let url = target.url()?;
    let now = SystemClock.now();
    // A target that hangs would keep whoever wants to end waiting for every check's timeout.
    let verified = operator.stop().run_until_cancelled(Box::pin(verify(&url, &tag(now)))).await;
    let verified = verified.ok_or(BenchError::Interrupted)??;
    let dataset = dataset(spec, &target, operator).await?;
    if operator.wants_stop() {
        return Err(BenchError::Interrupted);
    }

    let mut plan = Plan::new(spec.scenario.clone(), url.clone(), spec.seed, tag(now));
    plan.dataset.clone_from(&dataset);
    let cpu = match &target {
        LoadTarget::Own(stack) => {
            let status = stack.status().await;
            status.map(|status| CpuWatch::new(&status, stack.settings().task_cpu))
        }
        LoadTarget::Elsewhere(_) => None,
    };
    let folder = new_folder(&spec.out, &capsule::id(now, &spec.scenario.name, spec.label.as_deref()))?;
    let mut recording = Recording::new(spec, &folder, cpu, on_second)?;
    let loaded = load(spec, &plan, &mut target, &mut recording, operator).await;
    recording.progress.end();
    if !recording.began {
        // No request of the scenario was sent: there is no result, and no folder of one.
        let _ = fs::remove_dir_all(&folder);
    }
    let (outcome, broke) = loaded?;
    if let Some(failed) = recording.failed.take() {
        return Err(failed);
    }

    let warnings = target.warnings().await;
    let capsule = capsule::capsule(Facts {
        id: folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        role: spec.role.clone(),
        driver: spec.driver.facts(),
        scenario: &spec.scenario,
        seed: spec.seed,
        dataset,
        target: target.facts(&url),
        verified,
        machine: this_machine(),
        command: command_line::as_typed(),
        outcome,
        stack_use: recording.cpu.as_ref().and_then(CpuWatch::used),
        warnings,
        broke,
    });
    write_capsule(&folder, &capsule)?;
    Ok(Finished { folder, capsule })
}

/// Sends the load: what it left, and why the target broke on the way, if it did.
async fn load(
    spec: &RunSpec,
    plan: &Plan,
    target: &mut LoadTarget<'_>,
    recording: &mut Recording<'_>,
    operator: &Operator,
) -> Result<(Outcome, Option<String>), BenchError> {
    let (sender, mut events) = mpsc::channel(EVENTS_WAITING);
    let stop = operator.stop().child_token();
    let folder = recording.folder;
    let mut driving = spec.driver.drive(plan, folder, sender, stop.clone());
    let mut broke = None;
    let mut outcome = None;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => recording.take(event, &stop),
                // The driver lets go of its end last of all.
                None => break,
            },
            ended = &mut driving, if outcome.is_none() => outcome = Some(ended),
            reason = target.died(), if broke.is_none() => {
                broke = Some(reason);
                stop.cancel();
            }
        }
    }
    let outcome = match outcome {
        Some(outcome) => outcome,
        None => driving.await,
    };
    outcome.map(|outcome| (outcome, broke))
}

/// What is written and shown while the load goes on.
struct Recording<'a> {
    folder: &'a Path,
    writer: IntervalWriter,
    schedule: Schedule,
    progress: Progress,
    cpu: Option<CpuWatch>,
    on_second: &'a mut dyn FnMut(u32),
    began: bool,
    failed: Option<BenchError>,
}

impl<'a> Recording<'a> {
    fn new(
        spec: &RunSpec,
        folder: &'a Path,
        cpu: Option<CpuWatch>,
        on_second: &'a mut dyn FnMut(u32),
    ) -> Result<Self, BenchError> {
        let schedule = spec.scenario.schedule();
        Ok(Self {
            folder,
            writer: IntervalWriter::create(folder)?,
            progress: Progress::new(schedule.clone()),
            schedule,
            cpu,
            on_second,
            began: false,
            failed: None,
        })
    }

    /// An error ends the run: seconds that are not on disk are no result.
    fn take(&mut self, event: Event, stop: &CancellationToken) {
        match event {
            Event::SetUp { ready, of } => self.progress.set_up(ready, of),
            Event::Began { .. } => self.began = true,
            Event::Interval(interval) => {
                self.look(interval.second);
                self.progress.second(&interval);
                if self.failed.is_none()
                    && let Err(error) = self.writer.append(&interval)
                {
                    self.failed = Some(error.into());
                    stop.cancel();
                }
                (self.on_second)(interval.second);
            }
        }
    }

    /// From the end of the last second before the measured phase to the end of its last one.
    fn look(&mut self, second: u32) {
        if (self.schedule.is_measured(second + 1) || self.schedule.is_measured(second))
            && let Some(cpu) = &mut self.cpu
        {
            cpu.look();
        }
    }
}

impl LoadTarget<'_> {
    /// The same for another run.
    pub(super) fn again(&mut self) -> LoadTarget<'_> {
        match self {
            Self::Own(stack) => LoadTarget::Own(stack),
            Self::Elsewhere(url) => LoadTarget::Elsewhere(url),
        }
    }

    /// Where the requests go.
    pub(super) fn url(&self) -> Result<Url, BenchError> {
        match self {
            Self::Own(stack) => Url::parse(stack.base_url()).map_err(|error| BenchError::Usage(error.to_string())),
            Self::Elsewhere(url) => Ok((*url).clone()),
        }
    }

    fn facts(&self, url: &Url) -> Target {
        let stack = match self {
            Self::Own(stack) => Some(stack.facts().clone()),
            Self::Elsewhere(_) => None,
        };
        Target { url: url.as_str().trim_end_matches('/').to_owned(), stack }
    }

    /// Ends when a system of this machine has died; one elsewhere shows that in its answers.
    async fn died(&mut self) -> String {
        match self {
            Self::Own(stack) => stack.died().await,
            Self::Elsewhere(_) => std::future::pending().await,
        }
    }

    async fn warnings(&self) -> Vec<String> {
        let Self::Own(stack) = self else { return Vec::new() };
        let Some(status) = stack.status().await else { return Vec::new() };
        let restarted = status.tasks.iter().filter(|task| task.restarts > 0);
        let mut warnings: Vec<String> = restarted
            .map(|task| {
                format!("task {}-{} died and was started again {} times", task.service, task.number, task.restarts)
            })
            .collect();
        if !status.throttle_off {
            warnings.push("login throttling was on: logins of one account may have been answered 429".to_owned());
        }
        warnings
    }
}

/// Nothing is put under load that does not answer rightly: fast errors would look like speed.
async fn verify(url: &Url, tag: &str) -> Result<BTreeMap<String, String>, BenchError> {
    let began = tokio::time::Instant::now();
    let verified = loadgen::verify::verify(url, tag, Timeouts::default()).await;
    let wrong: Vec<(String, String)> = verified
        .iter()
        .filter(|(_, outcome)| *outcome != OK)
        .map(|(name, wrong)| (name.clone(), wrong.clone()))
        .collect();
    if !wrong.is_empty() {
        return Err(BenchError::BrokenTarget { url: url.to_string(), wrong });
    }
    say(format_args!("verified      {} checks are ok  ({})", verified.len(), seconds(began.elapsed())));
    Ok(verified)
}

/// The users that are there before. A system of this machine gets them; one elsewhere must have them.
async fn dataset(spec: &RunSpec, target: &LoadTarget<'_>, operator: &Operator) -> Result<Option<Dataset>, BenchError> {
    let wanted = match (spec.users, spec.scenario.identities) {
        (None, Identities::PerVu) => return Ok(None),
        (users, _) => users.unwrap_or_else(|| populate::default_users(spec.scenario.virtual_users())),
    };
    match target {
        LoadTarget::Own(stack) => populate::populate(stack, wanted, operator).await.map(Some),
        LoadTarget::Elsewhere(_) => match spec.users {
            Some(users) => Ok(Some(populate::described(users))),
            None => Err(BenchError::Usage(format!(
                "{} acts as populated users: say with --users how many `datum populate` has put there",
                spec.scenario.name
            ))),
        },
    }
}

/// Makes the addresses of a run's new accounts its own.
fn tag(at: OffsetDateTime) -> String {
    format!("b{:x}", at.unix_timestamp_nanos() / 1_000_000)
}

/// A folder that was not there. Two runs may begin in one second.
pub(super) fn new_folder(out: &Path, id: &str) -> Result<PathBuf, BenchError> {
    fs::create_dir_all(out).map_err(BenchError::io(out))?;
    for attempt in 1_u32.. {
        let folder = if attempt == 1 { out.join(id) } else { out.join(format!("{id}-{attempt}")) };
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(BenchError::io(folder)(error)),
        }
    }
    unreachable!("there are fewer folders than numbers")
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn two_results_of_one_second_have_folders_of_their_own() {
        let out = tempfile::tempdir().expect("a folder");
        let nested = out.path().join("results");
        let first = new_folder(&nested, "x").expect("made");
        let second = new_folder(&nested, "x").expect("made");
        assert_eq!((first, second), (nested.join("x"), nested.join("x-2")));
        fs::write(out.path().join("file"), "").expect("written");
        assert!(matches!(new_folder(&out.path().join("file"), "x"), Err(BenchError::Io { .. })));
    }

    #[test]
    fn a_tag_is_short_plain_and_another_a_moment_later() {
        let (one, two) = (tag(datetime!(2026-01-02 03:04:05.001 UTC)), tag(datetime!(2026-01-02 03:04:05.002 UTC)));
        assert_ne!(one, two);
        assert!(one.len() <= 32 && one.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{one}");
    }
}
