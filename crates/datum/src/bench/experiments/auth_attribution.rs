//! `datum bench auth-attribution`: is it the identity provider?
//!
//! The same mix with accounts of our own, with the Cognito double answering at once, and with the double as slow as Cognito; each
//! with logins in the mix, and with tokens that are reused. The first pair says what asking a provider costs in itself, the second
//! what its time does to login, and the third what the logins do to everybody else.
//!
//! The load is open: requests arrive alike whoever knows the accounts, while users who wait for a slow login would send fewer.
//!
//! AWS publishes no latency of Cognito. What is assumed by default: 200 to 300 ms for `SignUp` and `InitiateAuth` once a client is warm
//! (aws/aws-sdk-js#3419), so a median of 250 ms; a 99th percentile of four times that. `--idp-latency` takes what somebody has
//! measured.

use std::process::ExitCode;

use envelope::report::Options;
use envelope::result::PhaseKind;
use loadgen::scenario::{Arrivals, Model, PhaseSpec, Scenario};

use super::scenario::{announce, exit_code};
use crate::bench::args::AuthAttributionArgs;
use crate::bench::error::BenchError;
use crate::bench::operator::Operator;
use crate::bench::run::{self, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{Double, StackSettings};
use crate::bench::{capsule, headline, report};
use crate::terminal::say;

/// Also the report's title.
const QUESTION: &str = "Whose time is a login?";
/// The mix with logins and registrations, and the same without.
const MIXES: [(&str, &str); 2] = [("baseline-mix", ""), ("token-reuse", ", tokens reused")];
const WARM_UP_SECONDS: u32 = 10;
/// Requests in flight at most: as many arrive in two seconds, which is what the slowest logins take.
const MAX_VUS_SECONDS: f64 = 2.0;
/// The report's rule that answers the question.
const ANSWER: &str = "is-it-the-identity-provider";

/// One run of the six.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    scenario: &'static str,
    role: String,
    label: String,
    /// `None`: accounts of our own.
    double: Option<Double>,
}

pub(in crate::bench) async fn run(args: &AuthAttributionArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let folder = report::new_set(&args.out.folder, "auth-attribution")?;
    let mut finished = Vec::new();
    let parts = parts(&args.idp_latency);
    say(how_long(parts.len(), args.duration));
    for (number, part) in parts.iter().enumerate() {
        say(format_args!("\nrun {} of {}: {}", number + 1, parts.len(), part.role));
        let spec = RunSpec {
            // The same load for all: what differs is who knows the accounts.
            seed: args.seed.seed,
            role: Some(part.role.clone()),
            ..RunSpec::new(scenario(part.scenario, args.rate, args.duration)?, &folder).labelled(&part.label)
        };
        announce(&spec);
        let settings = StackSettings { double: part.double.clone(), ..StackSettings::default() };
        let one =
            with_stack(&settings, operator, async |stack| run::run(&spec, LoadTarget::Own(stack), operator).await);
        let one = one.await?;
        headline::show_briefly(&one)?;
        finished.push(one);
        if operator.wants_stop() {
            break;
        }
    }
    let folders: Vec<_> = finished.iter().map(|it| it.folder.clone()).collect();
    let options = Options { title: Some(QUESTION.to_owned()), ..Options::default() };
    let built = report::build_with(&folders, &options)?;
    say("");
    headline::show_together(&built);
    for finding in built.document.findings().filter(|finding| finding.rule == ANSWER) {
        say(format_args!("answer        {}", finding.sentence));
    }
    headline::show_paths(&built.write(&folder)?);
    say(format_args!("\nDatum {}, result {}", capsule::this_datum(), folder.display()));
    Ok(exit_code(&finished, operator))
}

/// What the whole will take, beside starting and stopping a system for each run.
fn how_long(runs: usize, seconds: u32) -> String {
    let each = u64::from(WARM_UP_SECONDS + seconds);
    let total = each * u64::try_from(runs).unwrap_or(u64::MAX);
    format!("{runs} runs of {each} s, each with a system of its own: {} in all", words(total))
}

/// Minutes where there are several.
fn words(seconds: u64) -> String {
    if seconds < 120 { format!("{seconds} s") } else { format!("about {} minutes", seconds.div_ceil(60)) }
}

fn scenario(name: &str, rate: f64, seconds: u32) -> Result<Scenario, BenchError> {
    let phase = |kind, seconds| PhaseSpec { kind, seconds, name: None, factor: None };
    let mix = loadgen::scenario::open(name)?;
    Ok(Scenario {
        name: format!("{name}-open"),
        question: QUESTION.to_owned(),
        model: Model::Open { arrivals_per_second: rate, max_vus: max_vus(rate), arrivals: Arrivals::Poisson },
        phases: vec![phase(PhaseKind::WarmUp, WARM_UP_SECONDS), phase(PhaseKind::Measure, seconds)],
        ..mix
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate that was typed, bounded")]
fn max_vus(rate: f64) -> u32 {
    (rate * MAX_VUS_SECONDS).ceil().clamp(20.0, 2_000.0) as u32
}

fn parts(idp_latency: &str) -> Vec<Part> {
    let slow = format!("Cognito double, {idp_latency}");
    let providers = [
        ("local accounts", "local", None),
        ("Cognito double, 0 ms", "double-at-once", Some(Double::default())),
        (
            slow.as_str(),
            "double-like-cognito",
            Some(Double { latency: format!("*={idp_latency}"), ..Double::default() }),
        ),
    ];
    let of_provider = |(role, label, double): &(&str, &str, Option<Double>)| {
        MIXES.map(|(scenario, reused)| Part {
            scenario,
            role: format!("{role}{reused}"),
            label: format!("{label}{}", if reused.is_empty() { "" } else { "-reused" }),
            double: double.clone(),
        })
    };
    providers.iter().flat_map(of_provider).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_takes_is_told_before() {
        assert_eq!(how_long(6, 60), "6 runs of 70 s, each with a system of its own: about 7 minutes in all");
        assert_eq!(how_long(6, 5), "6 runs of 15 s, each with a system of its own: 90 s in all");
    }

    #[test]
    fn each_provider_is_loaded_with_logins_and_without() {
        let parts = parts("p50:250ms/p99:1s");
        let runs: Vec<(&str, &str)> = parts.iter().map(|part| (part.scenario, part.role.as_str())).collect();
        assert_eq!(
            runs,
            [
                ("baseline-mix", "local accounts"),
                ("token-reuse", "local accounts, tokens reused"),
                ("baseline-mix", "Cognito double, 0 ms"),
                ("token-reuse", "Cognito double, 0 ms, tokens reused"),
                ("baseline-mix", "Cognito double, p50:250ms/p99:1s"),
                ("token-reuse", "Cognito double, p50:250ms/p99:1s, tokens reused"),
            ]
        );
        assert!(parts[..2].iter().all(|part| part.double.is_none()));
        assert_eq!(parts[2].double, Some(Double::default()));
        assert_eq!(parts[4].double.as_ref().map(|double| double.latency.as_str()), Some("*=p50:250ms/p99:1s"));
        for part in &parts {
            let scenario = scenario(part.scenario, 60.0, 30).expect("a scenario");
            let text = serde_json::to_string(&scenario).expect("JSON");
            assert!(Scenario::parse(&text, part.scenario).is_ok(), "{text}");
        }
        let mut labels: Vec<&str> = parts.iter().map(|part| part.label.as_str()).collect();
        labels.dedup();
        assert_eq!(labels.len(), 6, "each run has a folder of its own");
    }
}
