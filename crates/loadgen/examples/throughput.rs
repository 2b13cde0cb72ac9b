//! What the driver itself can send, and beside it what k6 can:
//!
//! ```text
//! cargo run --release -p loadgen --example throughput -- [VUS] [SECONDS] [PATH OF K6]
//! ```
//!
//! Both send get-user without think time to a stub in another process, so that the CPU that is shown is the driver's alone:
//! answers by a second of the driver's CPU are what one core sustains. k6 runs the least script that can be written (one
//! request, one check of its status), on one core as well (`GOMAXPROCS=1`); ours checks the body and reads the stages.

mod target;

use std::process::{Command, Stdio};
use std::sync::Arc;

use loadgen::run::{Event, Plan, run};
use loadgen::scenario::{Overrides, open};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use service_kit::clock::SystemClock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use target::Target;

/// What a driver did.
struct Work {
    answers: f64,
    seconds: f64,
    cpu_seconds: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if target::serves(&arguments) {
        return;
    }
    let number = |index: usize, default| arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (vus, seconds) = (number(0, 50), number(1, 10));
    let target = Target::start();

    let native = by_native(&target.url, vus, seconds);
    show("native", &native);
    if let Some(k6) = arguments.get(2) {
        let k6 = by_k6(k6, &target.url, vus, seconds);
        show("k6", &k6);
        let by_cpu = (native.answers / native.cpu_seconds) / (k6.answers / k6.cpu_seconds);
        println!("the native driver has {by_cpu:.1} times k6's answers by a second of CPU");
    }
}

fn show(driver: &str, work: &Work) {
    println!(
        "{driver:>6}: {:.0} answers/s, {:.2} cores, {:.0} answers by a second of CPU",
        work.answers / work.seconds,
        work.cpu_seconds / work.seconds,
        work.answers / work.cpu_seconds,
    );
}

fn by_native(url: &Url, vus: u32, seconds: u32) -> Work {
    let overrides = Overrides {
        vus: Some(vus),
        measure_seconds: Some(seconds),
        warm_up_seconds: Some(1),
        ramp_seconds: Some(0),
        think_time_mean_seconds: Some(0.0),
        ..Overrides::default()
    };
    let scenario = overrides.apply(&open("get-user-only").expect("a scenario")).expect("a valid scenario");
    let plan = Plan::new(scenario, url.clone(), 1, "throughput");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut work = Work { answers: 0.0, seconds: 0.0, cpu_seconds: 0.0 };
    runtime.block_on(async {
        let (events, mut happening) = mpsc::channel(16);
        let running = tokio::spawn(run(plan, Arc::new(SystemClock), events, CancellationToken::new()));
        while let Some(event) = happening.recv().await {
            if let Event::Interval(interval) = event {
                for (name, endpoint) in &interval.endpoints {
                    println!(
                        "{:>3} s  {name}: p50 {:.3} ms, p99 {:.3} ms, {} failed",
                        interval.second,
                        endpoint.latency.percentile_ms(50.0).unwrap_or_default(),
                        endpoint.latency.percentile_ms(99.0).unwrap_or_default(),
                        endpoint.failed_latency.count(),
                    );
                }
                work.answers += f64::from(u32::try_from(interval.work.completed).expect("fewer in a second"));
                work.seconds += 1.0;
                work.cpu_seconds += interval.generator.cpu_seconds;
            }
        }
        running.await.expect("no panic").expect("the run succeeds")
    });
    work
}

fn by_k6(k6: &str, url: &Url, vus: u32, seconds: u32) -> Work {
    let script = format!(
        "import http from 'k6/http'; import {{ check }} from 'k6';\n\
         export const options = {{ vus: {vus}, duration: '{seconds}s', discardResponseBodies: true, systemTags: [] }};\n\
         const params = {{ headers: {{ Authorization: 'Bearer access:somebody' }} }};\n\
         export default () => {{ check(http.get('{url}v1/actors/me', params), {{ ok: (r) => r.status === 200 }}); }};\n\
         export const handleSummary = (d) => ({{ stdout: String(d.metrics.http_reqs.values.count) }});\n",
    );
    let path = std::env::temp_dir().join(format!("datum-throughput-{}.js", std::process::id()));
    std::fs::write(&path, script).expect("the script is written");
    let before = children_cpu_seconds();
    let began = std::time::Instant::now();
    let output = Command::new(k6)
        .args(["run", "--quiet"])
        .arg(&path)
        .env("GOMAXPROCS", "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("k6 starts");
    std::fs::remove_file(&path).expect("the script is removed");
    let answers = String::from_utf8_lossy(&output.stdout);
    Work {
        answers: answers.trim().parse().expect("k6 says how many requests it made"),
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: children_cpu_seconds() - before,
    }
}

/// CPU of the children that have ended.
fn children_cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system counts");
    let microseconds = (usage.user_time() + usage.system_time()).num_microseconds();
    std::time::Duration::from_micros(u64::try_from(microseconds).expect("no negative time")).as_secs_f64()
}
