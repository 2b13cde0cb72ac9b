//! How an own system is started, and what its capsule says of that.

use std::collections::BTreeMap;

use envelope::result::{PoolSize, StackFacts};
use service_kit::config::{self, Environment};
use service_kit::database::DatabaseConfig;
use stack::cpu_quota::TaskCpu;
use stack::environment::is_passed_on;
use stack::{Service, TaskCounts};

use crate::bench::args::{PoolArg, SystemArgs, TaskSizeArgs};
use crate::bench::error::BenchError;
use crate::cli::{Identity, count_tasks};

/// What stands in the capsule in place of a secret.
const WITHHELD: &str = "(withheld)";

/// How the names begin of what concerns user pools, given ones and the double's.
pub(super) const COGNITO: &str = "COGNITO_";

/// How an own system is started.
#[derive(Debug, Clone)]
pub(in crate::bench) struct StackSettings {
    pub(in crate::bench) tasks: TaskCounts,
    pub(in crate::bench) task_cpu: Option<TaskCpu>,
    /// Variables of every task.
    pub(in crate::bench) set: BTreeMap<String, String>,
    /// An administrator's URL of a database to use.
    pub(in crate::bench) database_url: Option<String>,
    /// A known delay in a known place.
    pub(in crate::bench) delay: Option<Delay>,
    /// The Cognito double as the identity provider; `None` for accounts of its own.
    pub(in crate::bench) double: Option<Double>,
    /// Whether what the shell says about user pools counts: a pool that it names takes the double's place. Experiments with the
    /// double itself want no other.
    pub(in crate::bench) is_pool_welcome: bool,
}

/// How the Cognito double behaves, in the words of its variables; empty for at once and without a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::bench) struct Double {
    /// `COGNITO_DOUBLE_LATENCY`
    pub(in crate::bench) latency: String,
    /// `COGNITO_DOUBLE_QUOTAS`
    pub(in crate::bench) quotas: String,
}

impl Double {
    /// Its variables, those that say something.
    fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let variables = [("COGNITO_DOUBLE_LATENCY", &self.latency), ("COGNITO_DOUBLE_QUOTAS", &self.quotas)];
        variables.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, value.clone()))
    }
}

/// A known delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::bench) enum Delay {
    /// In a stage of every task: `db:50ms`.
    Stage(String),
    /// In the balancer, before it forwards a request: `50ms`.
    Forward(String),
}

impl Default for StackSettings {
    fn default() -> Self {
        Self::unchecked(&SystemArgs::default())
    }
}

impl StackSettings {
    /// What was typed. Pools that no task would take are refused here, before anything is started.
    pub(in crate::bench) fn new(args: &SystemArgs) -> Result<Self, BenchError> {
        let settings = Self::unchecked(args);
        match read_pool(&settings.set) {
            Ok(_) => Ok(settings),
            Err(reason) => Err(BenchError::Usage(format!("--pool-max, --pool-min: {reason}"))),
        }
    }

    fn unchecked(args: &SystemArgs) -> Self {
        let TaskSizeArgs { task_cpu, pool_max, pool_min, set } = &args.size;
        let mut set: BTreeMap<String, String> = set.iter().cloned().collect();
        // Six logins of one account at once are answered 429: a load test would measure the throttle.
        set.entry("AUTH_THROTTLE".to_owned()).or_insert_with(|| "off".to_owned());
        for (name, value) in [("DB_POOL_MAX", pool_max), ("DB_POOL_MIN", pool_min)] {
            if let Some(value) = value {
                set.insert(name.to_owned(), value.to_string());
            }
        }
        let double = (args.accounts.identity == Identity::Cognito).then(|| Double {
            latency: args.accounts.cognito_latency.clone().unwrap_or_default(),
            quotas: args.accounts.cognito_quotas.clone().unwrap_or_default(),
        });
        Self {
            tasks: count_tasks(&args.tasks),
            task_cpu: *task_cpu,
            set,
            database_url: args.database_url.clone(),
            delay: None,
            double,
            is_pool_welcome: args.accounts.identity == Identity::Cognito,
        }
    }

    /// The same with so many tasks of every service.
    pub(in crate::bench) fn with_tasks(mut self, tasks: u16) -> Self {
        self.tasks = TaskCounts::each(tasks);
        self
    }

    /// The same with other pools.
    pub(in crate::bench) fn with_pool(mut self, pool: PoolArg) -> Self {
        self.set.insert("DB_POOL_MAX".to_owned(), pool.max.to_string());
        self.set.insert("DB_POOL_MIN".to_owned(), pool.min.to_string());
        self
    }

    /// The arguments of `datum` that start it.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["up", "--ephemeral", "--port", "0", "--lifeline", "--tasks"].map(Into::into).into();
        arguments.push(Service::ALL.map(|service| format!("{service}={}", self.tasks.of(service))).join(","));
        if let Some(cpu) = self.task_cpu {
            arguments.extend(["--task-cpu".to_owned(), cpu.units().to_string()]);
        }
        for (name, value) in &self.set {
            arguments.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        if self.double.is_some() {
            arguments.extend(["--identity", "cognito"].map(Into::into));
        }
        let delay = self.delay.as_ref().map(|delay| match delay {
            Delay::Stage(delay) => ("FAULT_STAGE_DELAY", delay.as_str()),
            Delay::Forward(delay) => ("FAULT_FORWARD_DELAY", delay.as_str()),
        });
        for (name, value) in delay.into_iter().flat_map(|delay| [delay, ("DATUM_ALLOW_FAULTS", "1")]) {
            arguments.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        arguments
    }

    /// Variables of the process itself.
    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut environment = Vec::new();
        if let Some(url) = &self.database_url {
            environment.push(("DATABASE_URL", url.clone()));
        }
        environment.extend(self.double.iter().flat_map(Double::variables));
        environment
    }

    /// What the capsule says. `shell` is the environment that `datum up` inherits.
    pub(super) fn facts(&self, shell: &BTreeMap<String, String>, postgres: String) -> StackFacts {
        let reaches = |name: &str| is_chosen(name) && (self.is_pool_welcome || !name.starts_with(COGNITO));
        let mut variables: BTreeMap<String, String> =
            shell.iter().filter(|(name, value)| reaches(name) && !value.is_empty()).map(clone_pair).collect();
        variables.extend(self.set.iter().map(clone_pair));
        if let Some(double) = &self.double {
            variables.insert("AUTH_IDENTITY_PROVIDER".to_owned(), "cognito".to_owned());
            variables.extend(double.variables().map(|(name, value)| (name.to_owned(), value)));
        }
        let pool = pool_size(&variables);
        for (name, value) in &mut variables {
            if is_secret(name, value) {
                WITHHELD.clone_into(value);
            }
        }
        match &self.delay {
            Some(Delay::Stage(delay)) => drop(variables.insert("FAULT_STAGE_DELAY".to_owned(), delay.clone())),
            Some(Delay::Forward(delay)) => drop(variables.insert("FAULT_FORWARD_DELAY".to_owned(), delay.clone())),
            None => {}
        }
        let by_service = |value: u32| Service::ALL.map(|service| (service.to_string(), value)).into();
        StackFacts {
            tasks: Service::ALL.map(|service| (service.to_string(), u32::from(self.tasks.of(service)))).into(),
            pools: Service::ALL.map(|service| (service.to_string(), pool)).into(),
            task_cpu_units: self.task_cpu.map_or_else(BTreeMap::new, |cpu| by_service(cpu.units())),
            settings: variables,
            postgres,
        }
    }

    /// A line for whoever watches: what matters for the numbers.
    pub(in crate::bench) fn describe(&self) -> String {
        let counts = Service::ALL.map(|service| self.tasks.of(service));
        let tasks = if counts.iter().all(|count| *count == counts[0]) {
            format!("{} {} per service", counts[0], if counts[0] == 1 { "task" } else { "tasks" })
        } else {
            Service::ALL.map(|service| format!("{service} {}", self.tasks.of(service))).join(", ")
        };
        let pool = pool_size(&self.set);
        let cpu = self.task_cpu.map(|cpu| format!(", {} CPU units a task", cpu.units())).unwrap_or_default();
        let throttle = match (&self.double, self.throttle_off()) {
            (Some(_), _) => ", login throttling is the pool's",
            (None, true) => ", login throttling OFF",
            (None, false) => "",
        };
        let delay = match &self.delay {
            Some(Delay::Stage(delay)) => format!(", delayed on purpose: {delay}"),
            Some(Delay::Forward(delay)) => format!(", delayed on purpose: balancer {delay}"),
            None => String::new(),
        };
        format!("{tasks}, pools {}/{}{cpu}{throttle}{delay}", pool.max, pool.min)
    }

    /// A line about who keeps the accounts, where that is not the system itself.
    pub(in crate::bench) fn describe_identity(&self, facts: &StackFacts) -> Option<String> {
        self.double.as_ref()?;
        let of = |name: &str| facts.settings.get(name).map(String::as_str).filter(|value| !value.is_empty());
        Some(match of("COGNITO_USER_POOL_ID") {
            Some(pool) => format!("user pool {pool} at {}", of("COGNITO_ENDPOINT_URL").unwrap_or("AWS")),
            None => format!(
                "Cognito double, latency {}, quotas {}",
                of("COGNITO_DOUBLE_LATENCY").unwrap_or("none"),
                of("COGNITO_DOUBLE_QUOTAS").unwrap_or("none")
            ),
        })
    }

    fn throttle_off(&self) -> bool {
        // A user pool locks out whom it wants.
        self.double.is_none() && self.set.get("AUTH_THROTTLE").is_some_and(|value| value == "off")
    }
}

fn clone_pair((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// Whether a variable of the shell reaches the tasks and is a choice, not a circumstance such as PATH.
fn is_chosen(name: &str) -> bool {
    let is_circumstance =
        matches!(name, "PATH" | "TMPDIR" | "LANG" | "TZ" | "RUST_BACKTRACE" | "SSL_CERT_DIR" | "SSL_CERT_FILE");
    is_passed_on(name) && !is_circumstance
}

/// Names of secrets, and URLs with a password in them.
pub(in crate::bench) fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let named = ["SECRET", "PASSWORD", "CREDENTIAL", "HEADERS"].iter().any(|part| name.contains(part));
    let ends = ["KEY", "KEYS", "TOKEN"].iter().any(|part| name.ends_with(part));
    named || ends || url::Url::parse(value).is_ok_and(|url| url.password().is_some())
}

/// The pool as the tasks read it. What they refuse is no size: the start then fails, with the right words.
fn pool_size(variables: &BTreeMap<String, String>) -> PoolSize {
    read_pool(variables).unwrap_or(PoolSize { min: 0, max: 0 })
}

fn read_pool(variables: &BTreeMap<String, String>) -> Result<PoolSize, String> {
    let mut pairs = variables.clone();
    // A pool has a database, wherever.
    pairs.insert("DATABASE_URL".to_owned(), "postgres://datum@localhost/datum".to_owned());
    let database = config::load(&Environment::from_pairs(pairs), DatabaseConfig::read);
    let database = database.map_err(|error| error.to_string())?;
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(PoolSize { min: narrow(database.min_connections()), max: narrow(database.max_connections()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::args::AccountsArgs;
    use crate::cli::TasksFor;

    fn args(set: &[(&str, &str)]) -> SystemArgs {
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        SystemArgs { size: TaskSizeArgs { set, ..TaskSizeArgs::default() }, ..SystemArgs::default() }
    }

    fn shell(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn throttling_is_off_unless_it_is_asked_for_and_the_capsule_says_so() {
        let settings = StackSettings::default();
        assert!(settings.arguments().contains(&"AUTH_THROTTLE=off".to_owned()));
        assert_eq!(settings.facts(&shell(&[]), "15".into()).settings["AUTH_THROTTLE"], "off");
        assert!(settings.describe().contains("throttling OFF"), "{}", settings.describe());
        let settings = StackSettings::new(&args(&[("AUTH_THROTTLE", "on")])).expect("valid");
        assert!(!settings.describe().contains("OFF"));
    }

    #[test]
    fn tasks_pools_and_quota_are_in_the_capsule() {
        let settings = StackSettings::new(&SystemArgs {
            tasks: vec![TasksFor::All(2), TasksFor::One(Service::Auth, 3)],
            size: TaskSizeArgs {
                task_cpu: Some("256".parse().expect("a size")),
                pool_max: Some(9),
                ..TaskSizeArgs::default()
            },
            ..SystemArgs::default()
        })
        .expect("valid");
        let facts = settings.facts(&shell(&[]), "15".into());
        assert_eq!((facts.tasks["auth"], facts.tasks["actor"]), (3, 2));
        assert_eq!(facts.pools["document"], PoolSize { min: 5, max: 9 });
        assert_eq!(facts.task_cpu_units["actor"], 256);
        assert_eq!(
            StackSettings::default().facts(&shell(&[]), "15".into()).pools["auth"],
            PoolSize { min: 5, max: 14 }
        );
        let arguments = settings.arguments().join(" ");
        assert!(arguments.contains("--tasks auth=3,actor=2,document=2 --task-cpu 256"), "{arguments}");
    }

    #[test]
    fn pools_that_no_task_would_take_are_refused_at_once() {
        let sized = |pool_max, pool_min| {
            let size = TaskSizeArgs { pool_max, pool_min, ..TaskSizeArgs::default() };
            StackSettings::new(&SystemArgs { size, ..SystemArgs::default() })
        };
        // Also against the default of the other one.
        for (max, min) in [(Some(3), Some(9)), (None, Some(99))] {
            let error = sized(max, min).expect_err("refused");
            assert_eq!(error.exit_code(), 64);
            assert!(error.to_string().contains("DB_POOL_MIN must not be above DB_POOL_MAX"), "{error}");
        }
        assert!(sized(Some(9), Some(9)).is_ok());
    }

    #[test]
    fn the_shells_settings_are_told_and_no_secret_is() {
        let settings = StackSettings::new(&args(&[("X_URL", "https://me:pw@example.com")])).expect("valid");
        let facts = settings.facts(
            &shell(&[
                ("LOG_LEVEL", "debug"),
                ("DB_POOL_MAX", "3"),
                ("AUTH_COGNITO_CLIENT_SECRET", "hunter2"),
                ("HOME", "/root"),
                ("PATH", "/bin"),
                ("AUTH_ACCESS_TOKEN_TTL_SECONDS", "60"),
            ]),
            "15".into(),
        );
        assert_eq!((facts.settings["LOG_LEVEL"].as_str(), facts.pools["auth"].max), ("debug", 3));
        assert_eq!(facts.settings["AUTH_COGNITO_CLIENT_SECRET"], WITHHELD);
        assert_eq!(facts.settings["X_URL"], WITHHELD);
        assert_eq!(facts.settings["AUTH_ACCESS_TOKEN_TTL_SECONDS"], "60");
        assert!(!facts.settings.contains_key("HOME") && !facts.settings.contains_key("PATH"));
    }

    #[test]
    fn the_shells_user_pool_counts_only_where_it_was_asked_for() {
        let pool = shell(&[("COGNITO_USER_POOL_ID", "us-east-1_x"), ("COGNITO_DOUBLE_LATENCY", "*=1s")]);
        let accounts =
            AccountsArgs { identity: Identity::Cognito, cognito_latency: Some("*=20ms".into()), cognito_quotas: None };
        let asked = StackSettings::new(&SystemArgs { accounts, ..SystemArgs::default() }).expect("valid");
        assert!(asked.arguments().join(" ").contains("--identity cognito"));
        assert_eq!(asked.environment(), [("COGNITO_DOUBLE_LATENCY", "*=20ms".to_owned())]);
        let facts = asked.facts(&pool, "15".into());
        assert_eq!(facts.settings["COGNITO_USER_POOL_ID"], "us-east-1_x");
        assert_eq!(asked.describe_identity(&facts).as_deref(), Some("user pool us-east-1_x at AWS"));
        let shell = shell(&[("COGNITO_DOUBLE_QUOTAS", "default")]);
        assert_eq!(
            asked.describe_identity(&asked.facts(&shell, "15".into())).as_deref(),
            Some("Cognito double, latency *=20ms, quotas default")
        );
        assert_eq!(StackSettings::default().describe_identity(&facts), None);
        assert_eq!(facts.settings["COGNITO_DOUBLE_LATENCY"], "*=20ms");
        let experiment = StackSettings { double: Some(Double::default()), ..StackSettings::default() };
        assert!(!experiment.facts(&pool, "15".into()).settings.contains_key("COGNITO_DOUBLE_LATENCY"));
    }

    #[test]
    fn a_delay_is_passed_to_the_tasks_or_to_the_balancer() {
        let stage = StackSettings { delay: Some(Delay::Stage("db:50ms".into())), ..StackSettings::default() };
        assert!(stage.arguments().contains(&"FAULT_STAGE_DELAY=db:50ms".to_owned()));
        assert!(stage.environment().is_empty());
        assert_eq!(stage.facts(&shell(&[]), "15".into()).settings["FAULT_STAGE_DELAY"], "db:50ms");
        let forward = StackSettings { delay: Some(Delay::Forward("50ms".into())), ..StackSettings::default() };
        assert!(forward.arguments().contains(&"FAULT_FORWARD_DELAY=50ms".to_owned()));
        assert!(!forward.arguments().join(" ").contains("FAULT_STAGE_DELAY"));
    }
}
