//! `datum bench`: experiments, from the system that they need to the report that they end with.
//!
//! `experiments/` has one file an experiment; each is made of `run`s, on a `system` of this machine or elsewhere, by one of the
//! `drivers`. What the numbers mean is not decided here: that is `envelope`'s, and every verdict comes from there.

pub(crate) mod args;

mod capsule;
mod command_line;
mod describe;
mod drivers;
mod error;
mod experiments;
mod headline;
mod machine;
mod operator;
mod populate;
mod progress;
mod recording;
mod report;
mod run;
mod session;
mod system;

use std::process::ExitCode;
use std::time::Duration;

pub(crate) use experiments::selftest::STAGES;

use args::{BenchArgs, Check, Experiment};
use error::{BenchError, EXIT_INTERRUPTED};
use operator::Operator;

use crate::terminal::{complain, say};

/// For what is still to be dropped at the end.
const LAST_STEPS: Duration = Duration::from_secs(3);

/// Runs what was typed to its end. Beside the codes of every command: 65 the result is void, 69 the target does not answer
/// as it must, 73 nothing can be written where results should go, 74 a result could not be written to its end, 130 ended early
/// by Ctrl-C.
pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    if args.list {
        return experiments::list::list();
    }
    // The drivers have threads of their own; what is left waits more than it works.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cannot("start", &error),
    };
    let exit = runtime.block_on(async {
        let operator = Operator::default();
        let _listening = match operator.listen() {
            Ok(listening) => listening,
            Err(error) => return cannot("wait for signals", &error),
        };
        match operator.unless_aborted(Box::pin(experiment(args, &operator))).await {
            Some(Ok(exit)) => exit,
            Some(Err(error)) => error.report(),
            None => {
                say("ended without waiting; the system stops by itself");
                ExitCode::from(EXIT_INTERRUPTED)
            }
        }
    });
    runtime.shutdown_timeout(LAST_STEPS);
    exit
}

fn cannot(what: &str, error: &std::io::Error) -> ExitCode {
    complain(format_args!("cannot {what}: {error}"), None);
    ExitCode::FAILURE
}

async fn experiment(args: &BenchArgs, operator: &Operator) -> Result<ExitCode, BenchError> {
    match &args.experiment {
        None => experiments::scenario::run(args, operator).await,
        Some(Experiment::Aa(args)) => experiments::aa::run(args, operator).await,
        Some(Experiment::Capacity(args)) => experiments::capacity::run(args, operator).await,
        Some(Experiment::Phase4(args)) => experiments::phase4::run(args, operator).await,
        Some(Experiment::AuthAttribution(args)) => experiments::auth_attribution::run(args, operator).await,
        Some(Experiment::Selftest(args)) => experiments::selftest::run(args, operator).await,
        Some(Experiment::Check(Check::Drivers(args))) => experiments::check_drivers::run(args, operator).await,
        Some(Experiment::Check(Check::Freeze(args))) => experiments::check_freeze::run(args, operator).await,
        Some(Experiment::Check(Check::Identity(args))) => experiments::check_identity::run(args, operator).await,
    }
}
