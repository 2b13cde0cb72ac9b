//! `datum bench aa`: identical runs, whose differences are noise and nothing else.

use std::fs;
use std::process::ExitCode;

use envelope::analysis::{NoiseFloor, noise_floor};

use super::scenario::{announce, exit_code, spec};
use crate::bench::args::AaArgs;
use crate::bench::describe::percent;
use crate::bench::drivers::Driver;
use crate::bench::error::BenchError;
use crate::bench::operator::Operator;
use crate::bench::run::{self, LoadTarget, RunSpec};
use crate::bench::session::with_stack;
use crate::bench::system::{Elsewhere, StackSettings};
use crate::bench::{headline, report};
use crate::terminal::say;

/// Where the noise floor is kept, beside the runs that it was measured from; `datum compare --noise` reads them.
const NOISE_FLOOR: &str = "noise-floor.json";

pub(in crate::bench) async fn run(args: &AaArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    let elsewhere = Elsewhere::of(&args.system.elsewhere)?;
    let driver = Driver::find(&args.driver, elsewhere.as_ref().and_then(Elsewhere::ca)).await?;
    let one = spec(&args.scenario, &args.load, driver, &args.result)?;
    let settings = StackSettings::new(&args.system)?;
    announce(&one);
    let folder = report::new_set(&args.result.out.folder, &format!("aa-{}", one.scenario.name))?;
    let spec = RunSpec { out: folder.clone(), ..one };
    let mut finished = Vec::new();
    for number in 1..=args.runs {
        say(format_args!("\nrun {number} of {}", args.runs));
        // The seed stays: what differs is what nobody chose.
        let one = match &elsewhere {
            Some(elsewhere) => run::run(&spec, LoadTarget::Elsewhere(elsewhere), operator).await?,
            None => {
                with_stack(&settings, operator, async |stack| run::run(&spec, LoadTarget::Own(stack), operator).await)
                    .await?
            }
        };
        headline::show_briefly(&one)?;
        finished.push(one);
        if operator.wants_stop() {
            break;
        }
    }
    let folders: Vec<_> = finished.iter().map(|it| it.folder.clone()).collect();
    let built = report::build(&folders)?;
    say("");
    headline::show_together(&built);
    headline::show_paths(&built.write(&folder)?);
    match noise_floor(&built.runs) {
        Some(floor) => {
            let path = folder.join(NOISE_FLOOR);
            let text = serde_json::to_string_pretty(&floor).map_err(|error| BenchError::Analysis(error.to_string()))?;
            fs::write(&path, text + "\n").map_err(BenchError::io(&path))?;
            say(format_args!("\n{}", table(&floor)));
            say(format_args!("noise floor   {}", path.display()));
        }
        None => say("too few runs for a noise floor"),
    }
    Ok(exit_code(&finished, operator))
}

/// What a difference of one run from another, and of three from three, must exceed.
fn table(floor: &NoiseFloor) -> String {
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("± {}", percent(share)));
    let rows = floor.metrics.iter().map(|noise| {
        vec![
            format!("{} {:?}", noise.metric.endpoint.as_deref().unwrap_or("all"), noise.metric.quantity).to_lowercase(),
            format!("{:.2}", noise.mean),
            percent(noise.deviation),
            share(floor.of(&noise.metric, (1, 1))),
            share(floor.of(&noise.metric, (3, 3))),
        ]
    });
    headline::table(["METRIC", "MEAN", "DEVIATION", "NOISE OF 1 VS 1", "OF 3 VS 3"], rows)
}
