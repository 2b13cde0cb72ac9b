//! Result folders as a driver writes them: an experiment like the reference's, with made-up latencies that are the same on
//! every machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use envelope::result::{
    Answerer, Capsule, Completion, Dataset, Driver, EndpointInterval, Failure, FailureCount, GeneratorInterval,
    GeneratorUse, Interval, IntervalWriter, Load, Machine, Phase, PhaseKind, PoolSize, ProcessUse, StackFacts,
    StackUse, Target, Work, write_capsule,
};
use time::macros::datetime;

/// One run to be made up.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) role: &'static str,
    pub(crate) tasks: u32,
    pub(crate) pool: PoolSize,
    /// How many times longer waits are than in a system with room.
    pub(crate) congestion: f64,
    /// A second of the measured phase in which nothing ends.
    pub(crate) stalled: Option<u32>,
    /// Failures of the balancer, one a second at the end.
    pub(crate) failures: u64,
}

const VUS: u32 = 200;
const THINK_SECONDS: f64 = 0.82;
const RAMP: u32 = 5;
const WARM_UP: u32 = 5;
const MEASURE: u32 = 30;

/// Five runs in the roles of the reference: two that a task a service saturates, three that two tasks do not.
pub(crate) fn phase_4(folder: &Path) -> Vec<PathBuf> {
    let wide = PoolSize { min: 5, max: 20 };
    let narrow = PoolSize { min: 5, max: 14 };
    let exploratory = |name, pool, congestion| Made {
        name,
        role: "exploratory",
        tasks: 1,
        pool,
        congestion,
        stalled: None,
        failures: 2,
    };
    let steady = |name, congestion, failures| Made {
        name,
        role: "steady state",
        tasks: 2,
        pool: narrow,
        congestion,
        stalled: None,
        failures,
    };
    let runs = [
        exploratory("20261130T210000Z-phase4-1", wide, 9.0),
        exploratory("20261130T210500Z-phase4-2", narrow, 9.3),
        steady("20261130T211000Z-phase4-3", 1.0, 0),
        steady("20261130T211500Z-phase4-4", 1.02, 1),
        steady("20261130T212000Z-phase4-5", 1.01, 0),
    ];
    runs.iter().map(|run| run.write(folder)).collect()
}

impl Made {
    /// Writes the folder, and says where it is.
    pub(crate) fn write(&self, folder: &Path) -> PathBuf {
        let folder = folder.join(self.name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut writer = IntervalWriter::create(&folder).unwrap();
        let mut chance = Chance(u64::from(self.tasks) * 1_000 + self.congestion.to_bits() % 997);
        for second in 0..RAMP + WARM_UP + MEASURE {
            writer.append(&self.interval(second, &mut chance)).unwrap();
        }
        write_capsule(&folder, &self.capsule()).unwrap();
        folder
    }

    fn interval(&self, second: u32, chance: &mut Chance) -> Interval {
        let load = (f64::from(second + 1) / f64::from(RAMP)).min(1.0);
        // A cold system is slower: caches, connections, plans.
        let cold = 1.0 + 2.0 * (-f64::from(second) / 2.0).exp();
        let users = (f64::from(VUS) * load).round();
        let mean = self.mean_seconds() * cold;
        let arrivals = users / (THINK_SECONDS + mean) * (0.97 + 0.06 * chance.uniform());
        let stalled = self.stalled == Some(second);
        let mut interval = Interval { second, active_vus: whole(users), ..Interval::default() };
        for endpoint in &ENDPOINTS {
            let count = if stalled { 0 } else { whole(arrivals * endpoint.weight) };
            let mut of = EndpointInterval::default();
            for _ in 0..count {
                self.request(endpoint, cold, chance, &mut of);
            }
            interval.work.completed += u64::from(count);
            interval.endpoints.insert(endpoint.name.to_owned(), of);
        }
        if u64::from(RAMP + WARM_UP + MEASURE - 1 - second) < self.failures {
            fail(interval.endpoints.get_mut("get-user").unwrap());
        }
        let work = interval.work.completed;
        interval.work = Work { offered: work, started: work, completed: work, dropped: 0 };
        interval.generator = GeneratorInterval { cpu_seconds: 0.05, ..GeneratorInterval::default() };
        interval
    }

    fn mean_seconds(&self) -> f64 {
        ENDPOINTS
            .iter()
            .map(|endpoint| endpoint.weight * self.stages(endpoint).iter().map(|(_, ms)| ms).sum::<f64>())
            .sum::<f64>()
            / 1_000.0
    }

    /// Mean of each stage in milliseconds.
    fn stages(&self, endpoint: &Profile) -> Vec<(&'static str, f64)> {
        let wait = self.congestion;
        endpoint
            .stages
            .iter()
            .map(|(name, ms)| {
                (*name, if matches!(*name, "pool" | "admission") { ms * wait * wait } else { ms * wait.sqrt() })
            })
            .collect()
    }

    fn request(&self, endpoint: &Profile, cold: f64, chance: &mut Chance, into: &mut EndpointInterval) {
        let (mut total, mut all) = (0.0, 0.0);
        for (name, mean) in self.stages(endpoint) {
            let ms = mean * cold * chance.skewed();
            all += ms;
            if name == "unattributed" {
                into.unattributed.record(millis(ms));
            } else {
                total += ms;
                into.stages.entry(name.to_owned()).or_default().record(millis(ms));
            }
        }
        into.stages.entry("total".to_owned()).or_default().record(millis(total));
        into.latency.record(millis(all));
    }

    fn capsule(&self) -> Capsule {
        let services = ["auth", "actor", "document"];
        let each = |value: u32| services.map(|service| (service.to_owned(), value)).into();
        let busy = if self.tasks == 1 { 0.98 } else { 0.61 };
        let process =
            ProcessUse { cpu_seconds: busy * 0.5 * f64::from(MEASURE), quota_cores: Some(0.5), throttled: None };
        let load = Load::Closed { vus: VUS, think_time_mean_seconds: THINK_SECONDS };
        let measured = RAMP + WARM_UP;
        Capsule {
            format: 1,
            id: self.name.to_owned(),
            role: Some(self.role.to_owned()),
            started_at: datetime!(2026-11-30 21:00 UTC),
            ended_at: datetime!(2026-11-30 21:01:20 UTC),
            completion: Completion::Whole,
            void: vec![],
            warnings: vec![],
            datum: "0.1.0 (0123abc)".into(),
            driver: Driver { name: "native".into(), version: "0.1.0".into() },
            scenario: "baseline-mix".into(),
            scenario_definition: serde_json::json!({
                "question": "What do 200 users with tokens of their own meet?",
                "description": "80 % get-user, 10 % upload of 32 KiB, 7 % login, 3 % register",
            }),
            load,
            seed: 42,
            identities: u64::from(VUS),
            dataset: Some(Dataset { users: 10_000, seed: 1, distinct_hashes: 64 }),
            target: Target {
                url: "http://127.0.0.1:8080".into(),
                stack: Some(StackFacts {
                    tasks: each(self.tasks),
                    pools: services.map(|service| (service.to_owned(), self.pool)).into(),
                    task_cpu_units: each(512),
                    settings: [("AUTH_THROTTLE".to_owned(), "off".to_owned())].into(),
                    postgres: "15.14".into(),
                }),
            },
            phases: vec![
                Phase { kind: PhaseKind::Ramp, name: None, from_second: 0, until_second: RAMP },
                Phase { kind: PhaseKind::WarmUp, name: None, from_second: RAMP, until_second: measured },
                Phase { kind: PhaseKind::Measure, name: None, from_second: measured, until_second: measured + MEASURE },
            ],
            verified: ["register", "login", "get-user", "upload"]
                .map(|check| (check.to_owned(), "ok".to_owned()))
                .into(),
            generator: GeneratorUse { cpu_seconds: Some(3.1), peak_memory_bytes: Some(48 << 20), threads: Some(2) },
            stack_use: Some(StackUse {
                seconds: f64::from(MEASURE),
                processes: [("auth-1".to_owned(), process)].into(),
            }),
            machine: Machine {
                kernel: "Linux 6.1".into(),
                cpu_model: "Example CPU @ 2.50GHz".into(),
                cpus: 4,
                memory_bytes: 16 << 30,
            },
            command: ["datum", "bench", "phase4", "--short"].map(str::to_owned).to_vec(),
        }
    }
}

/// An endpoint of the mix with the means of its stages in milliseconds.
struct Profile {
    name: &'static str,
    weight: f64,
    stages: &'static [(&'static str, f64)],
}

const ENDPOINTS: [Profile; 4] = [
    Profile {
        name: "get-user",
        weight: 0.80,
        stages: &[("verify", 0.4), ("pool", 0.3), ("db", 1.8), ("app", 0.5), ("unattributed", 1.1)],
    },
    Profile {
        name: "upload",
        weight: 0.10,
        stages: &[("verify", 0.5), ("pool", 0.6), ("db", 6.0), ("s3", 31.0), ("app", 4.0), ("unattributed", 2.0)],
    },
    Profile {
        name: "login",
        weight: 0.07,
        stages: &[("admission", 9.0), ("pool", 0.5), ("db", 5.0), ("hash", 410.0), ("app", 1.0), ("unattributed", 1.2)],
    },
    Profile {
        name: "register",
        weight: 0.03,
        stages: &[("admission", 9.0), ("pool", 0.6), ("db", 9.0), ("hash", 430.0), ("app", 1.0), ("unattributed", 1.2)],
    },
];

fn fail(endpoint: &mut EndpointInterval) {
    endpoint.failed_latency.record(Duration::from_millis(3));
    let failure = Failure { status: Some(502), code: "target_failed".into(), answerer: Answerer::Balancer };
    endpoint.failures.push(FailureCount { failure, count: 1 });
}

fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1_000.0)
}

fn whole(value: f64) -> u32 {
    format!("{value:.0}").parse().unwrap()
}

/// A small generator (xorshift64, Marsaglia 2003), so that the figures are the same everywhere.
struct Chance(u64);

impl Chance {
    /// From 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        f64::from(u32::try_from(bits >> 32).unwrap()) / f64::from(u32::MAX)
    }

    /// Mean about 1, mostly below, now and then far above: the shape of a latency.
    fn skewed(&mut self) -> f64 {
        let rare = if self.uniform() > 0.985 { 6.0 } else { 1.0 };
        rare * (0.55 - 0.35 * (1.0 - self.uniform()).max(1e-9).ln())
    }
}
