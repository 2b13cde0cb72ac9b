//! `datum bench check freeze`: a task that stands still for a second, seen by both models.
//!
//! In an open run every request that should have been sent meanwhile counts from then; the percentiles must show it. In a
//! closed run the users wait as well, so that the same second hides ("coordinated omission", Gil Tene): there the report must
//! warn.

use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use envelope::result::PhaseKind;
use loadgen::scenario::{
    Arrivals, Distribution, Endpoint, Identities, MixEntry, Model, PhaseSpec, Scenario, ThinkTime, Tokens,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stack::Service;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::args::CheckFreezeArgs;
use crate::bench::error::{BenchError, EXIT_INTERRUPTED};
use crate::bench::operator::Operator;
use crate::bench::report;
use crate::bench::run::{self, Finished, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{OwnStack, StackSettings};
use crate::terminal::say;

/// How long the task stands still.
const FREEZE: Duration = Duration::from_secs(1);
const WARM_UP_SECONDS: u32 = 3;
/// The share of requests that p99 leaves above itself.
const ABOVE_P99: f64 = 0.01;
/// How far p99 may be below what follows from the freeze: it falls between two requests.
const TOLERANCE_BELOW: f64 = 0.05;
/// How far it may be above the freeze itself. When the task goes on, its backlog is answered in whatever order, so that p99 may
/// be as long as the freeze and the time that the backlog takes.
const TOLERANCE_ABOVE: f64 = 0.10;
/// Users and think time of the closed run.
const CLOSED_USERS: u32 = 20;
const CLOSED_THINK_TIME_SECONDS: f64 = 0.1;
/// The report's rule about a closed run in which nothing was answered for a while.
const STALL_RULE: &str = "closed-model-stall";

pub(in crate::bench) async fn run(args: &CheckFreezeArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let longest = FREEZE.as_secs_f64() / ABOVE_P99 / 2.0;
    if !(5.0..=longest).contains(&f64::from(args.duration)) {
        return Err(BenchError::Usage(format!(
            "--duration must be 5 to {longest:.0} s: in a longer run one second is too small a share for p99 to show it"
        )));
    }
    let folder = report::new_set(&args.out.folder, "freeze")?;
    let spec = |scenario: Scenario, label: &str| RunSpec::new(scenario, &folder).labelled(label);
    let open = spec(scenario(open_model(args.rate), args.duration), "open");
    let closed = spec(scenario(closed_model(), args.duration), "closed");
    let settings = StackSettings::default();
    let ((open, frozen), (closed, _)) = with_stack(&settings, operator, async |stack| {
        say("\nopen model");
        let open = frozen_run(&open, stack, operator).await?;
        say("\nclosed model");
        Ok((open, frozen_run(&closed, stack, operator).await?))
    })
    .await?;
    if operator.wants_stop() {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }

    let bounds = bounds_of_p99(frozen, f64::from(args.duration));
    let open_p99 = p99_of_measured(&open)?;
    let open_is_right = bounds.contains(&open_p99);
    say(format_args!(
        "\nopen model    the task stood still for {:.3} s of {} s: p99 must be {:.0} to {:.0} ms, and is {open_p99:.0} ms: {}",
        frozen.as_secs_f64(),
        args.duration,
        bounds.start(),
        bounds.end(),
        if open_is_right { "right" } else { "WRONG" },
    ));
    let warns = report::rules_that_spoke(&closed.folder)?.contains(&STALL_RULE);
    say(format_args!(
        "closed model  p99 is {:.0} ms, because the users waited too; the report warns ({STALL_RULE}): {}",
        p99_of_measured(&closed)?,
        if warns { "right" } else { "WRONG: it does not" },
    ));
    say(format_args!("results in {}", folder.display()));
    Ok(if open_is_right && warns { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A run in whose middle the only task of the actor service stands still; how long it really did.
async fn frozen_run(
    spec: &RunSpec,
    stack: &mut OwnStack,
    operator: &Operator,
) -> Result<(Finished, Duration), BenchError> {
    let no_task = || BenchError::Analysis("the actor task has no process".to_owned());
    let status = stack.status().await.ok_or_else(no_task)?;
    let task = status.tasks.iter().find(|task| task.service == Service::Actor).and_then(|task| task.pid);
    let pid = Pid::from_raw(task.and_then(|pid| i32::try_from(pid).ok()).ok_or_else(no_task)?);

    let schedule = spec.scenario.schedule();
    let measured = schedule.phases().iter().find(|phase| phase.kind == PhaseKind::Measure);
    let middle = measured.map_or(0, |phase| phase.from_second.midpoint(phase.until_second));
    let reached = Arc::new(Notify::new());
    let freezing = tokio::spawn({
        let reached = Arc::clone(&reached);
        async move {
            reached.notified().await;
            freeze(pid).await
        }
    });
    let mut on_second = |second| {
        if second == middle {
            reached.notify_one();
        }
    };
    let finished = run::run_observed(spec, LoadTarget::Own(stack), operator, &mut on_second).await;
    if finished.is_err() || operator.wants_stop() {
        freezing.abort();
        return Ok((finished?, FREEZE));
    }
    let frozen = freezing.await.map_err(|error| BenchError::Analysis(format!("freezing the task: {error}")))?;
    Ok((finished?, frozen.map_err(|error| BenchError::Analysis(format!("cannot stop process {pid}: {error}")))?))
}

/// Stands still as long as it lives.
struct Frozen(Pid);

impl Frozen {
    fn new(pid: Pid) -> nix::Result<Self> {
        kill(pid, Signal::SIGSTOP)?;
        Ok(Self(pid))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

async fn freeze(pid: Pid) -> nix::Result<Duration> {
    let began = Instant::now();
    let frozen = Frozen::new(pid)?;
    tokio::time::sleep(FREEZE).await;
    drop(frozen);
    Ok(began.elapsed())
}

/// Of `seconds` with evenly spaced arrivals the server stood still for `frozen`. A request that should have been sent u into the
/// freeze waits `frozen` − u, so that the share of requests above x is (`frozen` − x) / `seconds`; p99 is where that is 1 %.
fn expected_p99(frozen: Duration, seconds: f64) -> f64 {
    frozen.as_secs_f64() - ABOVE_P99 * seconds
}

/// What p99 may be, in milliseconds.
fn bounds_of_p99(frozen: Duration, seconds: f64) -> RangeInclusive<f64> {
    let least = expected_p99(frozen, seconds) * (1.0 - TOLERANCE_BELOW);
    let most = frozen.as_secs_f64() * (1.0 + TOLERANCE_ABOVE);
    least * 1000.0..=most * 1000.0
}

/// Over the whole measured phase: the steady part of it may not be what was frozen.
fn p99_of_measured(finished: &Finished) -> Result<f64, BenchError> {
    let latencies = report::measured_latencies(&finished.folder, &finished.capsule)?;
    latencies.percentile_ms(99.0).ok_or_else(|| BenchError::Analysis("nothing was answered".to_owned()))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate that was typed, bounded")]
fn open_model(arrivals_per_second: f64) -> Model {
    // Everything that arrives in the freeze, twice: nothing may be dropped.
    let max_vus = (arrivals_per_second * FREEZE.as_secs_f64() * 2.0).ceil().clamp(20.0, 10_000.0) as u32;
    Model::Open { arrivals_per_second, max_vus, arrivals: Arrivals::Constant }
}

fn closed_model() -> Model {
    Model::Closed {
        vus: CLOSED_USERS,
        vus_choices: Vec::new(),
        think_time: ThinkTime { distribution: Distribution::Exponential, mean_seconds: CLOSED_THINK_TIME_SECONDS },
    }
}

fn scenario(model: Model, seconds: u32) -> Scenario {
    let phase = |kind, seconds| PhaseSpec { kind, seconds, name: None, factor: None };
    Scenario {
        name: "freeze".to_owned(),
        description: "get-user, while its only task stands still for a second.".to_owned(),
        question: "Do the figures show that a server stood still?".to_owned(),
        model,
        phases: vec![phase(PhaseKind::WarmUp, WARM_UP_SECONDS), phase(PhaseKind::Measure, seconds)],
        mix: vec![MixEntry { endpoint: Endpoint::GetUser, weight: 1, bytes: None }],
        identities: Identities::PerVu,
        tokens: Tokens::SetUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p99_follows_from_the_freeze() {
        // 1 s of 20 s: 5 % of the requests wait 0 to 1 s, evenly; 1 % of all wait more than 0.8 s.
        assert!((expected_p99(Duration::from_secs(1), 20.0) - 0.8).abs() < 1e-9);
        assert!((expected_p99(Duration::from_secs(2), 50.0) - 1.5).abs() < 1e-9);
        let bounds = bounds_of_p99(Duration::from_secs(1), 20.0);
        assert!(bounds.contains(&800.0) && bounds.contains(&1_050.0), "{bounds:?}");
        // What a driver shows that measures from the actual start, or does not send while it waits.
        assert!(!bounds.contains(&20.0) && !bounds.contains(&700.0), "{bounds:?}");
    }

    #[test]
    fn the_loads_are_valid_and_the_open_one_can_hold_the_freeze() {
        for model in [open_model(100.0), closed_model()] {
            let text = serde_json::to_string(&scenario(model, 20)).expect("JSON");
            Scenario::parse(&text, "freeze").expect("valid");
        }
        let Model::Open { max_vus, .. } = open_model(100.0) else { panic!("another model") };
        assert!(max_vus >= 200);
    }
}
