//! `datum bench selftest`: a known delay in one stage after the other, which attribution must find and measure.

use std::process::ExitCode;

use envelope::report::attribution::{self, Breakdown, UNATTRIBUTED};
use envelope::result::PhaseKind;
use envelope::run::Run;
use loadgen::scenario::{Distribution, Endpoint, Identities, MixEntry, Model, PhaseSpec, Scenario, ThinkTime, Tokens};

use crate::bench::args::SelftestArgs;
use crate::bench::error::{BenchError, EXIT_INTERRUPTED};
use crate::bench::operator::Operator;
use crate::bench::report;
use crate::bench::run::{self, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{Delay, StackSettings};
use crate::terminal::say;

/// What can be delayed. `balancer` is what no stage of a service sees: the report must call it unattributed. (`idp` is waited
/// for only with Cognito, which does not run here.)
pub(crate) const STAGES: [&str; 8] = ["admission", "pool", "db", "hash", "verify", "s3", "app", "balancer"];

/// How far the delay that is found may be from the one that was added.
const TOLERANCE: f64 = 0.10;

/// Few users who think: requests hardly meet, so that a delay does not also grow into waits elsewhere.
const USERS: u32 = 4;
const THINK_TIME_SECONDS: f64 = 0.1;
const WARM_UP_SECONDS: u32 = 3;

/// Hashes are cheap here. A real one is tens of milliseconds of CPU, and how long those take follows from what else the machine
/// does: a difference of two runs would measure that, and not the delay.
const CHEAP_HASHES: [(&str, &str); 2] = [("AUTH_ARGON2_MEMORY_KIB", "64"), ("AUTH_ARGON2_ITERATIONS", "1")];

/// What became of one stage.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    stage: &'static str,
    endpoint: &'static str,
    /// The stage that grew most, by the report's attribution.
    named: Option<String>,
    added_ms: f64,
    /// By how much the delayed stage's mean grew.
    recovered_ms: f64,
}

impl Found {
    fn is_right(&self) -> bool {
        let named = self.named.as_deref() == Some(name_in_report(self.stage));
        named && (self.recovered_ms - self.added_ms).abs() <= TOLERANCE * self.added_ms
    }
}

pub(in crate::bench) async fn run(args: &SelftestArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let folder = report::new_set(&args.out.folder, "selftest")?;
    let spec = |label: &str| RunSpec::new(scenario(args.duration), &folder).labelled(label);
    say(format_args!("selftest: {} ms are added to one stage after the other", args.delay_ms));
    say("\nwithout a delay");
    let before = measure(&spec("without"), &settings(None), operator).await?;
    if operator.wants_stop() {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }

    let mut found = Vec::new();
    let wanted = |stage: &&str| args.stage.is_empty() || args.stage.iter().any(|it| it == *stage);
    for stage in STAGES.into_iter().filter(wanted) {
        say(format_args!("\nwith {} ms more in {stage}", args.delay_ms));
        let after = measure(&spec(stage), &settings(Some(delay(stage, args.delay_ms))), operator).await?;
        if operator.wants_stop() {
            say(table(&found));
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        found.push(compare(stage, f64::from(args.delay_ms), &before, &after)?);
    }
    say("");
    say(table(&found));
    let wrong = found.iter().filter(|it| !it.is_right()).count();
    if wrong > 0 {
        say(format_args!(
            "\n{wrong} of {} stages were not found as they are; results in {}",
            found.len(),
            folder.display()
        ));
        return Ok(ExitCode::FAILURE);
    }
    say(format_args!(
        "\nall {} stages were found, within {:.0} %; results in {}",
        found.len(),
        TOLERANCE * 100.0,
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}

async fn measure(spec: &RunSpec, settings: &StackSettings, operator: &Operator) -> Result<Run, BenchError> {
    let finished = with_stack(settings, operator, async |stack| run::run(spec, LoadTarget::Own(stack), operator).await);
    report::read(&finished.await?.folder)
}

fn settings(delay: Option<Delay>) -> StackSettings {
    let mut settings = StackSettings { delay, ..StackSettings::default() };
    settings.set.extend(CHEAP_HASHES.map(|(name, value)| (name.to_owned(), value.to_owned())));
    settings
}

fn delay(stage: &str, delay_ms: u32) -> Delay {
    match stage {
        "balancer" => Delay::Forward(format!("{delay_ms}ms")),
        stage => Delay::Stage(format!("{stage}:{delay_ms}ms")),
    }
}

fn name_in_report(stage: &str) -> &str {
    if stage == "balancer" { UNATTRIBUTED } else { stage }
}

/// An endpoint whose every request passes the stage.
fn endpoint_of(stage: &str) -> Endpoint {
    match stage {
        "admission" | "hash" => Endpoint::Login,
        "s3" => Endpoint::Upload,
        _ => Endpoint::GetUser,
    }
}

fn compare(stage: &'static str, added_ms: f64, before: &Run, after: &Run) -> Result<Found, BenchError> {
    let endpoint = endpoint_of(stage).name();
    let of = |run: &Run| {
        let divided = attribution::breakdown(&[run], endpoint);
        divided.ok_or_else(|| {
            BenchError::Analysis(format!("{}: no answer of {endpoint} says where its time went", run.label))
        })
    };
    let (before, after) = (of(before)?, of(after)?);
    let mean = |divided: &Breakdown| divided.part(name_in_report(stage)).map_or(0.0, |part| part.mean_ms);
    Ok(Found {
        stage,
        endpoint,
        named: attribution::most_grown(&before, &after).map(|(name, _)| name),
        added_ms,
        recovered_ms: mean(&after) - mean(&before),
    })
}

fn table(found: &[Found]) -> String {
    let rows = found.iter().map(|it| {
        vec![
            it.stage.to_owned(),
            it.endpoint.to_owned(),
            it.named.clone().unwrap_or_else(|| "none".to_owned()),
            format!("{:.1} ms", it.added_ms),
            format!("{:.1} ms", it.recovered_ms),
            format!("{:+.1} %", (it.recovered_ms / it.added_ms - 1.0) * 100.0),
            if it.is_right() { "found" } else { "NOT FOUND" }.to_owned(),
        ]
    });
    crate::bench::headline::table(["DELAYED", "ENDPOINT", "GREW MOST", "ADDED", "RECOVERED", "DEVIATION", ""], rows)
}

fn scenario(seconds: u32) -> Scenario {
    let entry = |endpoint, weight, bytes| MixEntry { endpoint, weight, bytes };
    let phase = |kind, seconds| PhaseSpec { kind, seconds, name: None, factor: None };
    Scenario {
        name: "selftest".to_owned(),
        description: "All endpoints, by few users who hardly meet.".to_owned(),
        question: "Does attribution find a delay that is known?".to_owned(),
        model: Model::Closed {
            vus: USERS,
            vus_choices: Vec::new(),
            think_time: ThinkTime { distribution: Distribution::Exponential, mean_seconds: THINK_TIME_SECONDS },
        },
        phases: vec![phase(PhaseKind::WarmUp, WARM_UP_SECONDS), phase(PhaseKind::Measure, seconds)],
        mix: vec![
            entry(Endpoint::GetUser, 55, None),
            entry(Endpoint::Upload, 25, Some(4096)),
            entry(Endpoint::Login, 15, None),
            entry(Endpoint::Register, 5, None),
        ],
        identities: Identities::PerVu,
        tokens: Tokens::SetUp,
    }
}

#[cfg(test)]
mod tests {
    use envelope::result::Latencies;
    use envelope::run::{Endpoint as Measured, LatencySummary, Source, SourceKind};

    use super::*;

    fn summary(ms: u64) -> LatencySummary {
        let mut latencies = Latencies::new();
        (0..100).for_each(|_| latencies.record(std::time::Duration::from_millis(ms)));
        LatencySummary::of(latencies)
    }

    fn run(stages: &[(&str, u64)], rest: u64) -> Run {
        let total: u64 = stages.iter().map(|(_, ms)| ms).sum();
        let measured = Measured {
            latency: summary(total + rest),
            stages: stages
                .iter()
                .map(|(name, ms)| ((*name).to_owned(), summary(*ms)))
                .chain([("total".to_owned(), summary(total))])
                .collect(),
            unattributed: summary(rest),
            ..Measured::default()
        };
        Run {
            label: "x".into(),
            role: None,
            source: Source { kind: SourceKind::Figures, path: None },
            capsule: None,
            load: None,
            tasks_per_service: None,
            seconds: None,
            requests: 100,
            throughput: None,
            overall: LatencySummary::default(),
            endpoints: [("get-user".to_owned(), measured)].into(),
            failures: Vec::new(),
            series: Vec::new(),
            window: None,
            void: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_delayed_stage_is_found_with_its_delay() {
        let before = run(&[("db", 2), ("app", 1)], 1);
        let found = compare("db", 50.0, &before, &run(&[("db", 53), ("app", 2)], 2)).expect("a breakdown");
        assert_eq!(found.named.as_deref(), Some("db"));
        assert!((found.recovered_ms - 51.0).abs() < 0.2, "{found:?}");
        assert!(found.is_right());
        assert!(table(&[found]).contains("found"));
    }

    #[test]
    fn another_stage_or_another_delay_is_not_right() {
        let before = run(&[("db", 2), ("app", 1)], 1);
        let elsewhere = compare("db", 50.0, &before, &run(&[("db", 2), ("app", 51)], 1)).expect("a breakdown");
        assert!(!elsewhere.is_right(), "{elsewhere:?}");
        let too_much = compare("db", 50.0, &before, &run(&[("db", 62), ("app", 1)], 1)).expect("a breakdown");
        assert_eq!(too_much.named.as_deref(), Some("db"));
        assert!(!too_much.is_right(), "{too_much:?}");
        assert!(table(&[too_much]).contains("NOT FOUND"));
    }

    #[test]
    fn what_the_balancer_adds_is_unattributed() {
        let before = run(&[("db", 2), ("app", 1)], 1);
        let found = compare("balancer", 50.0, &before, &run(&[("db", 2), ("app", 1)], 51)).expect("a breakdown");
        assert!(found.is_right(), "{found:?}");
        assert_eq!(delay("balancer", 50), Delay::Forward("50ms".into()));
        assert_eq!(delay("db", 50), Delay::Stage("db:50ms".into()));
    }

    #[test]
    fn a_delay_is_measured_on_a_system_whose_hashes_take_no_time() {
        let settings = settings(Some(delay("hash", 50)));
        assert_eq!(settings.set["AUTH_ARGON2_ITERATIONS"], "1");
        assert_eq!(settings.set["AUTH_THROTTLE"], "off");
        assert_eq!(settings.delay, Some(Delay::Stage("hash:50ms".into())));
    }

    #[test]
    fn the_load_passes_every_stage_and_is_a_valid_scenario() {
        let text = serde_json::to_string(&scenario(15)).expect("JSON");
        let scenario = Scenario::parse(&text, "selftest").expect("valid");
        for stage in STAGES {
            assert!(scenario.mix.iter().any(|it| it.endpoint == endpoint_of(stage)), "{stage}");
        }
    }
}
