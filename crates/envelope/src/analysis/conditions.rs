//! What a run was made under, and in what runs differ.
//!
//! Two runs repeat one another only where everything here is equal. What a source does not say is `None`, which equals nothing
//! but another `None`: that two runs are alike has to be known. The seed is none of it, for repeats may have seeds of their own.

use std::collections::BTreeMap;
use std::fmt;

use crate::result::{Capsule, Load, PhaseKind, StackFacts};
use crate::run::{Run, SourceKind};

/// A condition that matters for the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aspect {
    /// The scenario with its mix.
    Scenario,
    /// The load model with its numbers.
    Load,
    /// Who knows the accounts.
    IdentityProvider,
    /// Variables of the services that were given.
    Settings,
    /// Tasks of each service.
    Tasks,
    /// Database pools of each task.
    Pools,
    /// CPU quota of each task.
    CpuQuota,
    /// The system: a stack of this machine and its database's version, or an address.
    Target,
    /// Users in the database before the run.
    Dataset,
    /// The program that sent the requests.
    Driver,
    /// How long the load grew.
    Ramp,
    /// How long it was full before measuring began.
    WarmUp,
    /// How long was measured, before anything is cut off as not steady.
    Duration,
    /// The machine of the driver.
    Machine,
    /// The version and revision of Datum.
    Revision,
}

impl Aspect {
    /// In the order in which they are told.
    pub const ALL: [Self; 15] = [
        Self::Scenario,
        Self::Load,
        Self::IdentityProvider,
        Self::Settings,
        Self::Tasks,
        Self::Pools,
        Self::CpuQuota,
        Self::Target,
        Self::Dataset,
        Self::Driver,
        Self::Ramp,
        Self::WarmUp,
        Self::Duration,
        Self::Machine,
        Self::Revision,
    ];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Load => "load",
            Self::IdentityProvider => "identity provider",
            Self::Settings => "settings of the services",
            Self::Tasks => "tasks",
            Self::Pools => "database pools",
            Self::CpuQuota => "CPU quota",
            Self::Target => "target",
            Self::Dataset => "users in the database",
            Self::Driver => "driver",
            Self::Ramp => "ramp",
            Self::WarmUp => "warm-up",
            Self::Duration => "measured time",
            Self::Machine => "machine",
            Self::Revision => "revision of Datum",
        }
    }

    /// Whether it is of how one measures and not of what is measured: nobody compares systems by it.
    #[must_use]
    pub const fn is_of_the_method(self) -> bool {
        matches!(self, Self::Driver | Self::Ramp | Self::WarmUp | Self::Duration | Self::Machine | Self::Dataset)
    }

    /// Whether it is of the load and its course, which a search for capacity varies from trial to trial.
    #[must_use]
    pub const fn is_of_the_load(self) -> bool {
        matches!(self, Self::Load | Self::Ramp | Self::WarmUp | Self::Duration)
    }

    /// What `run` says of it.
    #[must_use]
    pub fn of(self, run: &Run) -> Option<Condition> {
        let capsule = run.capsule.as_ref();
        let stack = capsule.and_then(|capsule| capsule.target.stack.as_ref());
        match self {
            Self::Scenario => capsule.map(scenario),
            Self::Load => run.load.as_ref().map(|load| load_of(load, capsule)),
            Self::IdentityProvider => stack.map(identity_provider),
            Self::Settings => stack.map(settings),
            Self::Tasks => tasks(run),
            Self::Pools => stack.map(|stack| {
                Condition::plain(format!(
                    "pools {}",
                    by_service(&stack.pools, |pool| format!("{}/{}", pool.min, pool.max))
                ))
            }),
            Self::CpuQuota => stack.map(cpu_quota),
            Self::Target => capsule.map(target),
            Self::Dataset => capsule.map(|capsule| match &capsule.dataset {
                None => Condition::plain("no users before"),
                Some(dataset) => Condition {
                    key: format!("{dataset:?}"),
                    shown: format!("{} users before", crate::report::format::count(dataset.users)),
                },
            }),
            Self::Driver => driver(run),
            Self::Ramp => capsule.map(|capsule| phase("ramp", seconds_of(capsule, PhaseKind::Ramp))),
            Self::WarmUp => capsule.map(|capsule| phase("warm-up", seconds_of(capsule, PhaseKind::WarmUp))),
            Self::Duration => capsule.map(|capsule| phase("measured", seconds_of(capsule, PhaseKind::Measure))),
            Self::Machine => capsule.map(|capsule| {
                let machine = &capsule.machine;
                Condition::plain(format!(
                    "{}, {} CPUs, {}",
                    machine.cpu_model,
                    machine.cpus,
                    crate::report::format::bytes(machine.memory_bytes)
                ))
            }),
            Self::Revision => capsule.map(|capsule| Condition::plain(format!("Datum {}", capsule.datum))),
        }
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What one run says of one aspect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Everything of it: equal where the condition is.
    key: String,
    /// For people, short, and so that it needs no name before it.
    shown: String,
}

impl Condition {
    fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { key: text.clone(), shown: text }
    }

    /// Whether it says less than `other` and nothing else.
    pub(super) fn is_part_of(&self, other: &Self) -> bool {
        other.key.strip_prefix(&self.key).is_some_and(|more| more.starts_with(' '))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

/// One aspect in which runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// In what.
    pub aspect: Aspect,
    /// The different conditions in words, in the order in which they first appear; what is not known is `not recorded`.
    pub values: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.aspect, self.values.join(" against "))
    }
}

/// Everything in which these runs differ.
#[must_use]
pub fn differences<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<Difference> {
    let runs: Vec<&Run> = runs.into_iter().collect();
    Aspect::ALL.into_iter().filter_map(|aspect| difference(aspect, &runs)).collect()
}

/// In what these runs differ of one aspect; `None` if in nothing.
fn difference(aspect: Aspect, runs: &[&Run]) -> Option<Difference> {
    let mut found: Vec<Option<Condition>> = Vec::new();
    for run in runs {
        let condition = aspect.of(run);
        if !found.contains(&condition) {
            found.push(condition);
        }
    }
    (found.len() > 1).then(|| Difference { aspect, values: in_words(&found) })
}

/// Different conditions of one aspect, so that each can be told from the others.
pub(crate) fn in_words(conditions: &[Option<Condition>]) -> Vec<String> {
    let is_ambiguous = |condition: &Condition| {
        conditions.iter().flatten().any(|other| other.shown == condition.shown && other.key != condition.key)
    };
    let words = |condition: &Option<Condition>| match condition {
        None => crate::report::format::NOT_RECORDED.to_owned(),
        Some(condition) if is_ambiguous(condition) => condition.key.clone(),
        Some(condition) => condition.shown.clone(),
    };
    conditions.iter().map(words).collect()
}

/// The scenario's name; the same name with another mix is another scenario.
fn scenario(capsule: &Capsule) -> Condition {
    let part = |name: &str| capsule.scenario_definition.get(name).filter(|value| !value.is_null());
    let parts: Vec<String> = ["mix", "identities", "tokens", "data"]
        .iter()
        .filter_map(|name| part(name).map(|value| format!("{name} {value}")))
        .collect();
    let key = if parts.is_empty() {
        capsule.scenario.clone()
    } else {
        format!("{} with {}", capsule.scenario, parts.join(", "))
    };
    Condition { key, shown: capsule.scenario.clone() }
}

fn load_of(load: &Load, capsule: Option<&Capsule>) -> Condition {
    let shown = match load {
        Load::Closed { vus, think_time_mean_seconds } if *think_time_mean_seconds > 0.0 => {
            format!("{vus} virtual users who think for {think_time_mean_seconds} s")
        }
        Load::Closed { vus, .. } if capsule.is_some() => format!("{vus} virtual users without think time"),
        Load::Closed { vus, .. } => format!("{vus} virtual users"),
        Load::Open { arrivals_per_second } => format!("{arrivals_per_second} arrivals a second"),
    };
    // How think times and arrivals are distributed, and how many may be under way.
    let model = capsule.and_then(|capsule| capsule.scenario_definition.get("model"));
    let detail = |name: &str| model?.get(name).map(|value| format!("{name} {value}"));
    let details: Vec<String> = ["think_time", "arrivals", "max_vus"].iter().filter_map(|name| detail(name)).collect();
    let key = if details.is_empty() { shown.clone() } else { format!("{shown} ({})", details.join(", ")) };
    Condition { key, shown }
}

/// The variable that chooses the provider.
const PROVIDER: &str = "AUTH_IDENTITY_PROVIDER";
/// How the names begin of what is said of user pools and of the double.
const COGNITO: &str = "COGNITO_";
const DOUBLE: &str = "COGNITO_DOUBLE_";
const USER_POOL: &str = "COGNITO_USER_POOL_ID";

fn identity_provider(stack: &StackFacts) -> Condition {
    let chosen = stack.settings.get(PROVIDER).map_or("local", String::as_str);
    if chosen == "local" {
        return Condition::plain("own accounts");
    }
    let mut details: Vec<String> = Vec::new();
    let pool = stack.settings.get(USER_POOL);
    let name = match (chosen, pool) {
        ("cognito", Some(pool)) => format!("Cognito user pool {pool}"),
        ("cognito", None) => {
            let behaviour = |name: &str, without: &str| {
                let value = stack.settings.get(&format!("{DOUBLE}{name}"));
                value.map_or_else(|| without.to_owned(), |value| format!("{} {value}", name.to_lowercase()))
            };
            details.extend([behaviour("LATENCY", "answers at once"), behaviour("QUOTAS", "no quotas")]);
            "Cognito double".to_owned()
        }
        (other, _) => other.to_owned(),
    };
    let told =
        |name: &str| name == USER_POOL || pool.is_none() && (name.ends_with("_LATENCY") || name.ends_with("_QUOTAS"));
    let others = stack.settings.iter().filter(|(name, _)| name.starts_with(COGNITO) && !told(name));
    details.extend(others.map(|(name, value)| format!("{name}={value}")));
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    Condition::plain(format!("{name}{details}"))
}

/// What was given beside the identity provider and the pools, which have aspects of their own.
fn settings(stack: &StackFacts) -> Condition {
    let is_told =
        |name: &str| name == PROVIDER || name.starts_with(COGNITO) || matches!(name, "DB_POOL_MAX" | "DB_POOL_MIN");
    let given = stack.settings.iter().filter(|(name, _)| !is_told(name));
    let given: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
    Condition::plain(if given.is_empty() { "default settings".to_owned() } else { given.join(", ") })
}

fn tasks(run: &Run) -> Option<Condition> {
    let stack = run.capsule.as_ref().and_then(|capsule| capsule.target.stack.as_ref());
    let different = |stack: &StackFacts| {
        let mut counts = stack.tasks.values();
        let first = counts.next();
        counts.any(|count| Some(count) != first)
    };
    match (stack.filter(|stack| different(stack)), run.tasks_per_service) {
        (Some(stack), _) => Some(Condition::plain(format!("tasks {}", by_service(&stack.tasks, u32::to_string)))),
        (None, Some(tasks)) => Some(Condition::plain(if tasks == 1 {
            "1 task per service".to_owned()
        } else {
            format!("{tasks} tasks per service")
        })),
        (None, None) => None,
    }
}

fn cpu_quota(stack: &StackFacts) -> Condition {
    Condition::plain(if stack.task_cpu_units.is_empty() {
        "no CPU quota".to_owned()
    } else {
        format!("CPU units {}", by_service(&stack.task_cpu_units, u32::to_string))
    })
}

/// The port of a stack that a run started for itself is no condition.
fn target(capsule: &Capsule) -> Condition {
    Condition::plain(match &capsule.target.stack {
        Some(stack) => format!("a stack with PostgreSQL {}", stack.postgres),
        None => capsule.target.url.clone(),
    })
}

fn driver(run: &Run) -> Option<Condition> {
    if let Some(capsule) = &run.capsule {
        let driver = &capsule.driver;
        return Some(Condition {
            key: format!("{} driver {}", driver.name, driver.version),
            shown: format!("{} driver", driver.name),
        });
    }
    match run.source.kind {
        SourceKind::Native | SourceKind::Figures => None,
        SourceKind::K6Json
        | SourceKind::K6Csv
        | SourceKind::K6SummaryExport
        | SourceKind::K6Summary
        | SourceKind::K6Text => Some(Condition::plain("k6 driver")),
    }
}

fn phase(name: &str, seconds: u32) -> Condition {
    Condition::plain(if seconds == 0 { format!("no {name}") } else { format!("{name} {seconds} s") })
}

/// As long as it really was: a run that was ended early has measured for less than its scenario says.
fn seconds_of(capsule: &Capsule, kind: PhaseKind) -> u32 {
    let phases = capsule.phases.iter().filter(|phase| phase.kind == kind);
    phases.map(|phase| phase.until_second.saturating_sub(phase.from_second)).sum()
}

/// One value if all services have the same, else each with its service.
fn by_service<T>(values: &BTreeMap<String, T>, show: impl Fn(&T) -> String) -> String {
    let shown: Vec<(&String, String)> = values.iter().map(|(service, value)| (service, show(value))).collect();
    match shown.split_first() {
        None => "none".to_owned(),
        Some(((_, first), others)) if others.iter().all(|(_, value)| value == first) => first.clone(),
        Some(_) => shown.iter().map(|(service, value)| format!("{service} {value}")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    fn made(change: impl FnOnce(&mut Capsule)) -> Run {
        let mut capsule = testing::capsule(10);
        change(&mut capsule);
        Run { load: Some(capsule.load.clone()), capsule: Some(capsule), ..testing::run("a", []) }
    }

    fn set(capsule: &mut Capsule, variables: &[(&str, &str)]) {
        let settings = &mut capsule.target.stack.as_mut().expect("a stack").settings;
        settings.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }

    fn told(change: impl FnOnce(&mut Capsule)) -> Vec<String> {
        differences([made(|_| {}), made(change)].iter()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn runs_of_equal_conditions_differ_in_nothing() {
        assert_eq!(
            told(|capsule| {
                // Neither of these is a condition.
                capsule.seed = 99;
                capsule.target.url = "http://127.0.0.1:9".into();
                capsule.id = "20261201T000000Z-baseline-mix".into();
            }),
            Vec::<String>::new()
        );
    }

    #[test]
    fn everything_that_matters_is_a_difference_of_its_own() {
        let double = [("AUTH_IDENTITY_PROVIDER", "cognito"), ("COGNITO_DOUBLE_LATENCY", "*=p50:250ms/p99:1s")];
        let differences = [
            told(|capsule| capsule.scenario = "login-only".into()),
            told(|capsule| capsule.load = Load::Closed { vus: 20, think_time_mean_seconds: 0.5 }),
            told(|capsule| set(capsule, &double)),
            told(|capsule| set(capsule, &[("LOG_LEVEL", "debug")])),
            told(|capsule| *capsule.target.stack.as_mut().unwrap().tasks.get_mut("auth").unwrap() = 3),
            told(|capsule| capsule.target.stack.as_mut().unwrap().pools.values_mut().for_each(|pool| pool.max = 20)),
            told(|capsule| capsule.target.stack.as_mut().unwrap().task_cpu_units.clear()),
            told(|capsule| capsule.driver.name = "k6".into()),
            told(|capsule| capsule.phases[0].until_second = 30),
            told(|capsule| capsule.datum = "0.1.0 (1234567)".into()),
            told(|capsule| capsule.machine.cpus = 4),
        ];
        assert_eq!(
            differences.map(|found| found.join("; ")),
            [
                "scenario: baseline-mix against login-only",
                "load: 10 virtual users without think time against 20 virtual users who think for 0.5 s",
                "identity provider: own accounts against Cognito double (latency *=p50:250ms/p99:1s, no quotas)",
                "settings of the services: AUTH_THROTTLE=off against AUTH_THROTTLE=off, LOG_LEVEL=debug",
                "tasks: tasks auth 2, document 1 against tasks auth 3, document 1",
                "database pools: pools 5/14 against pools 5/20",
                "CPU quota: CPU units 256 against no CPU quota",
                "driver: native driver against k6 driver",
                "measured time: measured 60 s against measured 30 s",
                "revision of Datum: Datum 0.1.0 (abcdef0) against Datum 0.1.0 (1234567)",
                "machine: A CPU, 2 CPUs, 8.00 GiB against A CPU, 4 CPUs, 8.00 GiB",
            ]
        );
    }

    #[test]
    fn one_name_with_another_mix_is_told_apart_by_the_mix() {
        let found =
            told(|capsule| capsule.scenario_definition = serde_json::json!({ "mix": [{ "endpoint": "login" }] }));
        assert_eq!(found, [r#"scenario: baseline-mix against baseline-mix with mix [{"endpoint":"login"}]"#]);
    }

    #[test]
    fn ramp_and_warm_up_are_conditions_too() {
        let with = |kind, seconds| {
            made(|capsule| {
                capsule.phases[0].from_second = seconds;
                capsule.phases[0].until_second = 60 + seconds;
                capsule.phases.push(crate::result::Phase { kind, name: None, from_second: 0, until_second: seconds });
            })
        };
        let found =
            differences([with(PhaseKind::Ramp, 5), with(PhaseKind::Ramp, 20), with(PhaseKind::WarmUp, 5)].iter());
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["ramp: ramp 5 s against ramp 20 s against no ramp", "warm-up: no warm-up against warm-up 5 s"]
        );
    }

    #[test]
    fn what_nobody_recorded_is_not_taken_for_equal() {
        let k6 = Run { source: crate::run::Source { kind: SourceKind::K6Json, path: None }, ..testing::run("b", []) };
        let found = differences([made(|_| {}), k6].iter());
        assert!(
            found.iter().any(|it| it.aspect == Aspect::Driver && it.values == ["native driver", "k6 driver"]),
            "{found:?}"
        );
        assert!(found.iter().any(|it| it.aspect == Aspect::Scenario && it.values[1] == "not recorded"), "{found:?}");
    }
}
