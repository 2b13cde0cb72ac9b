//! One run: verify, populate, load, and write down what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use envelope::result::{Capsule, Dataset, FolderError, Target, copy_intervals, write_capsule};
use loadgen::Trust;
use loadgen::run::Plan;
use loadgen::scenario::{Identities, Scenario};
use loadgen::verify::{OK, Patience};
use service_kit::clock::{Clock, SystemClock};
use stack::identity::IdentityStatus;
use time::OffsetDateTime;
use tokio::sync::mpsc;
use url::Url;

use super::capsule::{self, Facts};
use super::drivers::{Driven, Driver};
use super::error::BenchError;
use super::machine::this_machine;
use super::operator::Operator;
use super::recording::Recording;
use super::system::{CpuWatch, Elsewhere, OwnStack};
use super::{command_line, headline, populate};
use crate::terminal::say;
use crate::terminal::screen::seconds;

/// Events that may wait while the last one is written: a second each.
const EVENTS_WAITING: usize = 64;
/// What a folder must at least take. The capsule's room is reserved when the run begins.
const PROBE_BYTES: usize = 64 * 1024;

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

impl RunSpec {
    /// By Datum's own driver, with seed 1, without a dataset, a role or a label.
    pub(super) fn new(scenario: Scenario, out: &Path) -> Self {
        Self { scenario, driver: Driver::Native, users: None, seed: 1, role: None, label: None, out: out.to_owned() }
    }

    /// The same with a label, by which the runs of one experiment are told apart.
    pub(super) fn labelled(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }
}

/// What is loaded.
pub(super) enum LoadTarget<'a> {
    /// A system of this machine.
    Own(&'a mut OwnStack),
    /// One elsewhere.
    Elsewhere(&'a Elsewhere),
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
    let verified = operator.stop().run_until_cancelled(Box::pin(verify(&url, &target, &tag(now)))).await;
    let verified = verified.ok_or(BenchError::Interrupted)??;
    let dataset = dataset(spec, &target, operator).await?;
    if operator.wants_stop() {
        return Err(BenchError::Interrupted);
    }

    let mut plan = Plan::new(spec.scenario.clone(), url.clone(), spec.seed, tag(now));
    plan.dataset.clone_from(&dataset);
    if let LoadTarget::Elsewhere(elsewhere) = &target {
        plan.trust = elsewhere.trust().clone();
    }
    let cpu = match &target {
        LoadTarget::Own(stack) => {
            let status = stack.status().await;
            status.map(|status| CpuWatch::new(&status, stack.settings().task_cpu))
        }
        LoadTarget::Elsewhere(_) => None,
    };
    let folder = new_folder(&spec.out, &capsule::id(now, &spec.scenario.name, spec.label.as_deref()))?;
    let nothing_yet = |error: FolderError| {
        let _ = fs::remove_dir_all(&folder);
        error
    };
    let mut recording = Recording::new(spec, &folder, cpu, on_second).map_err(nothing_yet)?;
    let loaded = load(spec, &plan, &mut target, &mut recording, operator).await;
    recording.end();
    if loaded.is_err() && !recording.began() {
        // No request of the scenario was sent: there is no result, and no folder of one.
        let _ = fs::remove_dir_all(&folder);
    }
    let (Driven { outcome, unwritten }, broke) = loaded?;
    let unwritten = recording.failed.take().or(unwritten).map(|error| error.to_string());
    let broke = unwritten.as_ref().map(|cause| format!("The record could not be written: {cause}.")).or(broke);

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
    let in_a_line = recording.in_a_line();
    let written = write_capsule(&folder, &capsule);
    let cause = unwritten.or_else(|| written.as_ref().err().map(ToString::to_string));
    let Some(cause) = cause else {
        return Ok(Finished { folder, capsule });
    };
    let kept = if written.is_ok() { Some(folder) } else { kept_elsewhere(&folder, &capsule) };
    let kept = kept.map(|folder| Finished { folder, capsule });
    // Nobody else shows it: the run ends here with an error.
    let shown = kept.as_ref().map(headline::show_briefly);
    if !matches!(shown, Some(Ok(()))) {
        say(in_a_line);
    }
    Err(BenchError::Unwritten { cause, kept: kept.map(|finished| finished.folder) })
}

/// A copy of a result whose own folder takes no capsule any more; none where the temporary folder takes none either.
fn kept_elsewhere(folder: &Path, capsule: &Capsule) -> Option<PathBuf> {
    let copy = tempfile::Builder::new().prefix("datum-result-").tempdir().ok()?;
    copy_intervals(folder, copy.path()).ok()?;
    write_capsule(copy.path(), capsule).ok()?;
    Some(copy.keep())
}

/// Sends the load: what it left, and why the target broke on the way, if it did.
async fn load(
    spec: &RunSpec,
    plan: &Plan,
    target: &mut LoadTarget<'_>,
    recording: &mut Recording<'_>,
    operator: &Operator,
) -> Result<(Driven, Option<String>), BenchError> {
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

impl LoadTarget<'_> {
    /// The same for another run.
    pub(super) fn again(&mut self) -> LoadTarget<'_> {
        match self {
            Self::Own(stack) => LoadTarget::Own(stack),
            Self::Elsewhere(elsewhere) => LoadTarget::Elsewhere(elsewhere),
        }
    }

    /// Where the requests go.
    pub(super) fn url(&self) -> Result<Url, BenchError> {
        match self {
            Self::Own(stack) => Url::parse(stack.base_url()).map_err(|error| BenchError::Usage(error.to_string())),
            Self::Elsewhere(elsewhere) => Ok(elsewhere.url().clone()),
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
        if !status.throttle_off && status.identity == IdentityStatus::Local {
            warnings.push("login throttling was on: logins of one account may have been answered 429".to_owned());
        }
        warnings
    }
}

/// Nothing is put under load that does not answer rightly: fast errors would look like speed.
async fn verify(url: &Url, target: &LoadTarget<'_>, tag: &str) -> Result<BTreeMap<String, String>, BenchError> {
    let trust = match target {
        LoadTarget::Own(_) => Trust::default(),
        LoadTarget::Elsewhere(elsewhere) => elsewhere.trust().clone(),
    };
    let began = tokio::time::Instant::now();
    let verified = loadgen::verify::verify(url, &trust, tag, Patience::default()).await;
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

/// Makes sure that a folder can be made and written into, before anything is started for what is to be written there. Leaves
/// nothing behind: there may be no result.
pub(super) fn prove_writable(out: &Path) -> Result<(), BenchError> {
    let missing: Vec<&Path> =
        out.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    let proven = probe(out).map_err(|source| BenchError::Out { path: out.to_owned(), source });
    for folder in missing {
        // Another run may have put a result there meanwhile.
        let _ = fs::remove_dir(folder);
    }
    proven
}

fn probe(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut probe = tempfile::Builder::new().prefix(".datum-").tempfile_in(folder)?;
    // A full disk still makes empty files.
    probe.write_all(&vec![0; PROBE_BYTES])?;
    probe.as_file().sync_all()
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
    fn a_folder_is_proven_to_take_something_and_keeps_nothing_of_that() {
        let out = tempfile::tempdir().expect("a folder");
        let nested = out.path().join("a/b");
        prove_writable(&nested).expect("writable");
        assert!(!out.path().join("a").exists() && out.path().exists(), "there is no result yet");
        prove_writable(out.path()).expect("writable");
        assert_eq!(fs::read_dir(out.path()).expect("there").count(), 0);
        fs::write(out.path().join("file"), "").expect("written");
        for refused in [&out.path().join("file"), Path::new("/proc/results"), Path::new("/dev/full")] {
            let error = prove_writable(refused).expect_err("refused");
            assert_eq!(error.exit_code(), 73, "{error}");
            assert!(error.to_string().contains(refused.to_str().expect("text")), "{error}");
        }
    }

    #[test]
    fn a_result_whose_folder_takes_no_capsule_is_kept_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("intervals.jsonl"), "").expect("written");
        let scenario = loadgen::scenario::open("smoke").expect("a scenario");
        let capsule = capsule::testing::capsule(&scenario);
        let kept = kept_elsewhere(folder.path(), &capsule).expect("kept");
        assert_eq!(envelope::result::read_capsule(&kept).expect("read"), capsule);
        assert!(kept.join("intervals.jsonl").exists());
        fs::remove_dir_all(kept).expect("removed");
    }

    #[test]
    fn a_tag_is_short_plain_and_another_a_moment_later() {
        let (one, two) = (tag(datetime!(2026-01-02 03:04:05.001 UTC)), tag(datetime!(2026-01-02 03:04:05.002 UTC)));
        assert_ne!(one, two);
        assert!(one.len() <= 32 && one.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{one}");
    }
}
