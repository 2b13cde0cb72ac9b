//! `datum up`: the whole system in the foreground.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use service_kit::config::{self, EXIT_USAGE, Environment, Inspection, Secret};
use service_kit::service;
use stack::cognito;
use stack::identity::{GivenPool, IdentityOptions};
use stack::logs::Follower;
use stack::{Executable, Location, Service, Stack, StackError, StackOptions, TaskId, shell, state_dir};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{failed, stack_failed};
use crate::api_page;
use crate::cli::{Identity, Switch, UpArgs, count_tasks};
use crate::terminal::screen::{Screen, seconds};
use crate::terminal::{complain, log_lines, own_log, table};

/// What a shell reports for a program that Ctrl-C ended: 128 + SIGINT.
const EXIT_INTERRUPTED: u8 = 130;
/// Between two drawings of the table, for memory and uptime.
const REDRAW: Duration = Duration::from_secs(1);
/// For what is still to be dropped at the end.
const LAST_STEPS: Duration = Duration::from_secs(3);
/// Between two looks at the tasks' log files.
const LOGS_PAUSE: Duration = Duration::from_millis(200);

pub(super) fn run(args: &UpArgs) -> ExitCode {
    let options = match options(args) {
        Ok(options) => options,
        Err(refusal) => {
            complain(refusal, None);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(format_args!("cannot start: {error}")),
    };
    raise_open_files_limit();
    let exit = runtime.block_on(up(args, options));
    // Drops, and thereby kills, whatever a second Ctrl-C left; a file operation that hangs is not waited for.
    runtime.shutdown_timeout(LAST_STEPS);
    exit
}

/// The balancer and the object store need two file descriptors a request, and the usual soft limit is 1,024.
fn raise_open_files_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Best effort: with the old limit it works too, for fewer clients.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn options(args: &UpArgs) -> Result<StackOptions, String> {
    let mut set: BTreeMap<String, String> = args.set.iter().cloned().collect();
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let identity = identity(args, &environment, &set)?;
    if let Some(throttle) = args.throttle {
        let value = if throttle == Switch::Off { "off" } else { "on" };
        set.entry("AUTH_THROTTLE".to_owned()).or_insert_with(|| value.to_owned());
    }
    Ok(StackOptions {
        port: args.port,
        tasks: count_tasks(&args.tasks),
        task_cpu: args.task_cpu,
        location: if args.ephemeral { Location::Ephemeral } else { Location::Persistent(args.state_dir.clone()) },
        identity,
        // Empty means unset, as for every variable.
        database_url: args.database_url.clone().filter(|url| !url.is_empty()).map(Secret::new),
        take_over_roles: args.take_over_roles,
        executable: Executable::Current,
        environment,
        set,
        inspect: Some(inspect),
        make_signing_key: auth::keys::generate_pem,
        pages: Some(api_page::router()),
    })
}

/// Who keeps accounts: a user pool that the environment names, else the double, as `COGNITO_DOUBLE_*` describes it.
fn identity(
    args: &UpArgs,
    environment: &BTreeMap<String, String>,
    set: &BTreeMap<String, String>,
) -> Result<IdentityOptions, String> {
    if args.identity == Identity::Local {
        return Ok(IdentityOptions::Local);
    }
    if args.throttle.is_some() {
        return Err("--throttle is of accounts that the auth service keeps: a user pool throttles logins itself".into());
    }
    if let Some(pool) = GivenPool::find(environment, set).map_err(|error| error.to_string())? {
        return Ok(IdentityOptions::Pool(pool));
    }
    let double = config::load(&Environment::from_pairs(environment), cognito::Options::read)
        .map_err(|errors| format!("the Cognito double's configuration is wrong:\n{errors}"))?;
    let named = environment.get("COGNITO_DOUBLE_ADDRESS").is_some_and(|address| !address.is_empty());
    let address = if named { double.address } else { (Ipv4Addr::LOCALHOST, 0).into() };
    Ok(IdentityOptions::Double(Box::new(cognito::Options { address, ..double })))
}

/// Reads the configuration of a service as its tasks do.
fn inspect(service: Service, environment: &Environment) -> Inspection {
    match service {
        Service::Auth => service::inspect(environment, auth::Config::read),
        Service::Actor => service::inspect(environment, actor::Config::read),
        Service::Document => service::inspect(environment, document::Config::read),
    }
}

async fn up(args: &UpArgs, options: StackOptions) -> ExitCode {
    let mut signals = match Signals::new(args.lifeline) {
        Ok(signals) => signals,
        Err(error) => return failed(format_args!("cannot wait for signals: {error}")),
    };
    let began = Instant::now();
    let screen = Arc::new(Screen::new());
    own_log::install(Arc::clone(&screen));
    screen.line(&format!("Datum {}", env!("CARGO_PKG_VERSION")));
    let _logs = args.logs.then(|| {
        let tasks = options.tasks.tasks().collect();
        let (screen, folder) = (Arc::clone(&screen), screen.logs());
        AbortOnDropHandle::new(tokio::spawn(show_logs(screen, folder, tasks)))
    });

    let mut stack = match start(options, &screen, &mut signals).await {
        Ok(stack) => stack,
        Err(exit) => return exit,
    };
    greet(&screen, &stack, began.elapsed());
    let ending = watch(&screen, &mut stack, &mut signals).await;

    screen.clear();
    if let Ending::Signal(name) = &ending {
        screen.line(&format!("{name}: finishing requests and stopping; once more ends at once"));
    }
    let stopped = tokio::select! {
        () = stack.stop() => true,
        _ = signals.next() => false,
    };
    screen.clear();
    match ending {
        _ if !stopped => {
            screen.line("Datum was ended without waiting.");
            ExitCode::from(EXIT_INTERRUPTED)
        }
        Ending::Failed(error) => stack_failed(&error),
        Ending::Signal(_) | Ending::Asked => {
            screen.line("Datum has stopped.");
            ExitCode::SUCCESS
        }
    }
}

/// Starts the stack; a signal meanwhile stops what was started, a second one ends at once.
async fn start(options: StackOptions, screen: &Arc<Screen>, signals: &mut Signals) -> Result<Stack, ExitCode> {
    let cancel = CancellationToken::new();
    let mut starting = Box::pin(Stack::start(options, screen.clone(), cancel.clone()));
    let outcome = loop {
        tokio::select! {
            outcome = &mut starting => break outcome,
            name = signals.next() => {
                if cancel.is_cancelled() {
                    screen.clear();
                    return Err(ExitCode::from(EXIT_INTERRUPTED));
                }
                screen.line(&format!("{name}: stopping what was started; once more ends at once"));
                cancel.cancel();
            }
        }
    };
    match outcome {
        Ok(stack) if cancel.is_cancelled() => {
            // It was ready in the very moment of the signal.
            stack.stop().await;
            screen.clear();
            screen.line("Datum has stopped.");
            Err(ExitCode::SUCCESS)
        }
        Ok(stack) => Ok(stack),
        Err(StackError::Interrupted) => {
            screen.clear();
            screen.line("Datum has stopped before it was ready.");
            Err(ExitCode::SUCCESS)
        }
        Err(error) => {
            screen.clear();
            Err(stack_failed(&error))
        }
    }
}

fn greet(screen: &Screen, stack: &Stack, took: Duration) {
    let url = stack.base_url();
    let logs = state_dir::logs(stack.state_dir());
    screen.line("");
    screen.line(&format!("Datum is ready: {url} ({})", seconds(took)));
    screen.line("");
    if stack.status().throttle_off {
        screen.line("  NOTE   login throttling is OFF (AUTH_THROTTLE=off): for load tests only");
    }
    if let Some(identity) = stack.status().identity.describe() {
        screen.line(&format!("  Users  {identity}"));
    }
    for fault in stack.status().faults {
        screen.line(&format!("  NOTE   requests are SLOW on purpose ({fault}): for tests of measuring only"));
    }
    screen.line(&format!(
        "  Try    curl -i {url}/v1/auth/register -H 'content-type: application/json' \\\n\
         \x20             -d '{{\"email\":\"ada@example.com\",\"password\":\"correct horse battery staple\"}}'"
    ));
    screen.line(&format!("  API    {url}/docs"));
    screen.line(&format!("  Logs   {}  (or: datum logs auth-1 -f)", shell::quoted(&logs)));
    screen.line("  Stop   Ctrl-C, or from elsewhere: datum down");
}

/// Why the system stops.
enum Ending {
    Signal(&'static str),
    Asked,
    Failed(StackError),
}

/// Shows the table until the system should stop.
async fn watch(screen: &Screen, stack: &mut Stack, signals: &mut Signals) -> Ending {
    let mut redraw = tokio::time::interval(REDRAW);
    redraw.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut shown = String::new();
    loop {
        let status = stack.status();
        let essence = table::essence(&status);
        if screen.redraws() || essence != shown {
            screen.table(&table::render(&status));
            shown = essence;
        }
        tokio::select! {
            name = signals.next() => return Ending::Signal(name),
            error = stack.ended() => return error.map_or(Ending::Asked, Ending::Failed),
            () = screen.changed() => {}
            _ = redraw.tick(), if screen.redraws() => {}
        }
    }
}

/// What ends the system from outside: signals, and the end of standard input where that is a lifeline.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    parent_gone: CancellationToken,
}

impl Signals {
    fn new(lifeline: bool) -> std::io::Result<Self> {
        let parent_gone = CancellationToken::new();
        if lifeline {
            watch_lifeline(parent_gone.clone());
        }
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // The terminal was closed.
            hangup: signal(SignalKind::hangup())?,
            parent_gone,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hangup.recv() => "SIGHUP",
            () = self.parent_gone.cancelled() => {
                // It ends once; told again and again, it would count as the second Ctrl-C.
                self.parent_gone = CancellationToken::new();
                "end of standard input"
            }
        }
    }
}

/// A thread, not the runtime's blocking pool: a read that never returns would keep the runtime from ending.
fn watch_lifeline(ended: CancellationToken) {
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut buffer = [0; 64];
        while matches!(input.read(&mut buffer), Ok(read) if read > 0) {}
        ended.cancel();
    });
}

/// Puts the tasks' logs on screen from the moment their folder is known.
async fn show_logs(screen: Arc<Screen>, folder: tokio::sync::watch::Receiver<Option<PathBuf>>, tasks: Vec<TaskId>) {
    let mut folder = folder;
    let Ok(folder) = folder.wait_for(Option::is_some).await.map(|folder| folder.clone().unwrap_or_default()) else {
        return;
    };
    let mut followers: Vec<(TaskId, Follower)> =
        tasks.into_iter().map(|task| (task, Follower::from_end(folder.join(format!("{task}.log"))))).collect();
    loop {
        for (task, follower) in &mut followers {
            for line in follower.lines().unwrap_or_default() {
                screen.line(&log_lines::render(*task, &line));
            }
        }
        tokio::time::sleep(LOGS_PAUSE).await;
    }
}
