//! `datum bench phase4`: the runs of the reference envelope, in its roles.
//!
//! Two exploratory runs with one task per service, the second after pool tuning; three steady ones with two tasks and the
//! reduced pools. Each is on a new system, so that none inherits the caches, the rows or the files of another.
//!
//! The reference ran on tasks whose CPU was small enough for one to saturate and two not to. Here a quota does the same. Why it is
//! 512 units by default: of the mix at 200 users some 24 requests a second hash a password, at 19 to 25 ms of CPU each, which is
//! about half a core. One task of 512 units has just that: measured with `--short` on two quiet cores, it used 96 % of its quota
//! and its p95 was 224 to 233 ms, against 23 to 29 ms with two tasks (on busy cores 1 s against 35 ms, and 14 % less throughput).
//! With 256 units throughput and mean latency come close to the reference's own (197 and 227 requests a second, 121 and 60 ms),
//! but two tasks saturate as well. Faster or slower cores move this: `--task-cpu`.

use std::process::ExitCode;

use envelope::analysis::{EXPLORATORY, STEADY_STATE};
use loadgen::scenario::{Overrides, Scenario};

use super::scenario::{announce, exit_code};
use crate::bench::args::{Phase4Args, PoolArg, SystemArgs, TaskSizeArgs};
use crate::bench::drivers::Driver;
use crate::bench::error::BenchError;
use crate::bench::operator::Operator;
use crate::bench::run::{self, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::StackSettings;
use crate::bench::{capsule, headline, report};
use crate::terminal::say;

/// The phases of a short run, in seconds.
const SHORT: Phases = Phases { ramp: 5, warm_up: 5, measure: 20 };
/// Those of a full one: the reference measured three minutes.
const FULL: Phases = Phases { ramp: 20, warm_up: 20, measure: 180 };

#[derive(Debug, Clone, Copy)]
struct Phases {
    ramp: u32,
    warm_up: u32,
    measure: u32,
}

/// One run of the five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    role: &'static str,
    label: &'static str,
    tasks: u16,
    pool: PoolArg,
}

pub(in crate::bench) async fn run(args: &Phase4Args, operator: &Operator) -> Result<ExitCode, BenchError> {
    let phases = if args.short { SHORT } else { FULL };
    let driver = Driver::find(&args.driver, None).await?;
    let scenario = scenario(args.vus, phases)?;
    let folder = report::new_set(&args.out.folder, "phase4")?;
    let mut finished = Vec::new();
    let parts = parts(args);
    for (number, part) in parts.iter().enumerate() {
        say(format_args!("\nrun {} of {}: {}", number + 1, parts.len(), part.role));
        let spec = RunSpec {
            driver: driver.clone(),
            // The same load for all: what differs is the system.
            seed: args.seed.seed,
            role: Some(part.role.to_owned()),
            ..RunSpec::new(scenario.clone(), &folder).labelled(part.label)
        };
        if number == 0 {
            announce(&spec);
        }
        let size = TaskSizeArgs { task_cpu: Some(args.task_cpu), ..TaskSizeArgs::default() };
        let system = SystemArgs { size, ..SystemArgs::default() };
        let settings = StackSettings::new(&system)?.with_tasks(part.tasks).with_pool(part.pool);
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
    let built = report::build_beside_reference(&folders)?;
    say("");
    headline::show_together(&built);
    headline::show_paths(&built.write(&folder)?);
    say(format_args!("\nDatum {}, result {}", capsule::this_datum(), folder.display()));
    Ok(exit_code(&finished, operator))
}

fn scenario(vus: u32, phases: Phases) -> Result<Scenario, BenchError> {
    let overrides = Overrides {
        vus: Some(vus),
        ramp_seconds: Some(phases.ramp),
        warm_up_seconds: Some(phases.warm_up),
        measure_seconds: Some(phases.measure),
        ..Overrides::default()
    };
    Ok(overrides.apply(&loadgen::scenario::open("baseline-mix")?)?)
}

fn parts(args: &Phase4Args) -> [Part; 5] {
    let part = |role, label, tasks, pool| Part { role, label, tasks, pool };
    [
        part(EXPLORATORY, "1-exploratory", 1, args.first_pool),
        part(EXPLORATORY, "2-exploratory-tuned", 1, args.tuned_pool),
        part(STEADY_STATE, "3-steady", 2, args.steady_pool),
        part(STEADY_STATE, "4-steady", 2, args.steady_pool),
        part(STEADY_STATE, "5-steady", 2, args.steady_pool),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::bench::args::Experiment;
    use crate::cli::{Cli, Command};

    fn args(arguments: &[&str]) -> Phase4Args {
        let cli = Cli::try_parse_from(["datum", "bench", "phase4"].iter().chain(arguments)).expect("valid");
        match cli.command {
            Command::Bench(bench) => match bench.experiment {
                Some(Experiment::Phase4(args)) => args,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_roles_tasks_and_pools_are_the_references() {
        let parts = parts(&args(&[]));
        assert_eq!(parts.map(|it| it.tasks), [1, 1, 2, 2, 2]);
        assert_eq!(
            parts.map(|it| it.role),
            ["exploratory", "exploratory", "steady state", "steady state", "steady state"]
        );
        assert!(parts[2..].iter().all(|it| it.pool == PoolArg { max: 14, min: 5 }));
        assert_ne!(parts[0].pool, parts[1].pool, "the second exploratory run is after pool tuning");
    }

    #[test]
    fn pools_are_options_and_the_load_is_the_references() {
        let parts = parts(&args(&["--tuned-pool", "9/3", "--steady-pool", "8/2"]));
        assert_eq!((parts[1].pool, parts[4].pool), (PoolArg { max: 9, min: 3 }, PoolArg { max: 8, min: 2 }));
        let scenario = scenario(args(&[]).vus, FULL).expect("a scenario");
        assert_eq!(scenario.virtual_users(), 200);
        assert_eq!(scenario.load(), envelope::result::Load::Closed { vus: 200, think_time_mean_seconds: 0.82 });
    }
}
