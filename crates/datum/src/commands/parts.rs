//! One part of the system alone, configured by the environment: what containers run.

use std::process::ExitCode;
use std::time::Duration;

use service_kit::config::{self, EXIT_USAGE, Environment, Settings};
use service_kit::server::Shutdown;
use service_kit::telemetry::{self, TelemetryConfig};
use stack::{Service, cognito, cpu_quota, object_store};

use super::failed;
use crate::api_page;
use crate::cli::{ForwardedArgs, TaskArgs};
use crate::terminal::{complain, say};

/// `datum task NAME`: the same as the service's own program.
pub(super) fn task(args: &TaskArgs) -> ExitCode {
    // The service itself answers `--help`.
    if let Err(unknown) = args.forwarded.wants_help() {
        return usage(&unknown);
    }
    // Before anything looks at how many CPUs there are.
    if let Err(error) = cpu_quota::join_from_environment() {
        return failed(error);
    }
    match args.service {
        Service::Auth => auth::run(),
        Service::Actor => actor::run(),
        Service::Document => document::run(),
    }
}

/// `datum migrate`: the same as the migrator's own program, which also answers `--help`.
pub(super) fn migrate(forwarded: &ForwardedArgs) -> ExitCode {
    match forwarded.wants_help() {
        Ok(_) => migrator::main(),
        Err(unknown) => usage(&unknown),
    }
}

/// `datum balancer`
pub(super) fn balancer(forwarded: &ForwardedArgs) -> ExitCode {
    match forwarded.wants_help() {
        Ok(true) => help("The load balancer of Datum, configured by the environment.", &balancer::help()),
        Ok(false) => balancer::run(&Environment::from_process(), Some(api_page::router())),
        Err(unknown) => usage(&unknown),
    }
}

struct CognitoDoubleProcess {
    double: cognito::Options,
    telemetry: TelemetryConfig,
}

impl CognitoDoubleProcess {
    fn read(settings: &mut Settings<'_>) -> Self {
        Self { double: cognito::Options::read(settings), telemetry: TelemetryConfig::read(settings) }
    }
}

/// `datum cognito-double`
pub(super) fn cognito_double(forwarded: &ForwardedArgs) -> ExitCode {
    const TITLE: &str = "The double of Amazon Cognito user pools, configured by the environment.";
    run_part(forwarded, TITLE, CognitoDoubleProcess::read, async |process| {
        let _telemetry = telemetry::init(&process.telemetry, "cognito-double")?;
        let shutdown = Shutdown::default();
        shutdown.on_signals()?;
        cognito::run(process.double, shutdown.requested()).await?;
        Ok(())
    })
}

struct ObjectStoreProcess {
    store: object_store::Options,
    telemetry: TelemetryConfig,
}

impl ObjectStoreProcess {
    fn read(settings: &mut Settings<'_>) -> Self {
        Self { store: object_store::Options::read(settings), telemetry: TelemetryConfig::read(settings) }
    }
}

/// `datum object-store`
pub(super) fn object_store(forwarded: &ForwardedArgs) -> ExitCode {
    const TITLE: &str = "The S3 server of Datum, configured by the environment.";
    run_part(forwarded, TITLE, ObjectStoreProcess::read, async |process| {
        let _telemetry = telemetry::init(&process.telemetry, "object-store")?;
        let shutdown = Shutdown::default();
        shutdown.on_signals()?;
        object_store::run(process.store, shutdown.requested()).await?;
        Ok(())
    })
}

/// A part that the environment configures: its help, its refusals, its run.
fn run_part<P>(
    forwarded: &ForwardedArgs,
    title: &str,
    read: fn(&mut Settings<'_>) -> P,
    serve: impl AsyncFnOnce(P) -> anyhow::Result<()>,
) -> ExitCode {
    match forwarded.wants_help() {
        Ok(true) => return help(title, &config::help(read)),
        Ok(false) => {}
        Err(unknown) => return usage(&unknown),
    }
    let process = match config::load(&Environment::from_process(), read) {
        Ok(process) => process,
        Err(errors) => return usage(&format!("the configuration is wrong:\n{errors}\n--help lists every variable")),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(error),
    };
    let outcome = runtime.block_on(serve(process));
    // A file operation that hangs must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(format_args!("{error:#}")),
    }
}

fn help(title: &str, variables: &str) -> ExitCode {
    say(title);
    say(variables.trim_end());
    ExitCode::SUCCESS
}

fn usage(error: &str) -> ExitCode {
    complain(error, None);
    ExitCode::from(EXIT_USAGE)
}
