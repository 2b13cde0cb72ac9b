//! What a service gives to the runner, and the runner: the same assembly in production, on one machine, and in tests.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::Next;
use axum::routing::get;
use tokio::net::{TcpListener, TcpSocket};

use crate::clock::{SharedClock, SystemClock};
use crate::config::{self, ConfigErrors, EXIT_USAGE, Environment, Inspection, Settings};
use crate::database::Pool;
use crate::faults::StageDelay;
use crate::health::{self, Readiness};
use crate::middleware::{self, HttpConfig};
use crate::server::{self, Outcome, ServerConfig, Shutdown};
use crate::telemetry::{self, TelemetryConfig};

/// Work beside the requests: it runs from the start, and is dropped when the task stops.
pub type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One service, ready to be served.
pub struct Service {
    /// `auth`, `actor` or `document`.
    pub name: &'static str,
    /// The API's routes with their state; everything around them is added by [`assemble`].
    pub router: Router,
    /// The API's description.
    pub openapi: utoipa::openapi::OpenApi,
    /// What must hold before the task gets traffic.
    pub readiness: Readiness,
    /// The database, kept warm by the runner; none where the service needs none.
    pub pool: Option<Pool>,
    /// Work beside the requests.
    pub background: Vec<Background>,
    /// Where handlers may take longer than `REQUEST_TIMEOUT_MS`, such as for uploads: their own limit.
    pub longest_request: Option<Duration>,
    /// What requests have left to be done, such as taking back uploads that were cut off: awaited once the last connection has
    /// ended, for at most [`FINISH_WITHIN`].
    pub finish: Option<Background>,
}

/// The longest that [`Service::finish`] may keep a stopping task.
pub const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// The router as it is served: the API, the task's own paths, and the middleware around all of them.
pub fn assemble(service: &Service, http: &HttpConfig) -> Router {
    telemetry::install_metrics();
    let readiness = service.readiness.clone();
    let name = service.name;
    let own = Router::new()
        .route("/live", get(health::live))
        .route("/ready", get(move || health::ready(name, readiness.clone())))
        .route("/metrics", get(|| async { telemetry::render() }))
        .merge(docs(service.openapi.clone()));
    let mut http = http.clone();
    http.request_timeout = http.request_timeout.max(service.longest_request.unwrap_or_default());
    let api = match http.fault.and_then(StageDelay::in_app) {
        None => service.router.clone(),
        Some(delay) => slower(service.router.clone(), delay),
    };
    middleware::apply(api.merge(own), &http, service.readiness.draining())
}

/// The API with a delay before each handler; the task's own paths keep their speed, so that it stays healthy.
fn slower(api: Router, delay: Duration) -> Router {
    api.layer(axum::middleware::from_fn(move |request: Request, next: Next| async move {
        tokio::time::sleep(delay).await;
        next.run(request).await
    }))
}

/// `/openapi.json`, and `/docs` to try it; the page's scripts are in the binary.
fn docs(openapi: utoipa::openapi::OpenApi) -> Router {
    utoipa_swagger_ui::SwaggerUi::new("/docs").url("/openapi.json", openapi).into()
}

/// How many threads the runtime has.
fn read_worker_threads(settings: &mut Settings<'_>) -> usize {
    // std asks the cgroup: a quarter of a vCPU gives 1, where the host's core count would give CFS throttling.
    let available = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    settings.section("Runtime");
    let given = settings.optional_text("WORKER_THREADS", "Threads that serve requests; unset: one a CPU of the quota");
    match given.map(|text| text.parse::<usize>()) {
        None => available,
        Some(Ok(threads)) if (1..=512).contains(&threads) => threads,
        Some(_) => {
            settings.error("WORKER_THREADS", "must be a whole number from 1 to 512");
            available
        }
    }
}

/// What every task is told, whichever service it runs.
struct TaskConfig {
    worker_threads: usize,
    server: ServerConfig,
    http: HttpConfig,
    telemetry: TelemetryConfig,
    lifeline: bool,
}

impl TaskConfig {
    fn read(settings: &mut Settings<'_>) -> Self {
        const LIFELINES: &[(&str, bool)] = &[("none", false), ("stdin", true)];
        Self {
            worker_threads: read_worker_threads(settings),
            lifeline: settings.choice("DATUM_LIFELINE", "none", LIFELINES, "stdin: stop when standard input ends"),
            server: ServerConfig::read(settings),
            http: HttpConfig::read(settings),
            telemetry: TelemetryConfig::read(settings),
        }
    }
}

/// Runs one task of a service from the process's environment and arguments (`--help` only) until it is told to stop.
///
/// Exit codes: 0 stopped as asked, 1 failed, [`EXIT_USAGE`] the configuration is wrong.
pub fn run<C>(
    name: &'static str,
    read: impl Fn(&mut Settings<'_>) -> C,
    build: impl AsyncFnOnce(C, SharedClock) -> anyhow::Result<Service>,
) -> ExitCode {
    if std::env::args().any(|argument| argument == "--help" || argument == "-h") {
        let title = format!("One task of Datum's {name} service, configured by the environment.");
        config::print_help(&title, |settings| (TaskConfig::read(settings), read(settings)));
        return ExitCode::SUCCESS;
    }
    let environment = Environment::from_process();
    let (task, service) = match config::load(&environment, |settings| (TaskConfig::read(settings), read(settings))) {
        Ok(configuration) => configuration,
        Err(errors) => return refuse(name, &errors),
    };
    raise_open_files_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(task.worker_threads).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(name, &error.into()),
    };
    let result = runtime.block_on(async {
        // From here on, so that what `build` logs and counts is seen.
        let _telemetry = telemetry::init(&task.telemetry, name)?;
        telemetry::start_upkeep();
        run_task(build(service, Arc::new(SystemClock)).await?, &task).await
    });
    // Whatever blocks (a DNS look-up, a file) has had its time.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(name, &error),
    }
}

/// What a task of a service whose own settings are read by `read` would find in `environment`; starts nothing.
pub fn inspect<C>(environment: &Environment, read: impl Fn(&mut Settings<'_>) -> C) -> Inspection {
    config::inspect(environment, |settings| (TaskConfig::read(settings), read(settings)))
}

fn refuse(name: &str, errors: &ConfigErrors) -> ExitCode {
    eprintln!("{name}: the configuration is wrong:\n{errors}\n--help lists every variable.");
    ExitCode::from(EXIT_USAGE)
}

fn fail(name: &str, error: &anyhow::Error) -> ExitCode {
    eprintln!("{name}: {error:#}");
    ExitCode::FAILURE
}

/// Not generic, so that it is compiled once and not with every service.
async fn run_task(mut service: Service, task: &TaskConfig) -> anyhow::Result<()> {
    let name = service.name;
    if let Some(fault) = task.http.fault {
        tracing::warn!(%fault, "FAULT_STAGE_DELAY is on: every request is slowed down on purpose");
    }
    // Signals first: a task that is told to stop while it starts must stop.
    let shutdown = Shutdown::new(service.readiness.draining());
    shutdown.on_signals()?;
    if task.lifeline {
        shutdown.on_lifeline();
    }

    if let Some(pool) = &service.pool {
        pool.start_keeper();
    }
    let background: Vec<_> = std::mem::take(&mut service.background).into_iter().map(tokio::spawn).collect();
    let finish = service.finish.take();
    let router = assemble(&service, &task.http);
    let listener = listen(&task.server)?;
    tracing::info!(
        service = name,
        version = env!("CARGO_PKG_VERSION"),
        port = listener.local_addr()?.port(),
        worker_threads = task.worker_threads,
        "listening"
    );
    let outcome = server::serve(listener, router, &task.server, shutdown).await;
    if let Some(finish) = finish
        && tokio::time::timeout(FINISH_WITHIN, finish).await.is_err()
    {
        tracing::warn!(service = name, "stopped before everything that requests had left was done");
    }
    for task in background {
        task.abort();
    }
    match outcome {
        Outcome::Drained => tracing::info!(service = name, "stopped"),
        Outcome::Cut { connections } => tracing::warn!(service = name, connections, "stopped; connections were cut"),
    }
    Ok(())
}

/// Connections that wait to be accepted; the kernel caps it at `net.core.somaxconn`.
const LISTEN_BACKLOG: u32 = 4_096;

fn listen(config: &ServerConfig) -> anyhow::Result<TcpListener> {
    use anyhow::Context;
    let address = std::net::SocketAddr::new(config.host, config.port);
    let bind = || -> std::io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A restarted task takes its port back while old connections still time out.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(LISTEN_BACKLOG)
    };
    bind().with_context(|| format!("cannot listen on port {}", config.port))
}

/// Each connection needs a file descriptor, and the usual soft limit of 1,024 is far below what the kernel allows.
fn raise_open_files_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Best effort: with the old limit the task works too, for fewer clients.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
