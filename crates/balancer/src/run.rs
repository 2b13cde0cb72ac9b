//! The balancer as a process of its own, for `datum balancer` and Compose.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::routing::get;
use service_kit::config::{self, EXIT_USAGE, Environment, Settings};
use service_kit::server::{Outcome, Shutdown};
use service_kit::telemetry::{self, TelemetryConfig};
use tokio::net::{TcpListener, TcpSocket};

use crate::balancer::Balancer;
use crate::config::{Config, Listen, read_metrics_port};

/// Connections that wait to be accepted; the kernel caps it at `net.core.somaxconn`.
const LISTEN_BACKLOG: u32 = 4_096;

struct Process {
    listen: Listen,
    metrics_port: Option<u16>,
    balancer: Config,
    telemetry: TelemetryConfig,
}

impl Process {
    fn read(settings: &mut Settings<'_>) -> Self {
        Self {
            listen: Listen::read(settings),
            metrics_port: read_metrics_port(settings),
            balancer: Config::read(settings),
            telemetry: TelemetryConfig::read(settings),
        }
    }
}

/// The table of every variable, for `--help`.
#[must_use]
pub fn help() -> String {
    config::help(Process::read)
}

/// Runs a balancer from `environment` until the process is told to stop. `pages` answers `/docs` and `/openapi.json`.
///
/// Exit codes: 0 stopped as asked, 1 failed, [`EXIT_USAGE`] the configuration is wrong.
#[must_use]
pub fn run(environment: &Environment, pages: Option<Router>) -> ExitCode {
    let process = match config::load(environment, Process::read) {
        Ok(process) => process,
        Err(errors) => {
            eprintln!("balancer: the configuration is wrong:\n{errors}\n--help lists every variable.");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    raise_open_files_limit();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let result = runtime.block_on(serve(process, pages));
    // Whatever blocks (a DNS look-up) has had its time.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("balancer: {error:#}");
    ExitCode::FAILURE
}

async fn serve(process: Process, pages: Option<Router>) -> anyhow::Result<()> {
    let _telemetry = telemetry::init(&process.telemetry, "balancer")?;
    telemetry::start_upkeep();
    // Signals first: a process that is told to stop while it starts must stop.
    let shutdown = Shutdown::default();
    shutdown.on_signals()?;
    if let Some(delay) = process.balancer.forward_delay {
        let delay_ms = delay.as_millis();
        tracing::warn!(delay_ms, "FAULT_FORWARD_DELAY is on: every request is held up on purpose");
    }
    let balancer = Balancer::new(Config { pages, ..process.balancer })?;
    if let Some(port) = process.metrics_port {
        let listener = listen(SocketAddr::new(process.listen.host, port))?;
        tracing::info!(metrics_port = listener.local_addr()?.port(), "metrics");
        // Until the runtime ends: what happens while it stops is of interest too.
        tokio::spawn(async move { axum::serve(listener, metrics()).await });
    }
    let listener = listen(SocketAddr::new(process.listen.host, process.listen.port))?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), port = listener.local_addr()?.port(), "listening");
    match balancer.serve(listener, shutdown).await {
        Outcome::Drained => tracing::info!("stopped"),
        Outcome::Cut { connections } => tracing::warn!(connections, "stopped; connections were cut"),
    }
    Ok(())
}

/// On a port of its own: clients of the balancer must not see how many targets there are.
fn metrics() -> Router {
    Router::new().route("/metrics", get(|| async { telemetry::render() }))
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let bind = || -> std::io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A restarted balancer takes its port back while old connections still time out.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(LISTEN_BACKLOG)
    };
    bind().with_context(|| format!("cannot listen on port {}", address.port()))
}

/// Each request needs two file descriptors, and the usual soft limit of 1,024 is far below what the kernel allows.
fn raise_open_files_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Best effort: with the old limit it works too, for fewer clients.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_configuration_is_a_usage_error() {
        let environment = Environment::from_pairs([("PORT", "none"), ("AUTH_TARGETS", "x")]);
        let exit = run(&environment, None);
        assert_eq!(format!("{exit:?}"), format!("{:?}", ExitCode::from(EXIT_USAGE)));
    }

    #[test]
    fn help_lists_every_variable() {
        let help = help();
        for name in [
            "PORT",
            "METRICS_PORT",
            "AUTH_TARGETS",
            "ACTOR_TARGETS",
            "DOCUMENT_TARGETS",
            "IDLE_TIMEOUT_MS",
            "HEALTH_PATH",
        ] {
            assert!(help.contains(name), "{name} is missing in\n{help}");
        }
    }

    #[tokio::test]
    async fn the_metrics_are_on_a_port_of_their_own() {
        use tower::ServiceExt;
        telemetry::start_upkeep();
        metrics::gauge!(crate::names::CONNECTIONS).set(0.0);
        let ask = async |path: &str| {
            let request = http::Request::get(path).body(axum::body::Body::empty()).expect("a request");
            super::metrics().oneshot(request).await.expect("an answer")
        };
        let answer = ask("/metrics").await;
        assert_eq!(answer.status(), 200);
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        assert!(String::from_utf8_lossy(&body).contains(crate::names::CONNECTIONS));
        assert_eq!(ask("/v1/auth").await.status(), 404);
    }
}
