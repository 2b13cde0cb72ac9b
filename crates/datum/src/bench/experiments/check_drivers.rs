//! `datum bench check drivers`: the same load on the same system by different programs. An instrument that disagrees with two
//! others is wrong.
//!
//! Systems that are not saturated are compared: beyond that, a driver that takes more CPU from the system it measures sees
//! another system. Think times are constant here: with random ones the throughputs of two runs of a minute differ by more than
//! the 3 % that is allowed, by chance alone.

use std::path::Path;
use std::process::{ExitCode, Stdio};

use envelope::run::Run;
use loadgen::scenario::{Distribution, Model, Overrides, Scenario};
use tokio::process::Command;
use url::Url;

use crate::bench::args::CheckDriversArgs;
use crate::bench::drivers::{Driver, K6};
use crate::bench::error::{BenchError, EXIT_INTERRUPTED};
use crate::bench::operator::Operator;
use crate::bench::run::{self, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{Delay, Elsewhere, StackSettings};
use crate::bench::{headline, report};
use crate::terminal::say;

/// How far throughputs may be apart.
const THROUGHPUT_TOLERANCE: f64 = 0.03;
/// How far medians may be apart: the larger of a share and a time.
const MEDIAN_TOLERANCE: f64 = 0.10;
const MEDIAN_TOLERANCE_MS: f64 = 1.0;
/// Of each run; the warm-up then runs with all virtual users.
const RAMP_SECONDS: u32 = 2;
/// The endpoint that wrk can send.
const WRK_SCENARIO: &str = "get-user-only";
const WRK_ENDPOINT: &str = "get-user";
const WRK_PATH: &str = "/v1/actors/me";
/// wrk has no think time. On a system of this machine each answer is delayed instead: else the two would be compared by how much
/// CPU each takes from the system that it measures.
const WRK_DELAY: &str = "app:20ms";

/// A figure by both programs.
#[derive(Debug, Clone, PartialEq)]
struct Pair {
    what: String,
    ours: f64,
    theirs: f64,
    unit: &'static str,
    allowed: f64,
}

impl Pair {
    fn throughput(what: String, ours: f64, theirs: f64) -> Self {
        Self { what, ours, theirs, unit: "req/s", allowed: THROUGHPUT_TOLERANCE * theirs }
    }

    fn median(what: String, ours: f64, theirs: f64) -> Self {
        Self { what, ours, theirs, unit: "ms", allowed: (MEDIAN_TOLERANCE * theirs).max(MEDIAN_TOLERANCE_MS) }
    }

    fn agrees(&self) -> bool {
        (self.ours - self.theirs).abs() <= self.allowed
    }
}

pub(in crate::bench) async fn run(args: &CheckDriversArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let elsewhere = Elsewhere::of(&args.system.elsewhere)?;
    let k6 = K6::find(&args.k6).await?.trusting(elsewhere.as_ref().and_then(Elsewhere::ca))?;
    let settings = StackSettings::new(&args.system)?;
    if let Some(wrk) = &args.wrk {
        find_wrk(wrk).await?;
    }
    let folder = report::new_set(&args.out.folder, "drivers")?;
    let mut pairs = if let Some(elsewhere) = &elsewhere {
        with_k6(args, &k6, &folder, LoadTarget::Elsewhere(elsewhere), operator).await?
    } else {
        let work = async |stack: &mut _| with_k6(args, &k6, &folder, LoadTarget::Own(stack), operator).await;
        with_stack(&settings, operator, work).await?
    };
    if let Some(wrk) = args.wrk.as_ref().filter(|_| !operator.wants_stop()) {
        pairs.extend(if let Some(elsewhere) = &elsewhere {
            with_wrk(args, wrk, &folder, LoadTarget::Elsewhere(elsewhere), operator).await?
        } else {
            let delay = Some(Delay::Stage(WRK_DELAY.to_owned()));
            let settings = StackSettings { delay, ..settings };
            let work = async |stack: &mut _| with_wrk(args, wrk, &folder, LoadTarget::Own(stack), operator).await;
            with_stack(&settings, operator, work).await?
        });
    }
    if operator.wants_stop() {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    say("");
    say(table(&pairs));
    say(format_args!("\nresults in {}", folder.display()));
    Ok(if pairs.iter().all(Pair::agrees) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn with_k6(
    args: &CheckDriversArgs,
    k6: &K6,
    folder: &Path,
    mut target: LoadTarget<'_>,
    operator: &Operator,
) -> Result<Vec<Pair>, BenchError> {
    let mut measured = Vec::new();
    for driver in [Driver::Native, Driver::K6(k6.clone())] {
        say(format_args!("\n{} by {}", args.scenario, driver.facts().name));
        let spec = spec(&args.scenario, args.think_time, driver, args, folder)?;
        let finished = run::run(&spec, target.again(), operator).await?;
        measured.push(report::read(&finished.folder)?);
        if operator.wants_stop() {
            return Ok(Vec::new());
        }
    }
    Ok(of_runs(&measured[0], &measured[1]))
}

async fn with_wrk(
    args: &CheckDriversArgs,
    wrk: &Path,
    folder: &Path,
    mut target: LoadTarget<'_>,
    operator: &Operator,
) -> Result<Vec<Pair>, BenchError> {
    say(format_args!("\n{WRK_SCENARIO} without think time by native"));
    let spec = spec(WRK_SCENARIO, 0.0, Driver::Native, args, folder)?;
    let finished = run::run(&spec, target.again(), operator).await?;
    let ours = report::read(&finished.folder)?;
    if operator.wants_stop() {
        return Ok(Vec::new());
    }
    say("by wrk");
    let url = target.url()?;
    let token = access_token(&url, args.system.elsewhere.target_ca.as_deref()).await?;
    let theirs = run_wrk(wrk, &url, &token, args.vus, args.duration).await?;
    Ok(of_wrk(&ours, &theirs))
}

fn spec(
    name: &str,
    think_time_seconds: f64,
    driver: Driver,
    args: &CheckDriversArgs,
    folder: &Path,
) -> Result<RunSpec, BenchError> {
    Ok(RunSpec {
        label: Some(driver.facts().name),
        driver,
        users: args.users,
        ..RunSpec::new(scenario(name, think_time_seconds, args)?, folder)
    })
}

/// The scenario with the check's users, phases and constant think time.
fn scenario(name: &str, think_time_seconds: f64, args: &CheckDriversArgs) -> Result<Scenario, BenchError> {
    let overrides = Overrides {
        vus: Some(args.vus),
        think_time_mean_seconds: Some(think_time_seconds),
        ramp_seconds: Some(RAMP_SECONDS),
        warm_up_seconds: Some(args.warm_up),
        measure_seconds: Some(args.duration),
        ..Overrides::default()
    };
    let mut scenario = overrides.apply(&loadgen::scenario::open(name)?)?;
    if let Model::Closed { think_time, .. } = &mut scenario.model {
        think_time.distribution = Distribution::Constant;
    }
    Ok(scenario)
}

fn of_runs(native: &Run, k6: &Run) -> Vec<Pair> {
    let mut pairs = Vec::new();
    if let (Some(ours), Some(theirs)) = (native.throughput, k6.throughput) {
        pairs.push(Pair::throughput("native and k6: throughput".to_owned(), ours, theirs));
    }
    for (name, endpoint) in &native.endpoints {
        let theirs = k6.endpoints.get(name).and_then(|endpoint| endpoint.latency.p50);
        if let (Some(ours), Some(theirs)) = (endpoint.latency.p50, theirs) {
            pairs.push(Pair::median(format!("native and k6: median of {name}"), ours, theirs));
        }
    }
    pairs
}

fn of_wrk(native: &Run, wrk: &WrkFigures) -> Vec<Pair> {
    let mut pairs = Vec::new();
    if let Some(ours) = native.throughput {
        pairs.push(Pair::throughput("native and wrk: throughput".to_owned(), ours, wrk.requests_per_second));
    }
    if let Some(ours) = native.endpoints.get(WRK_ENDPOINT).and_then(|endpoint| endpoint.latency.p50) {
        pairs.push(Pair::median(format!("native and wrk: median of {WRK_ENDPOINT}"), ours, wrk.median_ms));
    }
    pairs
}

fn table(pairs: &[Pair]) -> String {
    let rows = pairs.iter().map(|pair| {
        vec![
            pair.what.clone(),
            format!("{:.2} {}", pair.ours, pair.unit),
            format!("{:.2} {}", pair.theirs, pair.unit),
            format!("{:+.2} %", (pair.ours / pair.theirs - 1.0) * 100.0),
            format!("± {:.2} {}", pair.allowed, pair.unit),
            if pair.agrees() { "agree" } else { "DISAGREE" }.to_owned(),
        ]
    });
    headline::table(["", "NATIVE", "OTHER", "DIFFERENCE", "ALLOWED", ""], rows)
}

/// What wrk says at its end.
#[derive(Debug, Clone, PartialEq)]
struct WrkFigures {
    requests_per_second: f64,
    median_ms: f64,
    /// Answers other than 2xx and 3xx.
    failed: u64,
}

async fn find_wrk(program: &Path) -> Result<(), BenchError> {
    // It has no option for its version that ends with 0; that it can be started is what matters.
    let started = Command::new(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    started.map(|_| ()).map_err(|error| {
        BenchError::Usage(format!("cannot run wrk as `{}`: {error}. Install it, or leave --wrk out", program.display()))
    })
}

async fn run_wrk(
    program: &Path,
    url: &Url,
    token: &str,
    connections: u32,
    seconds: u32,
) -> Result<WrkFigures, BenchError> {
    let url = url.join(WRK_PATH).map_err(|error| BenchError::Usage(error.to_string()))?;
    let output = Command::new(program)
        .args(["--threads", "1", "--latency"])
        .args(["--connections", &connections.to_string(), "--duration", &format!("{seconds}s")])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .arg(url.as_str())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| BenchError::Program(format!("wrk: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures = parse_wrk(&text)
        .ok_or_else(|| BenchError::Program(format!("wrk said:\n{text}{}", String::from_utf8_lossy(&output.stderr))))?;
    if figures.failed > 0 {
        return Err(BenchError::Program(format!("wrk got {} wrong answers", figures.failed)));
    }
    Ok(figures)
}

fn parse_wrk(text: &str) -> Option<WrkFigures> {
    let after = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    Some(WrkFigures {
        requests_per_second: after("Requests/sec:")?.parse().ok()?,
        median_ms: parse_wrk_time(after("50%")?)?,
        failed: after("Non-2xx or 3xx responses:").map_or(Some(0), |count| count.parse().ok())?,
    })
}

/// `812.00us`, `1.23ms`, `1.02s`.
fn parse_wrk_time(text: &str) -> Option<f64> {
    let (number, factor) = if let Some(number) = text.strip_suffix("us") {
        (number, 1e-3)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1.0)
    } else {
        (text.strip_suffix('s')?, 1e3)
    };
    number.parse::<f64>().ok().map(|value| value * factor)
}

/// An account for wrk, and its token.
async fn access_token(url: &Url, target_ca: Option<&Path>) -> Result<String, BenchError> {
    let failed = |error: reqwest::Error| BenchError::Program(format!("getting a token for wrk: {error}"));
    let unique = uuid::Uuid::new_v4().simple();
    let body = serde_json::json!({
        "email": format!("wrk.{unique}@load.datum.example"),
        "password": format!("password for wrk {unique}"),
    });
    let mut client = reqwest::Client::builder();
    if let Some(file) = target_ca {
        let pem = std::fs::read(file).map_err(BenchError::io(file))?;
        let authorities = reqwest::Certificate::from_pem_bundle(&pem).map_err(failed)?;
        client = client.tls_certs_only(authorities);
    }
    let client = client.build().map_err(failed)?;
    let path = |path: &str| url.join(path).map_err(|error| BenchError::Usage(error.to_string()));
    for wanted in ["/v1/auth/register", "/v1/auth/login"] {
        let answer = client.post(path(wanted)?).json(&body).send().await.map_err(failed)?.error_for_status();
        let answer: serde_json::Value = answer.map_err(failed)?.json().await.map_err(failed)?;
        if let Some(token) = answer["access_token"].as_str() {
            return Ok(token.to_owned());
        }
    }
    Err(BenchError::Program("getting a token for wrk: the answer to the login has none".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "Running 2s test @ http://127.0.0.1:1/v1/actors/me\n  1 threads and 4 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.79ms    1.20ms  20.11ms   88.80%\n    Req/Sec     2.40k   305.22     2.90k    70.00%\n  Latency Distribution\n     50%    1.52ms\n     75%    2.01ms\n     90%    2.98ms\n     99%    6.51ms\n  4781 requests in 2.00s, 3.29MB read\nRequests/sec:   2389.11\nTransfer/sec:      1.64MB\n";

    #[test]
    fn wrk_is_understood() {
        let figures = parse_wrk(WRK).expect("figures");
        assert_eq!(figures, WrkFigures { requests_per_second: 2389.11, median_ms: 1.52, failed: 0 });
        let failing = format!("{WRK}\n  Non-2xx or 3xx responses: 17\n");
        assert_eq!(parse_wrk(&failing).map(|it| it.failed), Some(17));
        assert_eq!(parse_wrk("unable to connect"), None);
        for (text, ms) in [("812.00us", 0.812), ("1.23ms", 1.23), ("1.02s", 1020.0)] {
            assert!((parse_wrk_time(text).expect(text) - ms).abs() < 1e-9);
        }
    }

    #[test]
    fn throughputs_within_three_per_cent_and_medians_within_ten_or_a_millisecond_agree() {
        let throughput = |ours| Pair::throughput(String::new(), ours, 100.0).agrees();
        assert!(throughput(102.9) && throughput(97.1) && !throughput(103.1) && !throughput(96.9));
        let median = |ours, theirs| Pair::median(String::new(), ours, theirs).agrees();
        assert!(median(2.9, 2.0) && !median(3.1, 2.0), "a millisecond where that is more");
        assert!(median(109.0, 100.0) && !median(111.0, 100.0));
        assert!(table(&[Pair::median("x".into(), 3.1, 2.0)]).contains("DISAGREE"));
    }
}
