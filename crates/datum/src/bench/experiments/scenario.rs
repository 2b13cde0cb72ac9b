//! `datum bench SCENARIO`: one scenario, once or several times.

use std::process::ExitCode;

use loadgen::scenario::{Overrides, Scenario};

use crate::bench::args::{BenchArgs, LoadArgs, ResultArgs};
use crate::bench::drivers::Driver;
use crate::bench::error::BenchError;
use crate::bench::operator::Operator;
use crate::bench::report;
use crate::bench::run::{self, Finished, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{Elsewhere, StackSettings};
use crate::bench::{capsule, describe, headline};
use crate::terminal::say;

pub(in crate::bench) async fn run(args: &BenchArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let name = args.scenario.as_deref().unwrap_or_default();
    let elsewhere = Elsewhere::of(&args.system.elsewhere)?;
    let driver = Driver::find(&args.driver, elsewhere.as_ref().and_then(Elsewhere::ca)).await?;
    let one = spec(name, &args.load, driver, &args.result)?;
    let settings = StackSettings::new(&args.system)?;
    run::prove_writable(&one.out)?;
    announce(&one);
    // Several runs are a folder of results, with what they say together.
    let set = (args.runs > 1).then(|| report::new_set(&one.out, &set_name(&one, args.runs))).transpose()?;
    let spec = RunSpec { out: set.clone().unwrap_or_else(|| one.out.clone()), ..one };
    let mut finished = Vec::new();
    for number in 1..=args.runs {
        if args.runs > 1 {
            say(format_args!("\nrun {number} of {}", args.runs));
        }
        let one = if let Some(elsewhere) = &elsewhere {
            run::run(&spec, LoadTarget::Elsewhere(elsewhere), operator).await?
        } else {
            let work = async |stack: &mut _| run::run(&spec, LoadTarget::Own(stack), operator).await;
            with_stack(&settings, operator, work).await?
        };
        let built = report::build(std::slice::from_ref(&one.folder))?;
        headline::show(&one, &built);
        headline::show_paths(&built.write(&one.folder)?);
        finished.push(one);
        if operator.wants_stop() {
            break;
        }
    }
    if let Some(set) = set {
        let folders: Vec<_> = finished.iter().map(|it| it.folder.clone()).collect();
        let built = report::build(&folders)?;
        say("");
        headline::show_together(&built);
        headline::show_paths(&built.write(&set)?);
    }
    Ok(exit_code(&finished, operator))
}

fn set_name(spec: &RunSpec, runs: u32) -> String {
    let label = spec.label.as_ref().map(|label| format!("-{label}")).unwrap_or_default();
    format!("{}{label}-x{runs}", spec.scenario.name)
}

/// What is to be run, with its changes applied.
pub(in crate::bench) fn spec(
    name: &str,
    load: &LoadArgs,
    driver: Driver,
    result: &ResultArgs,
) -> Result<RunSpec, BenchError> {
    let scenario = overrides(load).apply(&loadgen::scenario::open(name)?)?;
    Ok(RunSpec {
        driver,
        users: load.users,
        seed: load.seed.seed,
        role: result.role.clone(),
        label: result.label.clone(),
        ..RunSpec::new(scenario, &result.out.folder)
    })
}

fn overrides(load: &LoadArgs) -> Overrides {
    Overrides {
        vus: load.vus,
        arrivals_per_second: load.rate,
        arrivals: None,
        think_time_mean_seconds: load.think_time,
        ramp_seconds: load.ramp,
        warm_up_seconds: load.warm_up,
        measure_seconds: load.duration,
    }
}

/// The first line of every experiment.
pub(in crate::bench) fn announce(spec: &RunSpec) {
    let driver = spec.driver.facts();
    say(format_args!(
        "Datum {}: {}, {}, {}, by the {} driver {}, seed {}",
        capsule::this_datum(),
        spec.scenario.name,
        describe::load(&spec.scenario.load()),
        crate::terminal::table::duration(length(&spec.scenario)),
        driver.name,
        driver.version,
        spec.seed,
    ));
}

fn length(scenario: &Scenario) -> u64 {
    scenario.schedule().length().as_secs()
}

/// Void runs are no success, and neither is one that the operator ended.
pub(in crate::bench) fn exit_code(finished: &[Finished], operator: &Operator) -> ExitCode {
    use crate::bench::error::{EXIT_INTERRUPTED, EXIT_VOID};
    if operator.wants_stop() {
        return ExitCode::from(EXIT_INTERRUPTED);
    }
    if finished.iter().any(|it| !it.capsule.void.is_empty()) {
        return ExitCode::from(EXIT_VOID);
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use envelope::result::Load;

    use super::*;

    #[test]
    fn what_is_typed_changes_the_scenario() {
        let load = LoadArgs { vus: Some(7), duration: Some(5), warm_up: Some(0), ..LoadArgs::default() };
        let spec = spec("baseline-mix", &load, Driver::Native, &ResultArgs::default()).expect("valid");
        assert_eq!(spec.scenario.load(), Load::Closed { vus: 7, think_time_mean_seconds: 0.82 });
        assert_eq!(length(&spec.scenario), 20 + 5 + 5, "ramp, measure, ramp down");
    }

    #[test]
    fn what_the_scenario_does_not_have_is_a_usage_error() {
        let load = LoadArgs { rate: Some(7.0), ..LoadArgs::default() };
        let error = spec("baseline-mix", &load, Driver::Native, &ResultArgs::default()).expect_err("refused");
        assert_eq!(error.exit_code(), 64);
        let error = spec("nothing", &LoadArgs::default(), Driver::Native, &ResultArgs::default()).expect_err("refused");
        assert!(error.to_string().contains("baseline-mix"), "{error}");
    }
}
