//! `datum bench check identity`: what an identity provider does to the system, against a double whose behaviour is known.
//!
//! First a known delay of its logins, which attribution must find in the provider and nowhere else; two runs without it say what
//! chance alone moves. Then more logins than its quota lets through: those that it admits must succeed, the rest must be refused
//! at once and told when to come back, nobody else may feel it, and it must be over when the load falls.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

use envelope::report::attribution::{Breakdown, breakdown};
use envelope::result::{Interval, Latencies, PhaseKind, read_intervals};
use envelope::run::Run;
use loadgen::scenario::{
    Arrivals, Distribution, Endpoint, Identities, MixEntry, Model, PhaseSpec, Scenario, ThinkTime, Tokens,
};

use crate::bench::args::CheckIdentityArgs;
use crate::bench::error::{BenchError, EXIT_INTERRUPTED};
use crate::bench::operator::Operator;
use crate::bench::run::{self, Finished, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{Double, StackSettings};
use crate::bench::{headline, report};
use crate::terminal::say;

/// The stage of the identity provider.
const PROVIDER: &str = "idp";
/// How far the delay that is found may be from the one that was added.
const TOLERANCE: f64 = 0.05;
/// What the other stages may move by: less than this is below what two identical runs agree in.
const STILL_MS: f64 = 1.0;
/// Or this many times what they moved by between two runs without a delay.
const TIMES_NOISE: f64 = 3.0;

/// The load of the quota's part, in arrivals a second at factor 1: two logins to one get-user.
const LOGINS_A_SECOND: f64 = 200.0;
const GET_USERS_A_SECOND: f64 = 100.0;
/// What AWS admits by default of the category `UserAuthentication`, for an account and a region ("Quotas in Amazon Cognito").
const QUOTA_A_SECOND: f64 = 120.0;
/// Half the load is within the quota.
const WITHIN: f64 = 0.5;
/// A full bucket is emptied before what is admitted is the rate alone.
const EMPTIED_AFTER_SECONDS: u32 = 3;
/// How far what succeeds may be from the quota.
const QUOTA_TOLERANCE: f64 = 0.02;
/// By how much get-user's p99 may move: by so many milliseconds, or by this share.
const UNMOVED_MS: f64 = 2.0;
const UNMOVED_SHARE: f64 = 0.2;
/// Within so many seconds after the load fell nothing may be refused any more.
const RECOVERED_WITHIN_SECONDS: u32 = 2;

/// What was looked at, what it was, and whether that is right.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    what: String,
    wanted: String,
    found: String,
    is_right: bool,
}

pub(in crate::bench) async fn run(args: &CheckIdentityArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let folder = report::new_set(&args.out.folder, "identity")?;
    let mut delayed = Vec::new();
    let delay = format!("InitiateAuth={}ms", args.delay_ms);
    for (label, latency) in [("without", ""), ("without-again", ""), ("delayed", delay.as_str())] {
        say(format_args!("\n{}", if latency.is_empty() { "without a delay" } else { latency }));
        let spec = RunSpec::new(few_users(args.duration), &folder).labelled(label);
        let double = Double { latency: latency.to_owned(), ..Double::default() };
        let finished = one(&spec, double, operator).await?;
        if operator.wants_stop() {
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        delayed.push(report::read(&finished.folder)?);
    }
    let [before, again, after] = delayed.as_slice() else { unreachable!("three runs") };
    let mut lines = attribution(f64::from(args.delay_ms), before, again, after)?;

    say(format_args!("\n{LOGINS_A_SECOND:.0} logins a second, of which the provider admits {QUOTA_A_SECOND:.0}"));
    let spec = RunSpec::new(beyond_the_quota(), &folder).labelled("quota");
    let quotas = format!("UserAuthentication={QUOTA_A_SECOND:.0}");
    let finished = one(&spec, Double { quotas, ..Double::default() }, operator).await?;
    if operator.wants_stop() {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    lines.extend(quota(&intervals(&finished.folder)?, &phases(&finished))?);

    say("");
    say(table(&lines));
    say(format_args!("results in {}", folder.display()));
    Ok(if lines.iter().all(|line| line.is_right) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn one(spec: &RunSpec, double: Double, operator: &Operator) -> Result<Finished, BenchError> {
    let settings = StackSettings { double: Some(double), ..StackSettings::default() };
    with_stack(&settings, operator, async |stack| run::run(spec, LoadTarget::Own(stack), operator).await).await
}

/// Where the delay is, and where it is not.
fn attribution(added_ms: f64, before: &Run, again: &Run, after: &Run) -> Result<Vec<Line>, BenchError> {
    let mut lines = Vec::new();
    for endpoint in [Endpoint::Login.name(), Endpoint::GetUser.name()] {
        let of = |run: &Run| {
            breakdown(&[run], endpoint).ok_or_else(|| {
                BenchError::Analysis(format!("{}: no answer of {endpoint} says where its time went", run.label))
            })
        };
        let (before, again, after) = (of(before)?, of(again)?, of(after)?);
        let mean = |divided: &Breakdown, stage: &str| divided.part(stage).map_or(0.0, |part| part.mean_ms);
        let stages: BTreeSet<&str> = before.parts.iter().chain(&after.parts).map(|part| part.stage.as_str()).collect();
        for stage in stages {
            let moved = mean(&after, stage) - mean(&before, stage);
            let is_the_delay = stage == PROVIDER && endpoint == Endpoint::Login.name();
            let (least, most) = if is_the_delay {
                (added_ms * (1.0 - TOLERANCE), added_ms * (1.0 + TOLERANCE))
            } else {
                let noise = (mean(&again, stage) - mean(&before, stage)).abs();
                let still = (noise * TIMES_NOISE).max(STILL_MS);
                (-still, still)
            };
            lines.push(Line {
                what: format!("{endpoint}: {stage}"),
                wanted: format!("{least:+.1} to {most:+.1} ms"),
                found: format!("{moved:+.2} ms"),
                is_right: (least..=most).contains(&moved),
            });
        }
    }
    Ok(lines)
}

/// The seconds of the phases that have a name.
fn phases(finished: &Finished) -> BTreeMap<String, Range<u32>> {
    let named = |phase: &envelope::result::Phase| Some((phase.name.clone()?, phase.from_second..phase.until_second));
    finished.capsule.phases.iter().filter_map(named).collect()
}

fn intervals(folder: &Path) -> Result<Vec<Interval>, BenchError> {
    Ok(read_intervals(folder)?.collect::<Result<Vec<_>, _>>()?)
}

/// What the quota lets through, and what becomes of the rest.
fn quota(intervals: &[Interval], phases: &BTreeMap<String, Range<u32>>) -> Result<Vec<Line>, BenchError> {
    let phase = |name: &str| {
        phases.get(name).cloned().ok_or_else(|| BenchError::Analysis(format!("the run has no phase `{name}`")))
    };
    let (within, beyond, back) = (phase("within")?, phase("beyond")?, phase("back")?);
    let in_phase = |phase: &Range<u32>| {
        let phase = phase.clone();
        intervals.iter().filter(move |interval| phase.contains(&interval.second))
    };
    let logins = |interval: &Interval| interval.endpoints.get(Endpoint::Login.name()).cloned().unwrap_or_default();

    let steady = beyond.start + EMPTIED_AFTER_SECONDS..beyond.end;
    let succeeded: u64 = in_phase(&steady).map(|interval| logins(interval).latency.count()).sum();
    #[expect(clippy::cast_precision_loss, reason = "counts of seconds and logins stay far below 2^52")]
    let rate = succeeded as f64 / steady.len().max(1) as f64;
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    let mut others = 0;
    for failure in in_phase(&beyond).flat_map(|interval| logins(interval).failures) {
        let code = &failure.failure.code;
        match failure.failure.status {
            // The driver names an answer of these that does not say when to come back `check:…`.
            Some(status @ (429 | 503)) if !code.starts_with("check:") => {
                *refused.entry(format!("{status} {code}")).or_default() += failure.count;
            }
            _ => others += failure.count,
        }
    }
    let refusals = refused.values().sum::<u64>();
    let p99 = |phase: &Range<u32>| {
        let mut latencies = Latencies::new();
        for interval in in_phase(phase) {
            interval.endpoints.get(Endpoint::GetUser.name()).iter().for_each(|it| latencies.merge(&it.latency));
        }
        latencies.percentile_ms(99.0).unwrap_or(f64::INFINITY)
    };
    let (calm, pressed) = (p99(&within), p99(&beyond));
    let most = (calm + UNMOVED_MS).max(calm * (1.0 + UNMOVED_SHARE));
    let last_refusal = in_phase(&(back.start..back.end))
        .filter(|interval| logins(interval).failed_latency.count() > 0)
        .map(|interval| interval.second - back.start + 1)
        .max();
    let codes: Vec<String> = refused.iter().map(|(code, count)| format!("{count} × {code}")).collect();
    Ok(vec![
        Line {
            what: "logins that succeed beyond the quota".to_owned(),
            wanted: format!("{QUOTA_A_SECOND:.0} a second ± {:.0} %", QUOTA_TOLERANCE * 100.0),
            found: format!("{rate:.1} a second"),
            is_right: (rate / QUOTA_A_SECOND - 1.0).abs() <= QUOTA_TOLERANCE,
        },
        Line {
            what: "the others".to_owned(),
            wanted: "429 or 503 with Retry-After".to_owned(),
            found: if others == 0 { codes.join(", ") } else { format!("{}, {others} otherwise", codes.join(", ")) },
            is_right: others == 0 && refusals > 0,
        },
        Line {
            what: "get-user: p99".to_owned(),
            wanted: format!("at most {most:.1} ms ({calm:.1} ms within the quota)"),
            found: format!("{pressed:.1} ms"),
            is_right: pressed <= most,
        },
        Line {
            what: "the last refusal after the load fell".to_owned(),
            wanted: format!("within {RECOVERED_WITHIN_SECONDS} s"),
            found: last_refusal.map_or_else(|| "none".to_owned(), |second| format!("within {second} s")),
            is_right: last_refusal.is_none_or(|second| second <= RECOVERED_WITHIN_SECONDS),
        },
    ])
}

fn table(lines: &[Line]) -> String {
    let rows = lines.iter().map(|line| {
        let verdict = if line.is_right { "right" } else { "WRONG" };
        vec![line.what.clone(), line.wanted.clone(), line.found.clone(), verdict.to_owned()]
    });
    headline::table(["WHAT", "MUST BE", "IS", ""], rows)
}

/// Few users who think: their requests hardly meet, so that a delay does not also grow into waits elsewhere.
fn few_users(seconds: u32) -> Scenario {
    let phase = |kind, seconds| PhaseSpec { kind, seconds, name: None, factor: None };
    Scenario {
        name: "identity-delay".to_owned(),
        description: "login and get-user, by few users who hardly meet.".to_owned(),
        question: "Is a delay of the identity provider found there, and nowhere else?".to_owned(),
        model: Model::Closed {
            vus: 4,
            vus_choices: Vec::new(),
            think_time: ThinkTime { distribution: Distribution::Exponential, mean_seconds: 0.1 },
        },
        phases: vec![phase(PhaseKind::WarmUp, 3), phase(PhaseKind::Measure, seconds)],
        ..mixed(1, 1)
    }
}

fn beyond_the_quota() -> Scenario {
    let phase = |kind, seconds, name: Option<&str>, factor| PhaseSpec {
        kind,
        seconds,
        name: name.map(Into::into),
        factor: Some(factor),
    };
    Scenario {
        name: "identity-quota".to_owned(),
        description: "Logins within the provider's quota, then beyond it, then within it again; get-user beside them."
            .to_owned(),
        question: "Does the system give what the provider admits, refuse the rest, and recover?".to_owned(),
        model: Model::Open {
            arrivals_per_second: LOGINS_A_SECOND + GET_USERS_A_SECOND,
            max_vus: 600,
            arrivals: Arrivals::Constant,
        },
        phases: vec![
            phase(PhaseKind::WarmUp, 5, None, WITHIN),
            phase(PhaseKind::Measure, 20, Some("within"), WITHIN),
            phase(PhaseKind::Measure, 30, Some("beyond"), 1.0),
            phase(PhaseKind::Measure, 10, Some("back"), WITHIN),
        ],
        ..mixed(2, 1)
    }
}

/// So many logins to so many get-users.
fn mixed(logins: u32, get_users: u32) -> Scenario {
    let entry = |endpoint, weight| MixEntry { endpoint, weight, bytes: None };
    Scenario {
        name: String::new(),
        description: String::new(),
        question: String::new(),
        model: Model::Open { arrivals_per_second: 1.0, max_vus: 1, arrivals: Arrivals::Constant },
        phases: Vec::new(),
        mix: vec![entry(Endpoint::Login, logins), entry(Endpoint::GetUser, get_users)],
        identities: Identities::PerVu,
        tokens: Tokens::SetUp,
    }
}

#[cfg(test)]
mod tests {
    use envelope::result::{Answerer, EndpointInterval, Failure, FailureCount};

    use super::*;

    fn failures(status: u16, code: &str, count: u64) -> FailureCount {
        FailureCount { failure: Failure { status: Some(status), code: code.into(), answerer: Answerer::Task }, count }
    }

    fn latencies(count: u64, ms: u64) -> Latencies {
        let mut latencies = Latencies::new();
        (0..count).for_each(|_| latencies.record_micros(ms * 1_000));
        latencies
    }

    /// A second in which so many logins succeed, others fail, and get-user takes so long.
    fn second(second: u32, succeed: u64, refused: Option<FailureCount>, get_user_ms: u64) -> Interval {
        let failed = refused.as_ref().map_or(0, |refused| refused.count);
        let login = EndpointInterval {
            latency: latencies(succeed, 10),
            failed_latency: latencies(failed, 1),
            failures: refused.into_iter().collect(),
            ..EndpointInterval::default()
        };
        let get_user = EndpointInterval { latency: latencies(100, get_user_ms), ..EndpointInterval::default() };
        let endpoints = [("login".to_owned(), login), ("get-user".to_owned(), get_user)].into();
        Interval { second, endpoints, ..Interval::default() }
    }

    fn judged(admitted: u64, refusal: &FailureCount, get_user_ms: u64, refused_until: u32) -> Vec<bool> {
        let phases = [("within", 0..10), ("beyond", 10..20), ("back", 20..30)];
        let phases = phases.map(|(name, seconds)| (name.to_owned(), seconds)).into();
        let intervals: Vec<Interval> = (0..30)
            .map(|number| match number {
                10..20 => second(number, admitted, Some(refusal.clone()), get_user_ms),
                _ => second(number, 100, (20..refused_until).contains(&number).then(|| refusal.clone()), 3),
            })
            .collect();
        quota(&intervals, &phases).expect("phases").iter().map(|line| line.is_right).collect()
    }

    #[test]
    fn each_part_of_the_quotas_answer_is_judged() {
        let throttled = failures(429, "provider_throttled", 80);
        assert_eq!(judged(121, &throttled, 4, 20), [true; 4]);
        assert_eq!(judged(121, &throttled, 4, 22), [true; 4], "two seconds are given");
        assert_eq!(judged(110, &throttled, 4, 20), [false, true, true, true]);
        assert_eq!(judged(120, &failures(500, "internal", 80), 4, 20), [true, false, true, true]);
        assert_eq!(judged(120, &failures(503, "check:retry-after", 80), 4, 20), [true, false, true, true]);
        assert_eq!(judged(120, &throttled, 9, 20), [true, true, false, true]);
        assert_eq!(judged(120, &throttled, 4, 23), [true, true, true, false]);
    }

    #[test]
    fn the_scenarios_are_valid_and_half_the_load_is_within_the_quota() {
        for scenario in [few_users(30), beyond_the_quota()] {
            let text = serde_json::to_string(&scenario).expect("JSON");
            assert!(Scenario::parse(&text, &scenario.name).is_ok(), "{text}");
        }
        const { assert!(LOGINS_A_SECOND * WITHIN < QUOTA_A_SECOND) };
    }
}
