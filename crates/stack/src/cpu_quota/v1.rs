//! Quotas in cgroups version 1: groups can be made anywhere, beside processes too.

use std::path::{Path, PathBuf};

use super::{PERIOD_US, QuotaError, TaskCpu, write};

/// The group that this process is in; those of tasks are made in it.
#[derive(Debug)]
pub(super) struct Parent(PathBuf);

impl Parent {
    pub(super) const fn new(group: PathBuf) -> Self {
        Self(group)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

pub(super) fn limit(group: &Path, cpu: TaskCpu) -> Result<(), QuotaError> {
    write(&group.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
    write(&group.join("cpu.cfs_quota_us"), &cpu.quota_us().to_string())
}
