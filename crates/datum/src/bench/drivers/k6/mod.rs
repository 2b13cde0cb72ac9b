//! k6 as a driver: the scripts of `tests/load/k6` are written into a temporary folder, k6 runs them and writes every point to
//! its standard output; points are kept as they are, compressed, and become the seconds that the native driver tells as well.

mod scripts;
mod tally;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use envelope::analysis::{NOTHING_MEASURED, single_identity};
use envelope::import::K6Points;
use envelope::result::{Completion, FolderError, GeneratorUse, Interval, PhaseKind};
use flate2::Compression;
use flate2::write::GzEncoder;
use loadgen::run::{Event, Outcome, Plan};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use service_kit::clock::{Clock, SystemClock};
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::tally::Tally;
use super::Driven;
use crate::bench::error::BenchError;
use crate::bench::system::{cpu_seconds_of, peak_memory_bytes_of};

/// What k6 itself wrote, in the result's folder.
const RAW: &str = "k6.json.gz";
/// k6's exit code when a threshold did not hold: the run is valid, and the report judges.
const EXIT_THRESHOLDS: i32 = 99;
/// k6's exit code when it was told to stop.
const EXIT_STOPPED: i32 = 105;
/// How many of its last lines are quoted when it fails.
const LAST_WORDS: usize = 12;
/// From this share of all CPUs on, k6 measured itself.
const BUSY_SHARE: f64 = 0.9;

/// A k6 that was found.
#[derive(Debug, Clone)]
pub(in crate::bench) struct K6 {
    program: PathBuf,
    version: String,
    target_ca: Option<PathBuf>,
}

impl K6 {
    /// Finds it and asks for its version.
    pub(in crate::bench) async fn find(program: &Path) -> Result<Self, BenchError> {
        let asked = Command::new(program).arg("version").stdin(Stdio::null()).output().await;
        let output = asked.map_err(|error| {
            BenchError::Usage(format!(
                "cannot run k6 as `{}`: {error}. Install it (https://grafana.com/docs/k6), or say with --k6 where it is",
                program.display()
            ))
        })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = parse_version(&text).ok_or_else(|| {
            BenchError::Usage(format!("`{} version` does not answer as k6 does: {}", program.display(), text.trim()))
        })?;
        Ok(Self { program: program.to_owned(), version, target_ca: None })
    }

    /// The same, which takes certificates of this file's authorities for a target's.
    pub(in crate::bench) fn trusting(self, target_ca: Option<&Path>) -> Result<Self, BenchError> {
        // k6 runs in a folder of its own.
        let absolute = |path: &Path| std::path::absolute(path).map_err(BenchError::io(path));
        Ok(Self { target_ca: target_ca.map(absolute).transpose()?, ..self })
    }

    pub(in crate::bench) fn version(&self) -> &str {
        &self.version
    }

    /// Runs the plan.
    pub(in crate::bench) async fn drive(
        &self,
        plan: &Plan,
        raw: &Path,
        events: mpsc::Sender<Event>,
        stop: CancellationToken,
    ) -> Result<Driven, BenchError> {
        let raw = raw.join(RAW);
        let unwritten = |source| FolderError::Io { path: raw.clone(), source };
        let mut archive = Archive::create(&raw).map_err(unwritten)?;
        let mut broken = None;
        let began_at = SystemClock.now();
        let folder = scripts::unpack(&plan.scenario)?;
        let mut child = self.start(plan, &folder)?;
        let points = child.stdout.take();
        let errors = child.stderr.take();
        let words = tokio::spawn(last_words(errors));
        let mut reading = Reading::new(plan, child.id(), events);
        let mut told_to_stop = false;
        if let Some(points) = points {
            let mut lines = BufReader::new(points).lines();
            loop {
                tokio::select! {
                    line = lines.next_line() => match line {
                        Ok(Some(line)) => {
                            if broken.is_none()
                                && let Err(error) = archive.keep(&line)
                            {
                                broken = Some(unwritten(error));
                                told_to_stop = true;
                                interrupt(&child);
                            }
                            reading.line(&line).await;
                        }
                        _ => break,
                    },
                    () = stop.cancelled(), if !told_to_stop => {
                        told_to_stop = true;
                        interrupt(&child);
                    }
                }
            }
        }
        broken = broken.or(archive.finish().err().map(unwritten));
        let status = child.wait().await.map_err(|error| BenchError::Program(format!("k6: {error}")))?;
        let words = words.await.unwrap_or_default();
        let outcome = reading.end(told_to_stop).await;
        match status.code() {
            Some(0 | EXIT_THRESHOLDS) => {}
            Some(EXIT_STOPPED) if told_to_stop => {}
            _ => return Err(BenchError::Program(format!("k6 ended with {status}:\n{words}"))),
        }
        let outcome = outcome.or_else(|| told_to_stop.then(|| never_began(began_at)));
        let outcome = outcome.ok_or_else(|| BenchError::Program(format!("k6 sent no request:\n{words}")))?;
        Ok(Driven { outcome, unwritten: broken })
    }

    fn start(&self, plan: &Plan, folder: &TempDir) -> Result<Child, BenchError> {
        let mut command = Command::new(&self.program);
        command
            .args(["run", "--quiet", "--address", "", "--out", "json=-"])
            .arg(scripts::main_in(folder))
            .current_dir(folder.path())
            .env("SCENARIO_FILE", scripts::scenario_in(folder))
            .env("TARGET", plan.target.as_str())
            .env("SEED", plan.seed.to_string())
            .env("SUMMARY_FILE", "")
            .env("K6_NO_USAGE_REPORT", "true")
            .env("TIMEOUT_SECONDS", plan.timeouts.request.as_secs().to_string())
            // The scenario's file already holds what the run changes of it.
            .env_remove("SCENARIO")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C of the terminal is for the run, which tells k6.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(file) = &self.target_ca {
            // k6 has no option for it; Go reads the trusted authorities from this file instead of the system's (crypto/x509).
            command.env("SSL_CERT_FILE", file);
        }
        for name in
            ["VUS", "MAX_VUS", "RATE", "RAMP_SECONDS", "WARM_UP_SECONDS", "MEASURE_SECONDS", "THINK_TIME_SECONDS"]
        {
            command.env_remove(name);
        }
        if let Some(dataset) = &plan.dataset {
            command
                .env("USERS", dataset.users.to_string())
                .env("DATASET_SEED", dataset.seed.to_string())
                .env("PASSWORDS", dataset.distinct_hashes.to_string());
        }
        command.spawn().map_err(|error| BenchError::Program(format!("cannot run {}: {error}", self.program.display())))
    }
}

/// What is left of a run that was ended while its users were made.
fn never_began(at: OffsetDateTime) -> Outcome {
    Outcome {
        completion: Completion::Interrupted,
        started_at: at,
        ended_at: SystemClock.now(),
        phases: Vec::new(),
        identities: 0,
        void: vec![NOTHING_MEASURED.to_owned()],
        warnings: Vec::new(),
        generator: GeneratorUse { cpu_seconds: None, peak_memory_bytes: None, threads: None },
    }
}

/// k6's own output, compressed.
struct Archive(GzEncoder<BufWriter<File>>);

impl Archive {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(GzEncoder::new(BufWriter::new(File::create(path)?), Compression::fast())))
    }

    /// Keeps points; what else is printed (the end-of-test text) is not k6's JSON format.
    fn keep(&mut self, line: &str) -> io::Result<()> {
        if line.starts_with('{') {
            self.0.write_all(line.as_bytes())?;
            self.0.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        self.0.finish()?.flush()
    }
}

/// What k6's points become while it runs.
struct Reading<'a> {
    plan: &'a Plan,
    pid: Option<u32>,
    points: K6Points,
    tally: Tally,
    events: mpsc::Sender<Event>,
    announced: bool,
    /// CPU seconds that k6 had used when the first point of a second came; the last one stands for now.
    cpu: Vec<(u32, f64)>,
    peak_memory_bytes: Option<u64>,
}

impl<'a> Reading<'a> {
    fn new(plan: &'a Plan, pid: Option<u32>, events: mpsc::Sender<Event>) -> Self {
        Self {
            plan,
            pid,
            points: K6Points::default(),
            tally: Tally::default(),
            events,
            announced: false,
            cpu: Vec::new(),
            peak_memory_bytes: None,
        }
    }

    async fn line(&mut self, line: &str) {
        let before = self.points.newest();
        let seconds = self.points.take(line);
        let Some(newest) = self.points.newest() else { return };
        if before == Some(newest) {
            return self.tell(seconds).await;
        }
        if !self.announced
            && let Some(at) = self.points.began()
        {
            self.announced = true;
            let _ = self.events.send(Event::Began { at }).await;
        }
        if let Some(pid) = self.pid {
            self.cpu.extend(cpu_seconds_of(pid).map(|cpu| (newest, cpu)));
            self.peak_memory_bytes = self.peak_memory_bytes.max(peak_memory_bytes_of(pid));
        }
        self.tell(seconds).await;
    }

    async fn tell(&mut self, seconds: Vec<Interval>) {
        // Asked for every point, and most complete no second.
        if seconds.is_empty() {
            return;
        }
        let schedule = self.plan.scenario.schedule();
        for mut interval in seconds {
            self.tally.add(&interval, schedule.phases());
            interval.generator.cpu_seconds = self.cpu_between(interval.second, interval.second + 1).unwrap_or(0.0);
            let _ = self.events.send(Event::Interval(Box::new(interval))).await;
        }
    }

    /// CPU seconds from the beginning of one second to that of another.
    fn cpu_between(&self, from: u32, until: u32) -> Option<f64> {
        let at = |second: u32| {
            let later = self.cpu.iter().find(|(seen, _)| *seen >= second).or(self.cpu.last());
            later.map(|(_, cpu)| *cpu)
        };
        Some(at(until)? - at(from)?)
    }

    /// What the run leaves; none if it never began.
    async fn end(mut self, stopped: bool) -> Option<Outcome> {
        let rest = self.points.finish();
        self.tell(rest).await;
        let started_at = self.points.began()?;
        let seconds = self.points.newest().map_or(0, |newest| newest + 1);
        let schedule = self.plan.scenario.schedule();
        let whole = schedule.phases().to_vec();
        let mut phases = whole.clone();
        if stopped {
            phases.retain(|phase| phase.from_second < seconds);
            if let Some(last) = phases.last_mut() {
                last.until_second = last.until_second.min(seconds);
            }
        }
        let measured: Vec<_> = phases.iter().filter(|phase| phase.kind == PhaseKind::Measure).collect();
        let window = measured.first().zip(measured.last()).map(|(first, last)| (first.from_second, last.until_second));
        let cpu_seconds = window.and_then(|(from, until)| self.cpu_between(from, until));
        let users = self.plan.scenario.virtual_users();
        let facts = self.points.facts();
        let identities = facts.identities;
        let mut void = Vec::new();
        if window.is_none() {
            void.push(NOTHING_MEASURED.to_owned());
        } else {
            void.extend(self.tally.void());
            void.extend(single_identity(identities, users));
        }
        void.extend(window.and_then(|(from, until)| busy(cpu_seconds?, f64::from(until - from))));
        let mut warnings = Vec::new();
        if matches!(self.plan.scenario.load(), envelope::result::Load::Open { .. }) {
            warnings.push(
                "k6 measures from the actual start of a request: what an arrival waited for a free virtual user is not in \
                 its latency"
                    .to_owned(),
            );
        }
        if facts.late_points > 0 {
            warnings.push(format!(
                "{} of k6's points came too late for their second and count in a later one",
                facts.late_points
            ));
        }
        Some(Outcome {
            completion: if phases == whole { Completion::Whole } else { Completion::Interrupted },
            started_at,
            ended_at: SystemClock.now(),
            phases,
            identities,
            void,
            warnings,
            generator: GeneratorUse { cpu_seconds, peak_memory_bytes: self.peak_memory_bytes, threads: None },
        })
    }
}

/// A k6 without CPU left measures itself.
fn busy(cpu_seconds: f64, seconds: f64) -> Option<String> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let cpus = f64::from(u32::try_from(cpus).unwrap_or(u32::MAX));
    let used = if seconds > 0.0 { cpu_seconds / seconds } else { 0.0 };
    (used >= BUSY_SHARE * cpus)
        .then(|| format!("the generator was the bottleneck: k6 used {used:.2} of {cpus:.0} CPUs"))
}

fn interrupt(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // One that has ended takes no signal.
        let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
    }
}

async fn last_words(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(from) = from else { return String::new() };
    let mut last = VecDeque::new();
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if last.len() == LAST_WORDS {
            last.pop_front();
        }
        last.push_back(format!("  {line}"));
    }
    Vec::from(last).join("\n")
}

/// `k6 v1.1.0 (go1.24.3, linux/amd64)` → `1.1.0`.
fn parse_version(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    (name.starts_with("k6") && version.starts_with(|c: char| c.is_ascii_digit())).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k6_says_its_version() {
        assert_eq!(parse_version("k6 v1.1.0 (go1.24.3, linux/amd64)\n").as_deref(), Some("1.1.0"));
        assert_eq!(parse_version("k6 v2.0.0-rc1 (commit/abc)").as_deref(), Some("2.0.0-rc1"));
        for other in ["", "k6", "wrk 4.1.0", "k6 version"] {
            assert_eq!(parse_version(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_or_not_k6_is_refused_with_advice() {
        let error = K6::find(Path::new("/nowhere/k6")).await.expect_err("refused");
        assert_eq!(error.exit_code(), 64);
        assert!(error.to_string().contains("--k6"), "{error}");
        let error = K6::find(Path::new("true")).await.expect_err("refused");
        assert!(error.to_string().contains("does not answer as k6 does"), "{error}");
    }

    #[test]
    fn a_k6_without_cpu_left_voids_the_run() {
        assert_eq!(busy(0.1, 10.0), None);
        assert!(busy(1e6, 10.0).expect("void").contains("bottleneck"));
    }
}
