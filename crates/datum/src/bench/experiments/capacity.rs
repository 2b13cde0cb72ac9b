//! `datum bench capacity`: the highest arrival rate that keeps the objectives, and how it grows with tasks.
//!
//! The search itself, and the verdict over each trial, are `envelope`'s; here its trials are run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use envelope::analysis::{
    Capacity, CapacityOutcome, CapacitySearch, CapacitySettings, Purpose, Slo, SloQuantity, Step, Trial, TrialOutcome,
    UslFit, UslPoint, fit_usl, judge_trial,
};
use envelope::report::Options;
use loadgen::scenario::{Model, Overrides, Scenario};

use crate::bench::args::{CapacityArgs, SystemArgs};
use crate::bench::describe::percent;
use crate::bench::error::{BenchError, EXIT_INTERRUPTED};
use crate::bench::operator::Operator;
use crate::bench::run::{self, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{Elsewhere, StackSettings};
use crate::bench::{headline, report};
use crate::terminal::say;

/// What is written down beside the runs.
const SUMMARY: &str = "capacity.md";
/// Of each trial; the warm-up then runs at the full rate.
const RAMP_SECONDS: u32 = 3;
/// Requests in flight that a trial may have: those that the longest objective leaves room for, and as many again.
const FLIGHT_FACTOR: f64 = 2.0;
const FLIGHT: std::ops::RangeInclusive<f64> = 50.0..=2_000.0;
/// Where no objective limits a latency, in milliseconds.
const FLIGHT_DEFAULT_MS: f64 = 1_000.0;

/// What was found for one number of tasks.
struct Searched {
    tasks: u16,
    capacity: Capacity,
    /// The trials' results, in order.
    folders: Vec<PathBuf>,
}

pub(in crate::bench) async fn run(args: &CapacityArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let objectives = args.slo.iter().map(|text| text.parse::<Slo>()).collect::<Result<Vec<_>, _>>();
    let objectives = objectives.map_err(|error| BenchError::Usage(error.to_string()))?;
    let scenario = loadgen::scenario::open(&args.scenario)?;
    if !matches!(scenario.model, Model::Open { .. }) {
        return Err(BenchError::Usage(format!(
            "{} has a closed model: its users wait for answers, so that no arrival rate can be asked for",
            scenario.name
        )));
    }
    let elsewhere = Elsewhere::of(&args.elsewhere)?;
    if elsewhere.is_some() && args.tasks.from != args.tasks.to {
        return Err(BenchError::Usage(
            "a system elsewhere has the tasks that it has: give one number, or none".to_owned(),
        ));
    }
    let settings = StackSettings::new(&SystemArgs { size: args.size.clone(), ..SystemArgs::default() })?;
    let folder = report::new_set(&args.out.folder, "capacity")?;
    let slos = objectives.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    say(format_args!("capacity of {} under {slos}", scenario.name));
    let trials = Trials { args, scenario: &scenario, objectives: &objectives, folder: &folder, operator };

    let mut searched = Vec::new();
    for tasks in args.tasks.from..=args.tasks.to {
        let found = if let Some(elsewhere) = &elsewhere {
            trials.search(tasks, LoadTarget::Elsewhere(elsewhere)).await?
        } else {
            let settings = settings.clone().with_tasks(tasks);
            let work = async |stack: &mut _| trials.search(tasks, LoadTarget::Own(stack)).await;
            with_stack(&settings, operator, work).await?
        };
        let Some(found) = found else { break };
        say(format_args!("\n{}", summary(tasks, &found.capacity)));
        searched.push(found);
    }
    let text = document(&scenario.name, &slos, &searched);
    let path = folder.join(SUMMARY);
    fs::write(&path, &text).map_err(BenchError::io(&path))?;
    if searched.len() > 1 {
        say(format_args!("\n{}", scaling(&searched)));
    }
    say(format_args!("\ncapacity      {}", path.display()));
    let evidence = evidence(&searched);
    if !evidence.is_empty() {
        let capacities = searched.iter().map(|it| (u32::from(it.tasks), it.capacity.clone())).collect();
        let built = report::build_with(&evidence, &Options { capacities, ..Options::default() })?;
        headline::show_paths(&built.write(&folder)?);
    }
    if operator.wants_stop() {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    let nothing = searched.iter().any(|it| matches!(it.capacity.outcome, CapacityOutcome::None { .. }));
    Ok(if nothing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What all trials have in common.
struct Trials<'a> {
    args: &'a CapacityArgs,
    scenario: &'a Scenario,
    objectives: &'a [Slo],
    folder: &'a Path,
    operator: &'a Operator,
}

impl Trials<'_> {
    /// Searches on one system; none when the operator ended it.
    async fn search(&self, tasks: u16, mut target: LoadTarget<'_>) -> Result<Option<Searched>, BenchError> {
        let mut search = CapacitySearch::new(CapacitySettings {
            first_rate: self.args.from,
            lowest_rate: (self.args.from / 64.0).max(0.5),
            highest_rate: self.args.to,
            resolution: self.args.precision / 100.0,
            confirmations: self.args.confirm,
            ..CapacitySettings::default()
        });
        let mut folders = Vec::new();
        loop {
            let (rate, purpose) = match search.next() {
                Step::Done(capacity) => return Ok(Some(Searched { tasks, capacity, folders })),
                Step::Try { rate, purpose } => (rate, purpose),
            };
            let number = search.trials().len() + 1;
            say(format_args!("\ntrial {number}: {rate:.1}/s, {}", purpose_in_words(purpose)));
            let spec = RunSpec {
                users: self.args.users,
                // Another sequence of arrivals each time: a repeat of the same one would confirm the sequence.
                seed: self.args.seed.seed.wrapping_add(number as u64),
                role: Some(purpose_in_words(purpose)),
                label: Some(format!("{tasks}-{number:02}")),
                ..RunSpec::new(trial(self.scenario, rate, self.args, self.objectives)?, self.folder)
            };
            let finished = run::run(&spec, target.again(), self.operator).await?;
            if self.operator.wants_stop() {
                return Ok(None);
            }
            let run = report::read(&finished.folder)?;
            folders.push(finished.folder);
            let (outcome, _) = judge_trial(&run, self.objectives, rate);
            say(format_args!("{}", outcome_in_words(&outcome)));
            search.record(outcome);
        }
    }
}

fn trial(scenario: &Scenario, rate: f64, args: &CapacityArgs, objectives: &[Slo]) -> Result<Scenario, BenchError> {
    let overrides = Overrides {
        arrivals_per_second: Some(rate),
        vus: Some(in_flight(rate, objectives)),
        ramp_seconds: Some(RAMP_SECONDS),
        warm_up_seconds: Some(args.warm_up),
        measure_seconds: Some(args.duration),
        ..Overrides::default()
    };
    Ok(overrides.apply(scenario)?)
}

/// By Little's law as many as arrive while the slowest request that is still good is under way, and as many again.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn in_flight(rate: f64, objectives: &[Slo]) -> u32 {
    let latencies = objectives.iter().filter(|slo| slo.quantity != SloQuantity::Errors).map(|slo| slo.limit);
    let longest_ms = latencies.reduce(f64::max).unwrap_or(FLIGHT_DEFAULT_MS);
    (rate * longest_ms / 1000.0 * FLIGHT_FACTOR).clamp(*FLIGHT.start(), *FLIGHT.end()).ceil() as u32
}

fn purpose_in_words(purpose: Purpose) -> String {
    match purpose {
        Purpose::Bracket => "bracket".to_owned(),
        Purpose::Bisect => "bisect".to_owned(),
        Purpose::Confirm(number) => format!("confirmation {number}"),
        Purpose::OperatingPoint(percent) => format!("operating point {percent} %"),
    }
}

fn outcome_in_words(outcome: &TrialOutcome) -> String {
    match outcome {
        TrialOutcome::Passed => "passed".to_owned(),
        TrialOutcome::Failed(reason) => format!("failed: {reason}"),
        TrialOutcome::Void(reason) => format!("VOID: {reason}"),
    }
}

/// The runs that a reader wants to see: those at the rate that was found and at the operating points.
fn evidence(searched: &[Searched]) -> Vec<PathBuf> {
    let shown = |purpose: Purpose| matches!(purpose, Purpose::Confirm(_) | Purpose::OperatingPoint(_));
    let of = |it: &Searched| {
        let trials = it.capacity.trials.iter().zip(&it.folders);
        trials.filter(|(trial, _)| shown(trial.purpose)).map(|(_, folder)| folder.clone()).collect::<Vec<_>>()
    };
    searched.iter().flat_map(of).collect()
}

/// The result in a sentence, and the operating points.
fn summary(tasks: u16, capacity: &Capacity) -> String {
    let counted = if tasks == 1 { "1 task per service".to_owned() } else { format!("{tasks} tasks per service") };
    let mut text = match &capacity.outcome {
        CapacityOutcome::Found { passes, fails } => {
            format!(
                "{counted}: the knee lies between {passes:.1}/s, which holds and was confirmed, and {fails:.1}/s, which does not."
            )
        }
        CapacityOutcome::AtLeast { passes, reason } => {
            format!("{counted}: at least {passes:.1}/s: {}.", reason.trim_end_matches('.'))
        }
        CapacityOutcome::None { reason } => {
            format!("{counted}: no capacity under these objectives: {}.", reason.trim_end_matches('.'))
        }
    };
    for point in &capacity.operating_points {
        let _ = write!(text, "\n  {:>3} %  {:>8.1}/s  {}", point.percent, point.rate, outcome_in_words(&point.outcome));
    }
    text
}

/// How capacity grows with tasks. Only rates that lie between a pass and a failure are points of the law.
fn scaling(searched: &[Searched]) -> String {
    let found = searched.iter().filter_map(|it| match it.capacity.outcome {
        CapacityOutcome::Found { passes, .. } => Some(UslPoint { n: f64::from(it.tasks), throughput: passes }),
        CapacityOutcome::AtLeast { .. } | CapacityOutcome::None { .. } => None,
    });
    let points: Vec<UslPoint> = found.collect();
    match fit_usl(&points) {
        Ok(fit) => law(&fit),
        Err(refusal) => format!("Universal Scalability Law: not fitted: {refusal}"),
    }
}

fn law(fit: &UslFit) -> String {
    let mut text = String::from("Universal Scalability Law, X(N) = λN / (1 + σ(N−1) + κN(N−1)):");
    for (name, parameter) in [("λ", &fit.lambda), ("σ", &fit.sigma), ("κ", &fit.kappa)] {
        let _ = write!(
            text,
            "\n  {name} {:.4}, {} interval {:.4} to {:.4}",
            parameter.value,
            percent(parameter.interval.confidence),
            parameter.interval.low,
            parameter.interval.high
        );
    }
    for caveat in &fit.caveats {
        let _ = write!(text, "\n  {caveat}");
    }
    text
}

fn document(scenario: &str, slos: &str, searched: &[Searched]) -> String {
    let mut text = format!("# Capacity of {scenario} under {slos}\n");
    for it in searched {
        let _ = write!(
            text,
            "\n{}\n\n| Trial | Arrivals/s | For | Outcome |\n|---:|---:|---|---|\n",
            summary(it.tasks, &it.capacity)
        );
        for (number, Trial { rate, purpose, outcome }) in it.capacity.trials.iter().enumerate() {
            let words = outcome_in_words(outcome).replace('|', "\\|");
            let _ = writeln!(text, "| {} | {rate:.1} | {} | {words} |", number + 1, purpose_in_words(*purpose));
        }
    }
    if searched.len() > 1 {
        let _ = write!(text, "\n{}\n", scaling(searched));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slos(texts: &[&str]) -> Vec<Slo> {
        texts.iter().map(|text| text.parse().expect("an objective")).collect()
    }

    fn capacity(outcome: CapacityOutcome) -> Capacity {
        let trial = Trial { rate: 50.0, purpose: Purpose::Bracket, outcome: TrialOutcome::Failed("a|b".into()) };
        Capacity { outcome, operating_points: Vec::new(), trials: vec![trial] }
    }

    #[test]
    fn a_trial_may_have_twice_in_flight_what_its_objectives_leave_room_for() {
        assert_eq!(in_flight(1_000.0, &slos(&["p95<250ms", "login.p99<400ms", "errors<0.1%"])), 800);
        assert_eq!(in_flight(1.0, &slos(&["p95<250ms"])), 50);
        assert_eq!(in_flight(100.0, &slos(&["errors<0.1%"])), 200);
        assert_eq!(in_flight(1e6, &slos(&["p95<10s"])), 2_000);
    }

    #[test]
    fn two_task_counts_give_no_law_and_the_document_says_so() {
        let found = |tasks, passes| Searched {
            tasks,
            capacity: capacity(CapacityOutcome::Found { passes, fails: passes * 1.05 }),
            folders: Vec::new(),
        };
        let text = document("sls", "p95<250ms", &[found(1, 100.0), found(2, 180.0)]);
        assert!(text.contains("not fitted"), "{text}");
        assert!(text.contains("| 1 | 50.0 | bracket | failed: a\\|b |"), "{text}");
        assert!(text.contains("2 tasks per service: the knee lies between 180.0/s"), "{text}");
    }

    #[test]
    fn a_lower_bound_is_no_point_of_the_law() {
        let at_least = |tasks| Searched {
            tasks,
            capacity: capacity(CapacityOutcome::AtLeast { passes: 10.0, reason: "x".into() }),
            folders: Vec::new(),
        };
        let text = scaling(&[at_least(1), at_least(2), at_least(3), at_least(4)]);
        assert!(text.contains("not fitted"), "{text}");
    }
}
