//! What a quota did to a task, as the kernel counts it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{PREFIX, discover};

/// What the quota of one task did since its group was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUse {
    /// Periods in which it wanted to run.
    pub periods: u64,
    /// Those in which its quota was used up before their end.
    pub throttled_periods: u64,
    /// How long its threads together were kept from running.
    pub throttled: Duration,
}

/// What the quota of a process did, where the process is in a group of ours and the system tells.
#[must_use]
pub fn use_of(pid: u32) -> Option<QuotaUse> {
    let group = discover::group_of(pid)?;
    let is_ours = group.file_name()?.to_str()?.starts_with(PREFIX);
    is_ours.then(|| read(&group)).flatten()
}

fn read(group: &Path) -> Option<QuotaUse> {
    parse(&fs::read_to_string(group.join("cpu.stat")).ok()?)
}

/// `cpu.stat`: nanoseconds in version 1 (`Documentation/scheduler/sched-bwc.rst`), microseconds in version 2
/// (`Documentation/admin-guide/cgroup-v2.rst`).
fn parse(stat: &str) -> Option<QuotaUse> {
    let value = |name: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
    };
    let throttled = value("throttled_usec").map(Duration::from_micros);
    Some(QuotaUse {
        periods: value("nr_periods")?,
        throttled_periods: value("nr_throttled")?,
        throttled: throttled.or_else(|| value("throttled_time").map(Duration::from_nanos))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read_in_their_units() {
        let expected = QuotaUse { periods: 40, throttled_periods: 12, throttled: Duration::from_micros(1_500) };
        assert_eq!(parse("nr_periods 40\nnr_throttled 12\nthrottled_time 1500000\n"), Some(expected));
        let second = "usage_usec 9\nuser_usec 8\nsystem_usec 1\nnr_periods 40\nnr_throttled 12\nthrottled_usec 1500\n";
        assert_eq!(parse(second), Some(expected));
        // Without the CPU controller there are no periods.
        assert_eq!(parse("usage_usec 9\nuser_usec 8\nsystem_usec 1\n"), None);
    }

    #[test]
    fn a_process_without_a_quota_of_ours_has_none() {
        assert_eq!(use_of(std::process::id()), None);
        assert_eq!(use_of(u32::MAX), None);
    }
}
