//! What a run's capsule says, put together from those who know it.

use std::collections::BTreeMap;

use envelope::result::{Capsule, Completion, Dataset, Driver, Machine, StackUse, Target};
use loadgen::run::Outcome;
use loadgen::scenario::Scenario;
use serde_json::Value;
use time::OffsetDateTime;

/// The format's version.
const FORMAT: u32 = 1;

/// From this share of all CPUs on, the machine itself is what limits a run.
const SATURATED_SHARE: f64 = 0.9;

/// This Datum: version and, where it was built from a repository, revision.
pub(super) fn this_datum() -> String {
    let version = env!("CARGO_PKG_VERSION");
    option_env!("DATUM_REVISION").map_or_else(|| version.to_owned(), |revision| format!("{version} ({revision})"))
}

/// Everything that the capsule is made from.
pub(super) struct Facts<'a> {
    pub(super) id: String,
    pub(super) role: Option<String>,
    pub(super) driver: Driver,
    pub(super) scenario: &'a Scenario,
    pub(super) seed: u64,
    pub(super) dataset: Option<Dataset>,
    pub(super) target: Target,
    pub(super) verified: BTreeMap<String, String>,
    pub(super) machine: Machine,
    pub(super) command: Vec<String>,
    pub(super) outcome: Outcome,
    pub(super) stack_use: Option<StackUse>,
    /// What was seen beside, one sentence each.
    pub(super) warnings: Vec<String>,
    /// Why the run broke, if it did.
    pub(super) broke: Option<String>,
}

/// The capsule of a run.
pub(super) fn capsule(facts: Facts<'_>) -> Capsule {
    let outcome = facts.outcome;
    let mut void = outcome.void;
    let mut completion = outcome.completion;
    if let Some(broke) = facts.broke {
        completion = Completion::Failed;
        void.push(broke);
    }
    let mut warnings = outcome.warnings;
    warnings.extend(facts.warnings);
    warnings.extend(machine_saturated(&facts.machine, outcome.generator.cpu_seconds, facts.stack_use.as_ref()));
    Capsule {
        format: FORMAT,
        id: facts.id,
        role: facts.role,
        started_at: outcome.started_at,
        ended_at: outcome.ended_at,
        completion,
        void,
        warnings,
        datum: this_datum(),
        driver: facts.driver,
        scenario: facts.scenario.name.clone(),
        scenario_definition: serde_json::to_value(facts.scenario).unwrap_or(Value::Null),
        load: facts.scenario.load(),
        seed: facts.seed,
        identities: outcome.identities,
        dataset: facts.dataset,
        target: facts.target,
        phases: outcome.phases,
        verified: facts.verified,
        generator: outcome.generator,
        stack_use: facts.stack_use,
        machine: facts.machine,
        command: facts.command,
    }
}

/// Driver and system share the machine: where both together use all of it, they take it from one another.
fn machine_saturated(machine: &Machine, generator: Option<f64>, stack_use: Option<&StackUse>) -> Option<String> {
    let stack_use = stack_use?;
    let stack: f64 = stack_use.processes.values().map(|it| it.cpu_seconds).sum();
    let used = (stack + generator.unwrap_or(0.0)) / stack_use.seconds;
    let available = f64::from(machine.cpus);
    (available > 0.0 && used >= SATURATED_SHARE * available).then(|| {
        format!(
            "the machine was saturated: driver and system together used {used:.2} of {available:.0} CPUs, so that they \
             took time from one another and the figures are this machine's"
        )
    })
}

/// The folder's name: when, what, and how the operator called it.
pub(super) fn id(at: OffsetDateTime, scenario: &str, label: Option<&str>) -> String {
    let (date, time) = (at.date(), at.time());
    let mut id = format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z-{}",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        // A scenario from a file may be called anything.
        scenario.replace(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-'), "-"),
    );
    if let Some(label) = label {
        id.push('-');
        id.push_str(label);
    }
    id
}

#[cfg(test)]
pub(super) mod testing {
    //! A capsule to try things with.

    use envelope::result::GeneratorUse;
    use time::macros::datetime;

    use super::*;

    pub(super) fn machine() -> Machine {
        Machine { kernel: "Linux 6".into(), cpu_model: "x".into(), cpus: 2, memory_bytes: 1 }
    }

    fn outcome() -> Outcome {
        Outcome {
            completion: Completion::Whole,
            started_at: datetime!(2026-01-02 03:04:05 UTC),
            ended_at: datetime!(2026-01-02 03:05:05 UTC),
            phases: Vec::new(),
            identities: 5,
            void: Vec::new(),
            warnings: vec!["first".into()],
            generator: GeneratorUse { cpu_seconds: Some(1.0), peak_memory_bytes: None, threads: Some(1) },
        }
    }

    pub(super) fn facts(scenario: &Scenario) -> Facts<'_> {
        Facts {
            id: "x".into(),
            role: Some("steady state".into()),
            driver: Driver { name: "native".into(), version: "0".into() },
            scenario,
            seed: 7,
            dataset: None,
            target: Target { url: "http://127.0.0.1:1".into(), stack: None },
            verified: [("login".to_owned(), "ok".to_owned())].into(),
            machine: machine(),
            command: vec!["datum".into(), "bench".into()],
            outcome: outcome(),
            stack_use: None,
            warnings: vec!["second".into()],
            broke: None,
        }
    }

    pub(in crate::bench) fn capsule(scenario: &Scenario) -> Capsule {
        super::capsule(facts(scenario))
    }
}

#[cfg(test)]
mod tests {
    use envelope::result::{Load, ProcessUse};
    use time::macros::datetime;

    use super::testing::{facts, machine};
    use super::*;

    #[test]
    fn everything_that_is_known_is_in_it() {
        let scenario = loadgen::scenario::open("baseline-mix").expect("a scenario");
        let capsule = capsule(facts(&scenario));
        assert_eq!((capsule.format, capsule.seed, capsule.identities), (1, 7, 5));
        assert_eq!(capsule.load, Load::Closed { vus: 200, think_time_mean_seconds: 0.82 });
        assert_eq!(capsule.warnings, ["first", "second"]);
        assert_eq!(serde_json::from_value::<Scenario>(capsule.scenario_definition).expect("whole"), scenario);
        assert!(capsule.datum.starts_with(env!("CARGO_PKG_VERSION")));
        assert_eq!(capsule.completion, Completion::Whole);
    }

    #[test]
    fn a_system_that_broke_voids_the_run() {
        let scenario = loadgen::scenario::open("smoke").expect("a scenario");
        let capsule = capsule(Facts { broke: Some("the system ended by itself".into()), ..facts(&scenario) });
        assert_eq!(capsule.completion, Completion::Failed);
        assert_eq!(capsule.void, ["the system ended by itself"]);
    }

    #[test]
    fn a_machine_without_cpu_left_is_told() {
        let used = |cpu_seconds| StackUse {
            seconds: 10.0,
            processes: [("auth-1".to_owned(), ProcessUse { cpu_seconds, quota_cores: None, throttled: None })].into(),
        };
        let warning = machine_saturated(&machine(), Some(2.0), Some(&used(16.5))).expect("a warning");
        assert!(warning.contains("1.85 of 2 CPUs"), "{warning}");
        assert_eq!(machine_saturated(&machine(), Some(2.0), Some(&used(12.0))), None);
        assert_eq!(machine_saturated(&machine(), Some(2.0), None), None);
    }

    #[test]
    fn a_folder_is_named_by_time_scenario_and_label() {
        let at = datetime!(2026-01-02 03:04:05 UTC);
        assert_eq!(id(at, "smoke", None), "20260102T030405Z-smoke");
        assert_eq!(id(at, "my mix/2", Some("a.b")), "20260102T030405Z-my-mix-2-a.b");
    }
}
