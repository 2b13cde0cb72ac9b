//! What can be typed after `datum bench`.
#![allow(clippy::doc_markdown, reason = "clap prints these comments as help")]

use std::num::IntErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{RangedI64ValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Subcommand, ValueEnum};
use loadgen::scenario::MAX_VUS;
use stack::cpu_quota::TaskCpu;
use url::Url;

use crate::cli::{Identity, TasksFor, parse_tasks, parse_variable};

/// Where results go when nobody says.
const DEFAULT_OUT: &str = "results";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) experiment: Option<Experiment>,
    /// Name of a scenario (--list shows them) or path of a scenario's file
    #[arg(required_unless_present = "list")]
    pub(crate) scenario: Option<String>,
    /// List the scenarios, each with the question that it answers
    #[arg(long, exclusive = true)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
    /// Do it so many times, each on a new system
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Identical runs: how far do they differ? The noise floor for `datum compare`
    Aa(AaArgs),
    /// The highest arrival rate that keeps the objectives, the knee, and the operating points
    Capacity(CapacityArgs),
    /// The performance envelope of the reference: two exploratory and three steady runs at 200 virtual users
    Phase4(Phase4Args),
    /// Is it the identity provider? The same mix with accounts of its own and with the Cognito double
    AuthAttribution(AuthAttributionArgs),
    /// Delay one stage after the other and see whether the report finds it
    Selftest(SelftestArgs),
    /// Check the instrument itself
    #[command(subcommand)]
    Check(Check),
}

/// What load.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LoadArgs {
    /// Virtual users (closed model)
    #[arg(long, value_name = "N", value_parser = virtual_users(1))]
    pub(crate) vus: Option<u32>,
    /// Arrivals a second (open model)
    #[arg(long, value_name = "R", value_parser = parse_rate, conflicts_with = "vus")]
    pub(crate) rate: Option<f64>,
    /// Length of the measured phase, warm-up and ramps not among it: 90, 90s, 3m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) duration: Option<u32>,
    /// Length of the warm-up at full load, which is discarded; 0 for none
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) warm_up: Option<u32>,
    /// Length of each ramp, up before the warm-up and, where the scenario has one, down at the end; 0 for none
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) ramp: Option<u32>,
    /// Mean think time in seconds (closed model); 0 for none
    #[arg(long, value_name = "SECONDS", value_parser = parse_think_time)]
    pub(crate) think_time: Option<f64>,
    /// Users put into the database before the run; a system elsewhere must have them already (`datum populate`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: Option<u64>,
    #[command(flatten)]
    pub(crate) seed: SeedArg,
}

/// What random choices follow from.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct SeedArg {
    /// Seed of all random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Default for SeedArg {
    fn default() -> Self {
        Self { seed: 1 }
    }
}

/// Who sends the requests.
#[derive(Debug, Clone, Args)]
pub(crate) struct DriverArgs {
    /// Who sends the requests
    #[arg(long, value_enum, default_value_t = DriverName::Native)]
    pub(crate) driver: DriverName,
    /// The k6 program
    #[arg(long, value_name = "PATH", default_value = "k6")]
    pub(crate) k6: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriverName {
    /// Datum's own
    Native,
    /// k6, v1 or v2
    K6,
}

/// What is loaded.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SystemArgs {
    #[command(flatten)]
    pub(crate) elsewhere: TargetArgs,
    /// Tasks per service: a number for all, or SERVICE=NUMBER for one; may be repeated and mixed [default: 1]
    #[arg(
        long, value_name = "N | SERVICE=N", value_delimiter = ',', value_parser = parse_tasks, conflicts_with = "target"
    )]
    pub(crate) tasks: Vec<TasksFor>,
    #[command(flatten)]
    pub(crate) size: TaskSizeArgs,
    /// Use this database (an administrator's URL) instead of an own PostgreSQL. What the run writes stays in it
    #[arg(long, value_name = "URL", conflicts_with = "target")]
    pub(crate) database_url: Option<String>,
    #[command(flatten)]
    pub(crate) accounts: AccountsArgs,
}

/// Who keeps the accounts of an own system.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AccountsArgs {
    /// Who keeps users and passwords, as for `datum up`: cognito is a user pool that COGNITO_* name, else the double
    #[arg(long, value_enum, default_value_t = Identity::Local, conflicts_with = "target")]
    pub(crate) identity: Identity,
    /// Latency of the double's calls: InitiateAuth=400ms,SignUp=p50:120ms/p99:400ms [default: COGNITO_DOUBLE_LATENCY]
    #[arg(long, value_name = "TIMES", value_parser = parse_latencies, requires = "identity")]
    pub(crate) cognito_latency: Option<String>,
    /// Quotas of the double: default, or UserAuthentication=120,user=10 [default: COGNITO_DOUBLE_QUOTAS]
    #[arg(long, value_name = "QUOTAS", value_parser = parse_quotas, requires = "identity")]
    pub(crate) cognito_quotas: Option<String>,
}

/// A system that runs already.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TargetArgs {
    /// Load a system that runs already, instead of one of this machine that is started for the run
    #[arg(long, value_name = "URL", value_parser = TargetParser)]
    pub(crate) target: Option<Url>,
    /// Certificates (PEM) that an https target's must be signed by, instead of those that the machine trusts
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(crate) target_ca: Option<PathBuf>,
}

/// What each task of an own system has.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TaskSizeArgs {
    /// CPU of each task in Fargate's units (256 = a quarter of a vCPU); unset: the whole machine
    #[arg(long, value_name = "UNITS", conflicts_with = "target")]
    pub(crate) task_cpu: Option<TaskCpu>,
    /// Most database connections of a task (DB_POOL_MAX)
    #[arg(
        long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "target"
    )]
    pub(crate) pool_max: Option<u32>,
    /// Database connections that a task keeps (DB_POOL_MIN)
    #[arg(
        long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000), conflicts_with = "target"
    )]
    pub(crate) pool_min: Option<u32>,
    /// Pass a variable to every task; may be repeated (`datum task auth --help` lists them)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable, conflicts_with = "target")]
    pub(crate) set: Vec<(String, String)>,
}

/// What is kept.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ResultArgs {
    #[command(flatten)]
    pub(crate) out: OutArg,
    /// What the run is for, for reports of several: `steady state`, `exploratory`, …
    #[arg(long, value_name = "TEXT")]
    pub(crate) role: Option<String>,
    /// Ends the name of the result's folder: letters, digits, `.`, `_` and `-`
    #[arg(long, value_name = "NAME", value_parser = parse_label)]
    pub(crate) label: Option<String>,
}

/// Where it is kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutArg {
    /// Folder of the results
    #[arg(long = "out", id = "out", value_name = "FOLDER", default_value = DEFAULT_OUT)]
    pub(crate) folder: PathBuf,
}

impl Default for OutArg {
    fn default() -> Self {
        Self { folder: DEFAULT_OUT.into() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AaArgs {
    /// Name of a scenario or path of a scenario's file
    pub(crate) scenario: String,
    /// How many identical runs; below three nothing can be said
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..=100))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    #[command(flatten)]
    pub(crate) result: ResultArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    /// Scenario with an open model
    #[arg(long, value_name = "NAME | FILE", default_value = "sls")]
    pub(crate) scenario: String,
    /// What must hold: `p95<250ms`, `errors<0.1%`, `login.p99<1s`; may be repeated, all must hold
    #[arg(long, value_name = "OBJECTIVE", required = true)]
    pub(crate) slo: Vec<String>,
    /// Task counts: one number, or 1..N for the scalability law over all of them
    #[arg(long, value_name = "N | FROM..TO", value_parser = parse_task_range, default_value = "1")]
    pub(crate) tasks: TaskRange,
    /// The rate to begin with, in arrivals a second
    #[arg(long, value_name = "R", value_parser = parse_rate, default_value = "20")]
    pub(crate) from: f64,
    /// Never try more than this
    #[arg(long, value_name = "R", value_parser = parse_rate, default_value = "20000")]
    pub(crate) to: f64,
    /// How exactly the capacity is wanted, in per cent of it
    #[arg(long, value_name = "PERCENT", value_parser = parse_rate, default_value = "5")]
    pub(crate) precision: f64,
    /// How often the rate that was found must hold once more
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(crate) confirm: u32,
    /// Length of the measured phase of each trial
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "30s")]
    pub(crate) duration: u32,
    /// Length of the warm-up of each trial
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "10s")]
    pub(crate) warm_up: u32,
    /// Users put into the database before
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: Option<u64>,
    #[command(flatten)]
    pub(crate) seed: SeedArg,
    #[command(flatten)]
    pub(crate) size: TaskSizeArgs,
    #[command(flatten)]
    pub(crate) elsewhere: TargetArgs,
    #[command(flatten)]
    pub(crate) out: OutArg,
}

/// Task counts from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskRange {
    pub(crate) from: u16,
    pub(crate) to: u16,
}

#[derive(Debug, Args)]
pub(crate) struct Phase4Args {
    /// The same in about four minutes: shorter runs, less certain
    #[arg(long)]
    pub(crate) short: bool,
    /// Virtual users
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = virtual_users(2))]
    pub(crate) vus: u32,
    /// CPU of each task in Fargate's units
    #[arg(long, value_name = "UNITS", default_value = "512")]
    pub(crate) task_cpu: TaskCpu,
    /// Pool of the first exploratory run: most connections of a task and those that it keeps
    #[arg(long, value_name = "MAX/MIN", value_parser = parse_pool, default_value = "30/10")]
    pub(crate) first_pool: PoolArg,
    /// Pool of the second exploratory run, after tuning
    #[arg(long, value_name = "MAX/MIN", value_parser = parse_pool, default_value = "20/10")]
    pub(crate) tuned_pool: PoolArg,
    /// Pool of the three steady runs
    #[arg(long, value_name = "MAX/MIN", value_parser = parse_pool, default_value = "14/5")]
    pub(crate) steady_pool: PoolArg,
    #[command(flatten)]
    pub(crate) seed: SeedArg,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
    #[command(flatten)]
    pub(crate) out: OutArg,
}

/// A pool's size as it is typed: `14/5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolArg {
    pub(crate) max: u32,
    pub(crate) min: u32,
}

#[derive(Debug, Args)]
pub(crate) struct AuthAttributionArgs {
    /// How long the slow provider's calls take: 300ms, or a lognormal distribution by two percentiles
    #[arg(long, value_name = "TIME", default_value = "p50:250ms/p99:1000ms", value_parser = parse_latency)]
    pub(crate) idp_latency: String,
    /// Arrivals a second
    #[arg(long, value_name = "R", value_parser = parse_rate, default_value = "60")]
    pub(crate) rate: f64,
    /// Length of each measured phase; there are six, each after 10 s of warm-up
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "60s")]
    pub(crate) duration: u32,
    #[command(flatten)]
    pub(crate) seed: SeedArg,
    #[command(flatten)]
    pub(crate) out: OutArg,
}

#[derive(Debug, Args)]
pub(crate) struct SelftestArgs {
    /// The delay that is added to each stage in turn
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(10..=1900))]
    pub(crate) delay_ms: u32,
    /// Only this stage; may be repeated
    #[arg(long, value_name = "STAGE", value_parser = clap::builder::PossibleValuesParser::new(crate::bench::STAGES))]
    pub(crate) stage: Vec<String>,
    /// Length of each measured phase
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "15s")]
    pub(crate) duration: u32,
    #[command(flatten)]
    pub(crate) out: OutArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Check {
    /// The same load by the native driver, by k6 and (get-user-only) by wrk: do they agree?
    Drivers(Box<CheckDriversArgs>),
    /// Freeze a task for a second: does the open model show it, and does the closed one warn?
    Freeze(CheckFreezeArgs),
    /// Delay the identity provider and exceed its quota: is each found where it is, and nowhere else?
    Identity(CheckIdentityArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckDriversArgs {
    /// Name of a scenario or path of a scenario's file
    #[arg(default_value = "baseline-mix")]
    pub(crate) scenario: String,
    /// Virtual users
    #[arg(long, value_name = "N", value_parser = virtual_users(1), default_value_t = 20)]
    pub(crate) vus: u32,
    /// Think time in seconds, the same after each request
    #[arg(long, value_name = "SECONDS", value_parser = parse_think_time, default_value = "0.2")]
    pub(crate) think_time: f64,
    /// Length of each measured phase
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "60s")]
    pub(crate) duration: u32,
    /// Length of each warm-up
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "10s")]
    pub(crate) warm_up: u32,
    /// The k6 program
    #[arg(long, value_name = "PATH", default_value = "k6")]
    pub(crate) k6: PathBuf,
    /// Users put into the database before, for a scenario that acts as them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: Option<u64>,
    /// Compare get-user-only with wrk as well, with this program
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "wrk")]
    pub(crate) wrk: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) system: SystemArgs,
    #[command(flatten)]
    pub(crate) out: OutArg,
}

#[derive(Debug, Args)]
pub(crate) struct CheckFreezeArgs {
    /// Arrivals a second of the open run
    #[arg(long, value_name = "R", value_parser = parse_rate, default_value = "100")]
    pub(crate) rate: f64,
    /// Length of each measured phase
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "20s")]
    pub(crate) duration: u32,
    #[command(flatten)]
    pub(crate) out: OutArg,
}

#[derive(Debug, Args)]
pub(crate) struct CheckIdentityArgs {
    /// The delay that is added to the provider's logins
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 400, value_parser = clap::value_parser!(u32).range(50..=2_000))]
    pub(crate) delay_ms: u32,
    /// Length of each measured phase of the delay's part
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "30s")]
    pub(crate) duration: u32,
    #[command(flatten)]
    pub(crate) out: OutArg,
}

/// Latencies of the double's calls, in its own words.
fn parse_latencies(text: &str) -> Result<String, String> {
    text.parse::<stack::cognito::Latencies>().map(|_| text.to_owned())
}

/// Quotas of the double, in its own words.
fn parse_quotas(text: &str) -> Result<String, String> {
    text.parse::<stack::cognito::Quotas>().map(|_| text.to_owned())
}

/// A latency of the double, in its own words.
fn parse_latency(text: &str) -> Result<String, String> {
    text.parse::<stack::cognito::Latency>().map(|_| text.to_owned())
}

/// Whole seconds, with or without a unit: `90`, `90s`, `3m`, `1h`.
fn parse_seconds(text: &str) -> Result<u32, String> {
    let wrong = || format!("`{text}` is no time: write 90, 90s, 3m or 1h");
    let too_long = || format!("`{text}` is longer than a day");
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(wrong()),
    };
    // Digits alone can only be wrong by being too many.
    let number = number.parse::<u32>();
    let number =
        number.map_err(|error| if matches!(error.kind(), IntErrorKind::PosOverflow) { too_long() } else { wrong() })?;
    let seconds = number.checked_mul(factor).filter(|seconds| Duration::from_secs(u64::from(*seconds)) <= LONGEST);
    seconds.ok_or_else(too_long)
}

/// The longest phase.
const LONGEST: Duration = Duration::from_hours(24);

/// As many virtual users as one driver can have.
fn virtual_users(least: i64) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(least..=i64::from(MAX_VUS))
}

/// The address of a target. A refusal does not repeat it, as clap's own would: somebody's password may be in it.
#[derive(Debug, Clone, Copy)]
struct TargetParser;

impl TypedValueParser for TargetParser {
    type Value = Url;

    fn parse_ref(
        &self,
        _: &clap::Command,
        _: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let target = value.to_str().ok_or_else(|| "it is no text".to_owned()).and_then(parse_target);
        target.map_err(|reason| {
            clap::Error::raw(
                ErrorKind::ValueValidation,
                format!(
                    "the address after --target cannot be loaded: {reason}\n\nFor more information, try '--help'.\n"
                ),
            )
        })
    }
}

fn parse_target(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    loadgen::check_target(&url).map(|()| url)
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| format!("`{text}` is no number above 0"))
}

fn parse_think_time(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.0..=3_600.0).contains(seconds));
    seconds.ok_or_else(|| format!("`{text}` is no number of seconds from 0 to 3600"))
}

fn parse_label(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=64).contains(&text.len()) && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err("1 to 64 letters, digits, `.`, `_` or `-`".to_owned())
}

fn parse_task_range(text: &str) -> Result<TaskRange, String> {
    let wrong =
        || format!("`{text}` is no number of tasks from 1 to {0} and no range such as 1..4", stack::options::MAX_TASKS);
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (from.parse().map_err(|_| wrong())?, to.trim_start_matches('=').parse().map_err(|_| wrong())?);
    if 1 <= from && from <= to && to <= stack::options::MAX_TASKS {
        return Ok(TaskRange { from, to });
    }
    Err(wrong())
}

fn parse_pool(text: &str) -> Result<PoolArg, String> {
    let wrong = || format!("`{text}` is no pool: write MAX/MIN such as 14/5, with MIN not above MAX");
    let (max, min) = text.split_once('/').ok_or_else(wrong)?;
    let (max, min) = (max.parse().map_err(|_| wrong())?, min.parse().map_err(|_| wrong())?);
    if (1..=1_000).contains(&max) && min <= max { Ok(PoolArg { max, min }) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn bench(arguments: &[&str]) -> Result<BenchArgs, clap::Error> {
        let cli = Cli::try_parse_from(["datum", "bench"].iter().chain(arguments))?;
        match cli.command {
            Command::Bench(bench) => Ok(*bench),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_scenario_or_an_experiment_is_needed() {
        assert!(bench(&[]).is_err());
        assert!(bench(&["--list"]).expect("valid").list);
        assert!(bench(&["smoke", "--list"]).is_err());
        let smoke = bench(&["smoke", "--vus", "3", "--duration", "2m", "--warm-up", "0"]).expect("valid");
        assert_eq!(smoke.scenario.as_deref(), Some("smoke"));
        assert_eq!((smoke.load.vus, smoke.load.duration, smoke.load.warm_up), (Some(3), Some(120), Some(0)));
        assert!(matches!(bench(&["phase4", "--short"]).expect("valid").experiment, Some(Experiment::Phase4(_))));
        assert!(matches!(
            bench(&["check", "freeze"]).expect("valid").experiment,
            Some(Experiment::Check(Check::Freeze(_)))
        ));
    }

    #[test]
    fn what_belongs_to_an_own_system_is_refused_with_one_elsewhere() {
        assert!(bench(&["smoke", "--target", "http://example.com"]).is_ok());
        for option in [["--tasks", "2"], ["--task-cpu", "256"], ["--set", "A=b"], ["--pool-max", "3"]] {
            let arguments = [&["smoke", "--target", "http://example.com"][..], &option].concat();
            assert!(bench(&arguments).is_err(), "{option:?} was accepted");
        }
        // It has the tasks that it has, and that is what the number says.
        let capacity = ["capacity", "--slo", "p95<250ms", "--target", "http://example.com"];
        assert!(bench(&[&capacity[..], &["--tasks", "2"]].concat()).is_ok());
        assert!(bench(&[&capacity[..], &["--pool-min", "2"]].concat()).is_err());
    }

    #[test]
    fn a_target_is_checked_when_it_is_typed_and_its_password_is_not_repeated() {
        let refusal = |target: &str| bench(&["smoke", "--target", target]).expect_err(target).to_string();
        for (target, reason) in [
            ("http://me:hunter2@example.com", "no credentials"),
            ("http://me:hunter2@example.com:99999", "port"),
            ("ftp://example.com", "http or https"),
            ("http://example.com/?token=hunter2", "query"),
            ("example.com", "relative URL"),
        ] {
            let refusal = refusal(target);
            assert!(refusal.contains(reason) && refusal.contains("--target"), "{target}: {refusal}");
            assert!(!refusal.contains("hunter2"), "{refusal}");
        }
        assert!(bench(&["smoke", "--target-ca", "ca.pem"]).is_err(), "of what target?");
        assert!(bench(&["smoke", "--target", "https://example.com", "--target-ca", "ca.pem"]).is_ok());
    }

    #[test]
    fn a_refusal_says_what_is_possible() {
        let vus = bench(&["smoke", "--vus", "50001"]).expect_err("refused").to_string();
        assert!(vus.contains("1..=50000"), "{vus}");
        for text in ["25h", "99999999999", "99999999999h", "4294967295m"] {
            assert!(parse_seconds(text).expect_err(text).contains("longer than a day"), "{text}");
        }
        assert!(parse_seconds("h").expect_err("no number").contains("is no time"));
    }

    #[test]
    fn numbers_are_checked_when_they_are_typed() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("3m", 180), ("24h", 86_400), ("0", 0)] {
            assert_eq!(parse_seconds(text), Ok(seconds));
        }
        for text in ["", "s", "-1", "1.5m", "3 m", "25h", "99999999999", "3d"] {
            assert!(parse_seconds(text).is_err(), "{text} was accepted");
        }
        for wrong in [["--vus", "0"], ["--rate", "0"], ["--rate", "inf"], ["--think-time", "-1"], ["--runs", "0"]] {
            assert!(bench(&[&["smoke"][..], &wrong].concat()).is_err(), "{wrong:?} was accepted");
        }
        assert!(bench(&["smoke", "--vus", "2", "--rate", "3"]).is_err(), "two models at once");
        assert!(bench(&["smoke", "--label", "../x"]).is_err());
    }

    #[test]
    fn task_ranges_and_pools() {
        assert_eq!(parse_task_range("3"), Ok(TaskRange { from: 3, to: 3 }));
        assert_eq!(parse_task_range("1..4"), Ok(TaskRange { from: 1, to: 4 }));
        for text in ["0", "4..1", "1..", "..", "1..65", "a..b"] {
            assert!(parse_task_range(text).is_err(), "{text} was accepted");
        }
        assert_eq!(parse_pool("14/5"), Ok(PoolArg { max: 14, min: 5 }));
        for text in ["14", "5/14", "0/0", "/", "a/b"] {
            assert!(parse_pool(text).is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn a_capacity_needs_objectives() {
        assert!(bench(&["capacity"]).is_err());
        let Some(Experiment::Capacity(capacity)) =
            bench(&["capacity", "--slo", "p95<250ms", "--slo", "errors<0.1%", "--tasks", "1..3"])
                .expect("valid")
                .experiment
        else {
            panic!("another experiment")
        };
        assert_eq!((capacity.slo.len(), capacity.tasks), (2, TaskRange { from: 1, to: 3 }));
    }
}
