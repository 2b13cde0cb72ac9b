//! What the driver itself can send: `cargo run --release -p loadgen --example throughput [vus] [seconds] [get-user-only]`.
//!
//! The target is a stub in another process, so that the CPU that is shown is the driver's alone. Requests a second by second of the
//! driver's CPU is what one core sustains.

#[path = "../tests/it/stub.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod stub;

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;

use loadgen::run::{Event, Plan, run};
use loadgen::scenario::{Overrides, open};
use service_kit::clock::SystemClock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        let stub = stub::Stub::start();
        stub.forget_requests();
        println!("{}", stub.url());
        // Until the other end of the pipe is gone.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let number = |index: usize, default| arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (vus, seconds) = (number(0, 50), number(1, 10));
    let scenario = arguments.get(2).map_or("get-user-only", String::as_str);

    let mut target = Command::new(std::env::current_exe().expect("own path"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the stub starts");
    let mut lines = std::io::BufReader::new(target.stdout.take().expect("a pipe"));
    let mut url = String::new();
    std::io::BufRead::read_line(&mut lines, &mut url).expect("the stub's address");

    let overrides = Overrides {
        vus: Some(vus),
        measure_seconds: Some(seconds),
        warm_up_seconds: Some(1),
        ramp_seconds: Some(0),
        think_time_mean_seconds: Some(0.0),
        ..Overrides::default()
    };
    let scenario = overrides.apply(&open(scenario).expect("a scenario")).expect("a valid scenario");
    let plan = Plan::new(scenario, Url::parse(url.trim()).expect("a URL"), 1, "throughput");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(async {
        let (events, mut happening) = mpsc::channel(16);
        let running = tokio::spawn(run(plan, Arc::new(SystemClock), events, CancellationToken::new()));
        while let Some(event) = happening.recv().await {
            if let Event::Interval(interval) = event {
                let cpu = interval.generator.cpu_seconds;
                for (name, endpoint) in &interval.endpoints {
                    println!(
                        "{:>3} s  {name}: {} answers, p50 {:.3} ms, p99 {:.3} ms, {} failed; driver's CPU {cpu:.2} s, {:.0} requests a CPU second",
                        interval.second,
                        endpoint.latency.count(),
                        endpoint.latency.percentile_ms(50.0).unwrap_or_default(),
                        endpoint.latency.percentile_ms(99.0).unwrap_or_default(),
                        endpoint.failed_latency.count(),
                        f64::from(u32::try_from(interval.work.completed).unwrap_or(u32::MAX)) / cpu.max(1e-9),
                    );
                }
            }
        }
        running.await.expect("no panic")
    });
    println!("{outcome:#?}");
    drop(target.stdin.take());
    let _ = target.wait();
}
