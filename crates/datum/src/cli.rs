//! What can be typed.
#![allow(clippy::doc_markdown, reason = "clap prints these comments as help")]

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use stack::cpu_quota::TaskCpu;
use stack::options::MAX_TASKS;
use stack::{Service, TaskCounts, TaskId};

use crate::bench::args::{BenchArgs, Check, Experiment};

/// A reference microservice system to put under load: three services behind a load balancer, on this machine.
#[derive(Debug, Parser)]
#[command(name = "datum", version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the whole system: PostgreSQL, object store, services, load balancer
    Up(Box<UpArgs>),
    /// Stop a running system
    Down(WhichArgs),
    /// Show the tasks of a running system
    Status(StatusArgs),
    /// Replace the tasks of a running system one by one, without losing a request
    Restart(RestartArgs),
    /// Print the logs of tasks
    Logs(LogsArgs),
    /// Put synthetic users into the database, so that load meets tables that are not empty
    Populate(PopulateArgs),
    /// Put load on a system and write down what came of it
    Bench(Box<BenchArgs>),
    /// Run one task of a service in the foreground, configured by the environment
    Task(TaskArgs),
    /// Apply the migrations, configured by the environment
    Migrate(ForwardedArgs),
    /// Run the load balancer alone, configured by the environment
    Balancer(ForwardedArgs),
    /// Run the S3 object store alone, configured by the environment
    ObjectStore(ForwardedArgs),
    /// Run the double of Amazon Cognito alone, configured by the environment
    CognitoDouble(ForwardedArgs),
    /// Ask a health endpoint; exit 0 when it answers with success (a container's health command)
    Healthcheck(HealthcheckArgs),
    /// Write the performance-envelope report of load results, Datum's own or k6's
    Report(ReportArgs),
    /// Compare two groups of load results, and say whether they can be told apart
    Compare(CompareArgs),
    /// Make keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Print the OpenAPI document of the whole API, or of one service
    Openapi(OpenapiArgs),
}

impl Command {
    /// Whether it speaks to a PostgreSQL server that Datum itself has started, and to no other.
    pub(crate) fn has_own_database(&self) -> bool {
        let is_own = |url: Option<&String>| url.is_none_or(String::is_empty);
        match self {
            Self::Up(args) => is_own(args.database_url.as_ref()),
            Self::Populate(args) => args.names_a_system() || is_own(args.database_url.as_ref()),
            Self::Bench(args) => {
                let system = match &args.experiment {
                    None => Some(&args.system),
                    Some(Experiment::Aa(args)) => Some(&args.system),
                    Some(Experiment::Check(Check::Drivers(args))) => Some(&args.system),
                    Some(_) => None,
                };
                is_own(system.and_then(|system| system.database_url.as_ref()))
            }
            _ => false,
        }
    }
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that somebody types")]
pub(crate) struct UpArgs {
    /// Port of the load balancer on 127.0.0.1; 0 takes any free one
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// Tasks per service: a number for all, or SERVICE=NUMBER for one; may be repeated and mixed [default: 1]
    #[arg(long, value_name = "N | SERVICE=N", value_delimiter = ',', value_parser = parse_tasks)]
    pub(crate) tasks: Vec<TasksFor>,
    /// CPU of each task in Fargate's units (256 = a quarter of a vCPU); unset: the whole machine
    #[arg(long, value_name = "UNITS")]
    pub(crate) task_cpu: Option<TaskCpu>,
    /// Keep nothing: use a temporary folder that is removed at the end (rows in a database that was given stay there)
    #[arg(long, conflicts_with = "state_dir")]
    pub(crate) ephemeral: bool,
    /// Folder of the database, documents, keys and logs
    #[arg(long, value_name = "FOLDER", default_value = DEFAULT_STATE_DIR)]
    pub(crate) state_dir: PathBuf,
    /// Who keeps users and passwords. cognito is the user pool of COGNITO_USER_POOL_ID and COGNITO_CLIENT_ID where they are set, else a
    /// double, which COGNITO_DOUBLE_* describe (`datum cognito-double --help`)
    #[arg(long, value_enum, default_value_t = Identity::Local)]
    pub(crate) identity: Identity,
    /// Show the tasks' logs on screen; their files are written anyway
    #[arg(long)]
    pub(crate) logs: bool,
    /// Use this database (an administrator's URL) instead of an own PostgreSQL
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Change the passwords of the services' roles on that database's server even if another system uses them
    #[arg(long, env = "DATUM_TAKE_OVER_ROLES", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) take_over_roles: bool,
    /// Throttling of failed logins; off is for load tests [default: AUTH_THROTTLE of the environment, else on]
    #[arg(long, value_enum)]
    pub(crate) throttle: Option<Switch>,
    /// Pass a variable to every task; may be repeated (`datum task auth --help` lists them)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) set: Vec<(String, String)>,
    /// Stop when standard input ends: it is a pipe that the parent holds, so that the system never outlives it
    #[arg(long, hide = true)]
    pub(crate) lifeline: bool,
}

/// Where the state lives when nobody says.
pub(crate) const DEFAULT_STATE_DIR: &str = ".datum";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Identity {
    /// The auth service itself
    #[default]
    Local,
    /// Amazon Cognito
    Cognito,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// One `--tasks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TasksFor {
    All(u16),
    One(Service, u16),
}

pub(crate) fn parse_tasks(text: &str) -> Result<TasksFor, String> {
    let count = |text: &str| match text.parse() {
        Ok(count) if (1..=MAX_TASKS).contains(&count) => Ok(count),
        _ => Err(format!("`{text}` is not a number from 1 to {MAX_TASKS}")),
    };
    match text.split_once('=') {
        Some((service, number)) => Ok(TasksFor::One(service.parse()?, count(number)?)),
        None => Ok(TasksFor::All(count(text)?)),
    }
}

pub(crate) fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Numbers for all services first, then those for one, in whatever order they were typed.
pub(crate) fn count_tasks(tasks: &[TasksFor]) -> TaskCounts {
    let all = tasks.iter().rev().find_map(|it| if let TasksFor::All(count) = it { Some(*count) } else { None });
    tasks.iter().fold(TaskCounts::each(all.unwrap_or(1)), |counts, it| match it {
        TasksFor::One(service, count) => counts.with(*service, *count),
        TasksFor::All(_) => counts,
    })
}

/// Which of the running systems is meant.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WhichArgs {
    /// The one with this state folder [default: the one in .datum, else the only one that runs]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The one whose load balancer has this port
    #[arg(long, conflicts_with = "state_dir")]
    pub(crate) port: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PopulateArgs {
    /// How many; those that are there already count, and nobody is removed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=loadgen::dataset::MAX_USERS))]
    pub(crate) users: u64,
    /// Which users: emails, passwords and ids follow from the seed and a number
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Distinct passwords, and precomputed hashes, that the users share
    #[arg(
        long, value_name = "K", default_value_t = loadgen::dataset::DEFAULT_HASHES,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) hashes: u32,
    /// What a hash costs, as the auth service is configured (AUTH_ARGON2_MEMORY_KIB)
    #[arg(long, value_name = "KIB", default_value_t = 19_456, value_parser = clap::value_parser!(u32).range(8..=1_048_576))]
    pub(crate) argon2_memory_kib: u32,
    /// What a hash costs, as the auth service is configured (AUTH_ARGON2_ITERATIONS)
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) argon2_iterations: u32,
    /// The database (an administrator's URL) [default: that of the running system]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    #[command(flatten)]
    pub(crate) which: WhichArgs,
}

impl PopulateArgs {
    /// Whether a running system was named. That comes before a URL, which may stand in the environment for other purposes.
    pub(crate) fn names_a_system(&self) -> bool {
        self.which.state_dir.is_some() || self.which.port.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// Only the tasks of this service
    pub(crate) service: Option<Service>,
    /// How long each new task may take to become ready; the old one stays where it does not
    #[arg(long, value_name = "SECONDS", default_value_t = stack::READY_WITHIN.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) which: WhichArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Only this task (`auth-1`) or this service (`auth`)
    #[arg(value_parser = parse_log_source)]
    pub(crate) task: Option<LogSource>,
    /// Go on as lines are written
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// How many of the last lines to begin with, of each task
    #[arg(long, short = 'n', default_value_t = 20, value_name = "LINES")]
    pub(crate) lines: usize,
    #[command(flatten)]
    pub(crate) which: WhichArgs,
}

/// Whose logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogSource {
    Service(Service),
    Task(TaskId),
}

fn parse_log_source(text: &str) -> Result<LogSource, String> {
    if let Ok(service) = text.parse() {
        return Ok(LogSource::Service(service));
    }
    text.parse().map(LogSource::Task)
}

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct TaskArgs {
    /// auth, actor or document; `datum task auth --help` lists the variables
    pub(crate) service: Service,
    #[command(flatten)]
    pub(crate) forwarded: ForwardedArgs,
}

/// Read by the part itself: `--help` lists its variables.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ForwardedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub(crate) arguments: Vec<OsString>,
}

impl ForwardedArgs {
    /// Whether the variables should be listed; anything but that is an error, which names it.
    pub(crate) fn wants_help(&self) -> Result<bool, String> {
        match self.arguments.first() {
            None => Ok(false),
            Some(argument) if argument == "--help" || argument == "-h" => Ok(true),
            Some(argument) => {
                Err(format!("unexpected argument `{}`: the environment configures it", argument.display()))
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct HealthcheckArgs {
    /// What to ask, over plain HTTP [default: /live on the PORT of the environment, else 8080]
    pub(crate) url: Option<String>,
    /// How long to wait for the whole answer
    #[arg(long, default_value_t = 3_000, value_name = "MILLISECONDS")]
    pub(crate) timeout_ms: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Result folders, folders of several of them, or k6's outputs (json, csv, summary, end-of-test text; also gzipped)
    #[arg(required = true, value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,
    /// Where to write report.md and report.html [default: beside the results]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [ReportFormat::Md, ReportFormat::Html])]
    pub(crate) format: Vec<ReportFormat>,
    /// Its title [default: made from the scenarios]
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Published figures to stand beside its own [default: phase4 for runs of `datum bench phase4`, else none]
    #[arg(long, value_enum)]
    pub(crate) reference: Option<ReportReference>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// report.md
    Md,
    /// report.html, one self-contained page
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportReference {
    /// The performance envelope at 200 virtual users on ECS
    Phase4,
    /// None
    None,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The first group: a result, a folder of several, or several separated by commas
    #[arg(value_name = "A", value_parser = parse_group)]
    pub(crate) a: ResultGroup,
    /// The second group, alike
    #[arg(value_name = "B", value_parser = parse_group)]
    pub(crate) b: ResultGroup,
    /// Identical runs whose differences are noise, or the noise-floor.json of `datum bench aa`
    #[arg(long, value_name = "RESULT", num_args = 1..)]
    pub(crate) noise: Vec<PathBuf>,
}

/// Results that repeat one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultGroup(pub(crate) Vec<PathBuf>);

fn parse_group(text: &str) -> Result<ResultGroup, String> {
    let paths: Vec<PathBuf> = text.split(',').map(PathBuf::from).collect();
    if paths.iter().any(|path| path.as_os_str().is_empty()) {
        return Err("a result without a name".to_owned());
    }
    Ok(ResultGroup(paths))
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Print a new signing key (ES256, PKCS#8, PEM) for AUTH_SIGNING_KEYS
    Generate {
        /// Write it to this file instead, readable by its owner only; a file that is there stays as it is
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct OpenapiArgs {
    /// Only this service
    #[arg(long)]
    pub(crate) service: Option<Service>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn up(arguments: &[&str]) -> Result<UpArgs, clap::Error> {
        let cli = Cli::try_parse_from(["datum", "up"].iter().chain(arguments))?;
        match cli.command {
            Command::Up(up) => Ok(*up),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn tasks_are_for_all_for_one_or_mixed_in_any_order() {
        let counts = |arguments: &[&str]| {
            let counts = count_tasks(&up(arguments).expect("valid").tasks);
            Service::ALL.map(|service| counts.of(service))
        };
        assert_eq!(counts(&[]), [1, 1, 1]);
        assert_eq!(counts(&["--tasks", "2"]), [2, 2, 2]);
        assert_eq!(counts(&["--tasks", "auth=3"]), [3, 1, 1]);
        assert_eq!(counts(&["--tasks", "auth=3", "--tasks", "2"]), [3, 2, 2]);
        assert_eq!(counts(&["--tasks", "2,document=4,actor=1"]), [2, 1, 4]);
        for wrong in ["0", "65", "-1", "many", "billing=2", "auth=", "auth=0", "=3", ""] {
            assert!(up(&["--tasks", wrong]).is_err(), "--tasks {wrong} was accepted");
        }
    }

    #[test]
    fn options_are_checked_when_they_are_typed() {
        assert_eq!(up(&["--task-cpu", "256"]).expect("valid").task_cpu.map(TaskCpu::units), Some(256));
        assert!(up(&["--task-cpu", "300"]).is_err());
        assert!(up(&["--ephemeral", "--state-dir", "x"]).is_err());
        assert!(up(&["--port", "70000"]).is_err());
        assert_eq!(up(&["--set", "A=b=c"]).expect("valid").set, [("A".to_owned(), "b=c".to_owned())]);
        assert!(up(&["--set", "A"]).is_err());
        assert_eq!(up(&["--throttle", "off"]).expect("valid").throttle, Some(Switch::Off));
    }

    #[test]
    fn only_commands_without_a_given_database_have_their_own() {
        let given = "--database-url postgres://db/x";
        let has_own = |line: &str| {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
            cli.command.has_own_database()
        };
        for command in ["up", "populate --users 1", "bench smoke", "bench aa smoke", "bench check drivers"] {
            assert!(has_own(&format!("datum {command}")), "{command}");
            assert!(!has_own(&format!("datum {command} {given}")), "{command} {given}");
        }
        assert!(has_own(&format!("datum populate --users 1 --port 1 {given}")));
        assert!(has_own("datum bench phase4") && has_own("datum bench selftest"));
        for command in ["migrate", "task auth", "status", "openapi"] {
            assert!(!has_own(&format!("datum {command}")), "{command}");
        }
    }

    #[test]
    fn groups_to_compare_are_separated_by_commas_and_noise_is_a_list() {
        let cli = Cli::try_parse_from(["datum", "compare", "a1,a2", "b", "--noise", "n1", "n2"]).expect("parsed");
        let Command::Compare(compare) = cli.command else { panic!("{:?}", cli.command) };
        assert_eq!((compare.a.0.len(), compare.b.0.len(), compare.noise.len()), (2, 1, 2));
        assert!(Cli::try_parse_from(["datum", "compare", "a,", "b"]).is_err());
        assert!(Cli::try_parse_from(["datum", "compare", "a"]).is_err());
        assert!(Cli::try_parse_from(["datum", "report"]).is_err());
        assert!(Cli::try_parse_from(["datum", "report", "a", "--format", "pdf"]).is_err());
    }

    #[test]
    fn logs_are_of_a_task_or_of_a_service() {
        assert_eq!(parse_log_source("auth"), Ok(LogSource::Service(Service::Auth)));
        assert_eq!(parse_log_source("actor-2"), Ok(LogSource::Task(TaskId::new(Service::Actor, 2))));
        assert!(parse_log_source("actor2").is_err());
    }

    #[test]
    fn a_task_leaves_help_to_the_service() {
        let cli = Cli::try_parse_from(["datum", "task", "auth", "--help"]).expect("parsed");
        let Command::Task(task) = cli.command else { panic!("{:?}", cli.command) };
        assert_eq!((task.service, task.forwarded.arguments), (Service::Auth, vec!["--help".into()]));
    }
}
