//! How much CPU each process of an own system used, from `/proc`, and what a quota did to it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use envelope::result::{ProcessUse, StackUse, Throttled};
use stack::cpu_quota::{self, QuotaUse, TaskCpu};
use stack::status::StackStatus;

/// `USER_HZ`: the unit of times in `/proc/PID/stat`. Fixed at 100 in the interface of Linux to programs, whatever the kernel's
/// own tick is (proc(5), time(7)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Units of a whole core.
const UNITS_PER_CORE: f64 = 1024.0;

/// Watches the processes of one system.
#[derive(Debug)]
pub(in crate::bench) struct CpuWatch {
    watched: Vec<Watched>,
    first: Option<Sample>,
    last: Option<Sample>,
}

#[derive(Debug)]
struct Watched {
    name: String,
    pid: u32,
    /// Whether its children count: those of PostgreSQL do its work, those of `datum up` are watched themselves.
    with_children: bool,
    quota_cores: Option<f64>,
}

#[derive(Debug, Clone)]
struct Sample {
    at: Instant,
    /// Ticks by process name; one that has gone is not in it.
    ticks: BTreeMap<String, u64>,
    /// By process name; of those that have a quota.
    quotas: BTreeMap<String, QuotaUse>,
}

impl CpuWatch {
    pub(in crate::bench) fn new(status: &StackStatus, task_cpu: Option<TaskCpu>) -> Self {
        let quota_cores = task_cpu.map(|cpu| f64::from(cpu.units()) / UNITS_PER_CORE);
        let tasks = status.tasks.iter().filter_map(|task| {
            let name = format!("{}-{}", task.service, task.number);
            Some(Watched { name, pid: task.pid?, with_children: false, quota_cores })
        });
        let postgres = status.postgres.iter().filter_map(|postgres| {
            Some(Watched { name: "postgres".to_owned(), pid: postgres.pid?, with_children: true, quota_cores: None })
        });
        let balancer =
            Watched { name: "balancer".to_owned(), pid: status.pid, with_children: false, quota_cores: None };
        Self { watched: tasks.chain(postgres).chain([balancer]).collect(), first: None, last: None }
    }

    /// Looks now. The first look begins the observation, the last one ends it.
    pub(in crate::bench) fn look(&mut self) {
        let processes = all_processes();
        let ticks = self.watched.iter().filter_map(|it| Some((it.name.clone(), ticks_of(it, &processes)?))).collect();
        let limited = self.watched.iter().filter(|it| it.quota_cores.is_some());
        let quotas = limited.filter_map(|it| Some((it.name.clone(), cpu_quota::use_of(it.pid)?))).collect();
        let sample = Sample { at: Instant::now(), ticks, quotas };
        self.first.get_or_insert_with(|| sample.clone());
        self.last = Some(sample);
    }

    /// What was used between the first and the last look; none without two of them.
    #[expect(clippy::cast_precision_loss, reason = "ticks stay far below 2^52")]
    pub(in crate::bench) fn used(&self) -> Option<StackUse> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let processes = self.watched.iter().filter_map(|it| {
            let ticks = last.ticks.get(&it.name)?.checked_sub(*first.ticks.get(&it.name)?)?;
            let used = ProcessUse {
                cpu_seconds: ticks as f64 / TICKS_PER_SECOND,
                quota_cores: it.quota_cores,
                throttled: throttled(first.quotas.get(&it.name), last.quotas.get(&it.name)),
            };
            Some((it.name.clone(), used))
        });
        (seconds > 0.0).then(|| StackUse { seconds, processes: processes.collect() })
    }
}

/// What a quota did between two looks.
fn throttled(first: Option<&QuotaUse>, last: Option<&QuotaUse>) -> Option<Throttled> {
    let (first, last) = (first?, last?);
    Some(Throttled {
        periods: last.periods.checked_sub(first.periods)?,
        throttled_periods: last.throttled_periods.checked_sub(first.throttled_periods)?,
        seconds: last.throttled.checked_sub(first.throttled)?.as_secs_f64(),
    })
}

/// The CPU of another process of this machine (k6, wrk), in seconds, with its ended children.
#[expect(clippy::cast_precision_loss, reason = "ticks stay far below 2^52")]
pub(in crate::bench) fn cpu_seconds_of(pid: u32) -> Option<f64> {
    Stat::read(pid).map(|stat| (stat.ticks + stat.children_ticks) as f64 / TICKS_PER_SECOND)
}

/// The most memory that another process of this machine ever had resident, in bytes (`VmHWM` of proc(5)).
pub(in crate::bench) fn peak_memory_bytes_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// The line of one process in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Its own user and system time.
    ticks: u64,
    /// That of its children that have ended and were waited for.
    children_ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(line: &str) -> Option<Self> {
        // The name stands in parentheses and may hold anything, parentheses included.
        let fields: Vec<&str> = line.get(line.rfind(')')? + 2..)?.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(11)? + number(12)?,
            children_ticks: number(13)? + number(14)?,
        })
    }
}

fn all_processes() -> BTreeMap<u32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, Stat::read(pid)?))).collect()
}

fn ticks_of(watched: &Watched, processes: &BTreeMap<u32, Stat>) -> Option<u64> {
    let own = processes.get(&watched.pid)?;
    if !watched.with_children {
        return Some(own.ticks);
    }
    let mut total = 0;
    let mut open = vec![watched.pid];
    while let Some(pid) = open.pop() {
        if let Some(stat) = processes.get(&pid) {
            total += stat.ticks + stat.children_ticks;
        }
        open.extend(processes.iter().filter(|(_, stat)| stat.parent == pid).map(|(child, _)| *child));
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: u32, ticks: u64, children_ticks: u64) -> Stat {
        Stat { parent, ticks, children_ticks }
    }

    #[test]
    fn times_are_found_behind_any_name() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 1 2 3 4 100 20 30 4 20 0 1 0 12345 1 2";
        assert_eq!(Stat::parse(line), Some(stat(7, 120, 34)));
        assert_eq!(Stat::parse("42 (x"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn workers_of_the_database_count_whether_they_live_or_have_ended() {
        let processes =
            [(10, stat(1, 5, 100)), (11, stat(10, 7, 0)), (12, stat(11, 1, 0)), (20, stat(1, 99, 0))].into();
        let postgres = Watched { name: "postgres".into(), pid: 10, with_children: true, quota_cores: None };
        assert_eq!(ticks_of(&postgres, &processes), Some(113));
        assert_eq!(ticks_of(&Watched { with_children: false, ..postgres }, &processes), Some(5));
    }

    #[test]
    fn a_process_that_was_replaced_is_left_out_and_not_guessed() {
        let watched = |name: &str| Watched { name: name.into(), pid: 1, with_children: false, quota_cores: Some(0.25) };
        let at = Instant::now();
        let later = at + std::time::Duration::from_secs(10);
        let quota = |periods, throttled_periods, millis| {
            let throttled = std::time::Duration::from_millis(millis);
            [("auth-1".to_owned(), QuotaUse { periods, throttled_periods, throttled })].into()
        };
        let watch = CpuWatch {
            watched: vec![watched("auth-1"), watched("auth-2")],
            first: Some(Sample {
                at,
                ticks: [("auth-1".into(), 100), ("auth-2".into(), 5)].into(),
                quotas: quota(30, 1, 200),
            }),
            last: Some(Sample { at: later, ticks: [("auth-1".into(), 350)].into(), quotas: quota(130, 91, 5_200) }),
        };
        let used = watch.used().expect("two looks");
        assert!((used.seconds - 10.0).abs() < 1e-9);
        assert_eq!(used.processes.len(), 1);
        let throttled = Some(Throttled { periods: 100, throttled_periods: 90, seconds: 5.0 });
        let expected = ProcessUse { cpu_seconds: 2.5, quota_cores: Some(0.25), throttled };
        assert_eq!(used.processes["auth-1"], expected);
    }

    #[test]
    fn this_process_has_used_some() {
        assert!(cpu_seconds_of(std::process::id()).is_some());
        assert_eq!(cpu_seconds_of(u32::MAX), None);
    }
}
