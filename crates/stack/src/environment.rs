//! The environment of a task: what the stack wires, what the user chose, and nothing else of the user's shell.
//!
//! A task starts from an empty environment. So no credentials of the user reach it, and a variable that happens to be
//! set in one shell cannot make two measurements differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use service_kit::config::{self, Environment, Secret};
use service_kit::faults::{STAGE_DELAY_VARIABLE, StageDelay};

use crate::cpu_quota::{JOIN_VARIABLE, TaskCpu};
use crate::error::StackError;
use crate::identity::{self, IdentityWiring};
use crate::service::{Service, TaskId};

/// Variables by name, sorted.
pub type Variables = BTreeMap<String, String>;

/// `DB_POOL_MAX` where nobody sets it, as service-kit has it.
const DEFAULT_POOL_MAX: u32 = 14;

/// Switches the local provider's throttling of failed logins.
const THROTTLE_VARIABLE: &str = "AUTH_THROTTLE";

/// What no task runs without: these can be set by nobody else.
const FIXED: [&str; 7] =
    ["DATABASE_URL", "DB_PASSWORD", "DATUM_LIFELINE", JOIN_VARIABLE, "HOST", "PORT", "TRUSTED_PROXY_HOPS"];

/// What connects the parts of one stack. `--set` may point elsewhere; the user's environment is not asked, because it
/// often holds such names for other programs.
const WIRED: [&str; 10] = [
    "AUTH_ISSUER",
    "AUTH_JWKS_URL",
    "AUTH_AUDIENCE",
    "AUTH_SIGNING_KEYS",
    "AUTH_SIGNING_KEYS_FILE",
    "AUTH_IDENTITY_PROVIDER",
    "OTEL_RESOURCE_ATTRIBUTES",
    "S3_BUCKET",
    "S3_ENDPOINT",
    "S3_FORCE_PATH_STYLE",
];

/// Settings of the services, by the beginning of their names. Those of Cognito reach a task only where a user pool keeps the accounts.
const PASSED_PREFIXES: [&str; 10] =
    ["AUTH_", "ACTOR_", "COGNITO_", "DOCUMENT_", "DB_", "LOG_", "OTEL_", "S3_", "SHUTDOWN_", "TRACE_"];

/// Settings of the services without a prefix.
const PASSED: [&str; 7] = [
    "BODY_IDLE_TIMEOUT_MS",
    "DATUM_ENVIRONMENT",
    "HEADER_READ_TIMEOUT_MS",
    "MAX_CONNECTIONS",
    "REQUEST_TIMEOUT_MS",
    "WRITE_IDLE_TIMEOUT_MS",
    "WORKER_THREADS",
];

/// What a process needs of its surroundings.
const SURROUNDINGS: [&str; 7] = ["LANG", "PATH", "RUST_BACKTRACE", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ"];

/// How the names begin that libraries in a task read on their own: they may be typed, and cannot be checked.
const LIBRARIES_PREFIXES: [&str; 4] = ["AWS_", "MIMALLOC_", "OTEL_", "RUST_"];

/// Whether a variable of the user's environment reaches the tasks.
#[must_use]
pub fn is_passed_on(name: &str) -> bool {
    let wired = FIXED.contains(&name) || WIRED.contains(&name);
    let named = PASSED.contains(&name) || SURROUNDINGS.contains(&name);
    !wired && (named || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

/// What the user chose: from their environment, and with `--set`.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    environment: Variables,
    set: Variables,
    stage_delay: Option<StageDelay>,
    forward_delay: Option<Duration>,
}

impl Chosen {
    /// Takes from `environment` what is passed on, and from `set` everything.
    ///
    /// # Errors
    /// `set` holds a variable that only the stack can decide, something that is no variable's name, or a fault that is not
    /// allowed.
    pub fn new(environment: &Variables, set: &Variables) -> Result<Self, StackError> {
        for name in set.keys() {
            if FIXED.contains(&name.as_str()) {
                return Err(StackError::Configuration(format!(
                    "--set {name}: the stack itself decides {name} for each task"
                )));
            }
            let well_formed = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !well_formed {
                return Err(StackError::Configuration(format!("--set {name}: not the name of a variable")));
            }
        }
        let environment = environment
            .iter()
            .filter(|(name, value)| is_passed_on(name) && !value.is_empty())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        // Only what was typed: a fault in somebody's shell must not slow a system down.
        let typed = Environment::from_pairs(set.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let (stage_delay, forward_delay) =
            config::load(&typed, |settings| (StageDelay::read(settings), balancer::read_forward_delay(settings)))
                .map_err(|errors| StackError::Configuration(format!("--set: {}", errors.0.join("; "))))?;
        Ok(Self { environment, set: set.clone(), stage_delay, forward_delay })
    }

    /// What was typed and is none of `read`, the variables that the services read: a slip of the pen would go unnoticed.
    #[must_use]
    pub fn unknown(&self, read: &BTreeSet<&'static str>) -> Vec<&str> {
        let is_known = |name: &str| {
            read.contains(name)
                || name == balancer::FORWARD_DELAY_VARIABLE
                // With a user pool nobody reads it, and load tests switch throttling off whoever keeps the accounts.
                || name == THROTTLE_VARIABLE
                || SURROUNDINGS.contains(&name)
                || LIBRARIES_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        self.set.keys().map(String::as_str).filter(|name| !is_known(name)).collect()
    }

    /// How accounts of a user pool are confirmed.
    pub(crate) fn confirmation(&self) -> Option<&str> {
        identity::confirmation(&self.environment, &self.set)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.set.get(name).or_else(|| self.environment.get(name)).map(String::as_str)
    }

    /// The most connections that each task opens.
    #[must_use]
    pub fn pool_max(&self) -> u32 {
        // Where it is no number the task itself refuses it, with the right words.
        self.get("DB_POOL_MAX").and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_POOL_MAX)
    }

    /// How long the balancer holds every request up, where measuring itself is tested.
    #[must_use]
    pub fn forward_delay(&self) -> Option<Duration> {
        self.forward_delay
    }

    /// What slows requests down on purpose, as `NAME=VALUE`.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let stage = self.stage_delay.map(|delay| format!("{STAGE_DELAY_VARIABLE}={delay}"));
        let forward =
            self.forward_delay.map(|delay| format!("{}={}ms", balancer::FORWARD_DELAY_VARIABLE, delay.as_millis()));
        stage.into_iter().chain(forward).collect()
    }

    /// Whether login throttling is switched off.
    #[must_use]
    pub fn throttle_off(&self) -> bool {
        self.get(THROTTLE_VARIABLE)
            .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "off" | "false" | "0"))
    }
}

/// Where the document service finds its object store.
#[derive(Debug, Clone)]
pub struct ObjectStoreAccess {
    /// `http://127.0.0.1:port`.
    pub endpoint: String,
    /// The bucket's name.
    pub bucket: String,
    /// The access key's id.
    pub access_key_id: String,
    /// The secret key.
    pub secret_access_key: Secret,
}

/// What connects the parts of one stack.
#[derive(Debug, Clone)]
pub struct Wiring {
    /// The balancer, as `http://127.0.0.1:8080`; also the issuer's name.
    pub base_url: String,
    /// The database as each service's role sees it.
    pub database_urls: BTreeMap<Service, Secret>,
    /// The object store.
    pub object_store: ObjectStoreAccess,
    /// Who keeps accounts.
    pub identity: IdentityWiring,
    /// The signing key's file.
    pub signing_key: PathBuf,
    /// The CPU quota.
    pub task_cpu: Option<TaskCpu>,
}

/// The whole environment of one process of a task.
#[must_use]
pub fn of_task(wiring: &Wiring, chosen: &Chosen, task: TaskId, port: u16, quota: Option<&Path>) -> Variables {
    let mut variables = Variables::new();
    let mut put = |name: &str, value: &str| {
        variables.insert(name.to_owned(), value.to_owned());
    };
    // The stack deregisters a task before it stops it, so there is no load balancer to wait for.
    put("SHUTDOWN_DELAY_MS", "0");
    if let Some(cpu) = wiring.task_cpu {
        put("WORKER_THREADS", &cpu.whole_cpus().to_string());
    }
    for (name, value) in &chosen.environment {
        if !wiring.identity.withholds(task.service, name) {
            put(name, value);
        }
    }

    put("AUTH_ISSUER", &wiring.base_url);
    put("AUTH_JWKS_URL", &format!("{}/.well-known/jwks.json", wiring.base_url));
    put("AUTH_AUDIENCE", "datum");
    // Two tasks of one service tell themselves apart in traces (OpenTelemetry's resource semantic conventions).
    put("OTEL_RESOURCE_ATTRIBUTES", &format!("service.instance.id={task}"));
    match task.service {
        Service::Auth if matches!(wiring.identity, IdentityWiring::Local) => {
            put("AUTH_IDENTITY_PROVIDER", "local");
            put("AUTH_SIGNING_KEYS_FILE", &wiring.signing_key.to_string_lossy());
        }
        Service::Auth | Service::Actor => {}
        Service::Document => {
            let store = &wiring.object_store;
            put("S3_ENDPOINT", &store.endpoint);
            put("S3_BUCKET", &store.bucket);
            put("S3_FORCE_PATH_STYLE", "on");
            put("AWS_REGION", "us-east-1");
            put("AWS_ACCESS_KEY_ID", &store.access_key_id);
            put("AWS_SECRET_ACCESS_KEY", store.secret_access_key.expose());
            // Or a wrong key would be followed by seconds of looking for a machine in EC2.
            put("AWS_EC2_METADATA_DISABLED", "true");
        }
    }
    for (name, value) in wiring.identity.variables(task.service).into_iter().flatten() {
        put(&name, &value);
    }
    for (name, value) in &chosen.set {
        put(name, value);
    }

    put("HOST", "127.0.0.1");
    put("PORT", &port.to_string());
    put("TRUSTED_PROXY_HOPS", "1");
    put("DATUM_LIFELINE", "stdin");
    if let Some(url) = wiring.database_urls.get(&task.service) {
        put("DATABASE_URL", url.expose());
    }
    if let Some(procs) = quota {
        put(JOIN_VARIABLE, &procs.to_string_lossy());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn wiring() -> Wiring {
        let url = |service: Service| (service, Secret::new(format!("postgres://datum_{service}:pw@127.0.0.1:1/datum")));
        Wiring {
            base_url: "http://127.0.0.1:8080".into(),
            database_urls: Service::ALL.into_iter().map(url).collect(),
            object_store: ObjectStoreAccess {
                endpoint: "http://127.0.0.1:9".into(),
                bucket: "documents".into(),
                access_key_id: "id".into(),
                secret_access_key: Secret::new("key".into()),
            },
            identity: IdentityWiring::Local,
            signing_key: "/state/keys/signing.pem".into(),
            task_cpu: None,
        }
    }

    fn of(service: Service, chosen: &Chosen) -> Variables {
        of_task(&wiring(), chosen, TaskId::new(service, 1), 4711, None)
    }

    #[test]
    fn each_service_gets_its_own_role_and_only_what_it_needs() {
        let chosen = Chosen::default();
        for service in Service::ALL {
            let env = of(service, &chosen);
            assert!(env["DATABASE_URL"].contains(&format!("datum_{service}")));
            assert_eq!(
                (env["PORT"].as_str(), env["HOST"].as_str(), env["DATUM_LIFELINE"].as_str()),
                ("4711", "127.0.0.1", "stdin")
            );
            assert_eq!(env.contains_key("AUTH_SIGNING_KEYS_FILE"), service == Service::Auth);
            assert_eq!(env.contains_key("AWS_SECRET_ACCESS_KEY"), service == Service::Document);
            assert_eq!(env["OTEL_RESOURCE_ATTRIBUTES"], format!("service.instance.id={service}-1"));
        }
    }

    #[test]
    fn credentials_and_wiring_of_the_users_shell_do_not_reach_a_task() {
        let shell = variables(&[
            ("AWS_ACCESS_KEY_ID", "AKIAUSER"),
            ("AWS_SECRET_ACCESS_KEY", "users"),
            ("AWS_PROFILE", "work"),
            ("HOME", "/home/user"),
            ("DATABASE_URL", "postgres://admin"),
            ("AUTH_ISSUER", "https://elsewhere"),
            ("PORT", "1"),
            ("GITHUB_TOKEN", "x"),
            ("DB_POOL_MAX", "3"),
            ("LOG_LEVEL", ""),
        ]);
        let env = of(Service::Document, &Chosen::new(&shell, &Variables::new()).expect("valid"));
        assert_eq!(env["AWS_ACCESS_KEY_ID"], "id");
        assert_eq!(env["AUTH_ISSUER"], "http://127.0.0.1:8080");
        assert_eq!((env["PORT"].as_str(), env["DB_POOL_MAX"].as_str()), ("4711", "3"));
        for absent in ["AWS_PROFILE", "HOME", "GITHUB_TOKEN", "LOG_LEVEL"] {
            assert!(!env.contains_key(absent), "{absent} reached the task");
        }
    }

    #[test]
    fn set_wins_over_the_shell_and_over_the_wiring_but_not_over_what_is_fixed() {
        let shell = variables(&[("DB_POOL_MAX", "3"), ("AUTH_THROTTLE", "on")]);
        let set = variables(&[("DB_POOL_MAX", "5"), ("AUTH_THROTTLE", "off"), ("S3_ENDPOINT", "http://minio:9000")]);
        let chosen = Chosen::new(&shell, &set).expect("valid");
        assert_eq!(chosen.pool_max(), 5);
        assert!(chosen.throttle_off());
        assert_eq!(of(Service::Document, &chosen)["S3_ENDPOINT"], "http://minio:9000");
        for name in ["PORT", "DATABASE_URL", "DB_PASSWORD", "1X", "A B", ""] {
            assert!(Chosen::new(&shell, &variables(&[(name, "1")])).is_err(), "--set {name} was accepted");
        }
    }

    #[test]
    fn what_nobody_reads_is_unknown() {
        let set = ["DB_POOL_MAX", "DB_POOL_MAXX", "OTEL_SDK_DISABLED", "TZ", "FAULT_FORWARD_DELAY", "HOME"];
        let allowed: Vec<_> = set.iter().map(|name| (*name, "20ms")).chain([("DATUM_ALLOW_FAULTS", "1")]).collect();
        let chosen = Chosen::new(&Variables::new(), &variables(&allowed)).expect("valid");
        assert_eq!(chosen.unknown(&BTreeSet::from(["DB_POOL_MAX", "DATUM_ALLOW_FAULTS"])), ["DB_POOL_MAXX", "HOME"]);
    }

    #[test]
    fn faults_are_typed_and_allowed_or_there_are_none() {
        let faults = [("FAULT_STAGE_DELAY", "db:50ms"), ("FAULT_FORWARD_DELAY", "20ms")];
        let allowed = [faults[0], faults[1], ("DATUM_ALLOW_FAULTS", "1")];

        let chosen = Chosen::new(&Variables::new(), &variables(&allowed)).expect("valid");
        assert_eq!(chosen.faults(), ["FAULT_STAGE_DELAY=db:50ms", "FAULT_FORWARD_DELAY=20ms"]);
        assert_eq!(chosen.forward_delay(), Some(Duration::from_millis(20)));
        let env = of(Service::Actor, &chosen);
        assert_eq!((env["FAULT_STAGE_DELAY"].as_str(), env["DATUM_ALLOW_FAULTS"].as_str()), ("db:50ms", "1"));

        let refused =
            Chosen::new(&variables(&[("DATUM_ALLOW_FAULTS", "1")]), &variables(&faults)).expect_err("refused");
        assert!(refused.to_string().contains("DATUM_ALLOW_FAULTS"), "{refused}");
        assert_eq!(refused.exit_code(), 64);

        let of_the_shell = Chosen::new(&variables(&allowed), &Variables::new()).expect("valid");
        assert!(of_the_shell.faults().is_empty());
        assert!(!of(Service::Actor, &of_the_shell).contains_key("FAULT_STAGE_DELAY"));
    }

    #[test]
    fn a_quota_decides_the_threads_unless_the_user_does() {
        let mut wiring = wiring();
        wiring.task_cpu = Some("256".parse().expect("a size"));
        let task = TaskId::new(Service::Actor, 1);
        let env = of_task(&wiring, &Chosen::default(), task, 1, Some(Path::new("/cg/cgroup.procs")));
        assert_eq!((env["WORKER_THREADS"].as_str(), env[JOIN_VARIABLE].as_str()), ("1", "/cg/cgroup.procs"));
        let chosen = Chosen::new(&variables(&[("WORKER_THREADS", "2")]), &Variables::new()).expect("valid");
        assert_eq!(of_task(&wiring, &chosen, task, 1, None)["WORKER_THREADS"], "2");
    }

    #[test]
    fn throttling_is_on_unless_it_is_switched_off() {
        for (value, off) in [("off", true), ("OFF", true), ("0", true), ("false", true), ("on", false), ("1", false)] {
            let chosen = Chosen::new(&variables(&[("AUTH_THROTTLE", value)]), &Variables::new()).expect("valid");
            assert_eq!(chosen.throttle_off(), off, "{value}");
        }
        assert!(!Chosen::default().throttle_off());
    }
}
