//! That a long run needs no more memory than a short one, and how large its record becomes:
//!
//! ```text
//! cargo run --release -p loadgen --example constant_memory -- [ARRIVALS A SECOND] [SECONDS]
//! ```
//!
//! The open scenario `sls` against a stub in another process; once in ten seconds the driver's resident memory, what it sent
//! and how late, its CPU, and the bytes that a second of the record takes.

mod target;

use std::sync::Arc;

use loadgen::dataset::Dataset;
use loadgen::run::{Event, Plan, run};
use loadgen::scenario::{Overrides, open};
use service_kit::clock::SystemClock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use target::Target;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if target::serves(&arguments) {
        return;
    }
    let rate = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(8_000.0);
    let seconds = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(3_600);
    let target = Target::start();
    let overrides =
        Overrides { arrivals_per_second: Some(rate), measure_seconds: Some(seconds), ..Overrides::default() };
    let scenario = overrides.apply(&open("sls").expect("a scenario")).expect("a valid scenario");
    let mut plan = Plan::new(scenario, target.url.clone(), 1, "constant-memory");
    plan.dataset = Some(Dataset { users: 1_000_000, seed: 1, distinct_hashes: 1 });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(async {
        let (events, mut happening) = mpsc::channel(16);
        let running = tokio::spawn(run(plan, Arc::new(SystemClock), events, CancellationToken::new()));
        let mut record = 0;
        while let Some(event) = happening.recv().await {
            let Event::Interval(interval) = event else { continue };
            record += serde_json::to_vec(&interval).expect("a record").len();
            if interval.second % 10 == 0 {
                println!(
                    "{:>5} s  {:>6} completed, {} dropped, lateness p99 {:.3} ms, {:.2} cores, {:>7.1} MiB resident, {:.1} MiB of record",
                    interval.second,
                    interval.work.completed,
                    interval.work.dropped,
                    interval.generator.lateness.percentile_ms(99.0).unwrap_or_default(),
                    interval.generator.cpu_seconds,
                    resident_mib(),
                    mib(record),
                );
            }
        }
        running.await.expect("no panic")
    });
    println!("{outcome:#?}");
}

/// Resident memory of this process, in MiB; Linux only.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: usize = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default();
    mib(kib * 1_024)
}

fn mib(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes / 1_024).unwrap_or(u32::MAX)) / 1_024.0
}
