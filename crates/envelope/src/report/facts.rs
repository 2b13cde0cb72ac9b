//! What sections and rules are made from: the runs, what they are called, and which belong together.

use std::collections::BTreeSet;

use super::format;
use super::group::{Group, groups};
use super::reference::Reference;
use crate::laws::{CapacityEvidence, capacity_evidence};
use crate::result::{Capsule, Load};
use crate::run::Run;

/// Everything that a report is made from.
pub(super) struct Facts<'a> {
    pub(super) runs: &'a [Run],
    pub(super) names: Vec<String>,
    pub(super) groups: Vec<Group<'a>>,
    pub(super) reference: Option<&'a Reference>,
}

/// Longer labels than this are not used as names: tables and charts would be all label.
const LONGEST_NAME: usize = 18;

impl<'a> Facts<'a> {
    pub(super) fn new(runs: &'a [Run], reference: Option<&'a Reference>) -> Self {
        let short = runs.iter().all(|run| run.label.chars().count() <= LONGEST_NAME);
        let different = runs.iter().map(|run| &run.label).collect::<BTreeSet<_>>().len() == runs.len();
        let name = |(index, run): (usize, &Run)| {
            if short && different { run.label.clone() } else { format!("run {}", index + 1) }
        };
        Self { runs, names: runs.iter().enumerate().map(name).collect(), groups: groups(runs), reference }
    }

    pub(super) fn runs_with_names(&self) -> impl Iterator<Item = (&'a Run, &str)> {
        self.runs.iter().zip(self.names.iter().map(String::as_str))
    }

    /// Names of the runs of which something is true, `run 1 and run 3` or `all 5 runs`; `None` if it is true of none.
    pub(super) fn names_of(&self, is_so: impl Fn(&Run) -> bool) -> Option<String> {
        let those = self.runs_with_names().filter(|(run, _)| is_so(run));
        let named: Vec<String> = those.map(|(_, name)| name.to_owned()).collect();
        match named.len() {
            0 => None,
            1 if self.runs.len() == 1 => Some("the run".to_owned()),
            all if all == self.runs.len() => Some(format!("all {all} runs")),
            _ => Some(format::list(&named)),
        }
    }

    /// The group whose runs count: that of the steady state, else the last one.
    pub(super) fn main_group(&self) -> Option<&Group<'a>> {
        self.groups.iter().find(|group| group.steady).or(self.groups.last())
    }

    /// Different values of something among the capsules.
    pub(super) fn distinct<T: Ord>(&self, of: impl Fn(&'a Capsule) -> Option<T>) -> BTreeSet<T> {
        self.runs.iter().filter_map(|run| run.capsule.as_ref()).filter_map(of).collect()
    }
}

/// What a closed run says about capacity; `None` for open ones, and where a figure is missing. A think time of zero stands
/// for one that the source does not say.
pub(super) fn capacity(run: &Run) -> Option<CapacityEvidence> {
    let Some(Load::Closed { vus, think_time_mean_seconds }) = run.load else { return None };
    let (throughput, mean_ms) = (run.throughput?, run.overall.mean?);
    Some(capacity_evidence(f64::from(vus), think_time_mean_seconds, throughput, mean_ms / 1000.0))
}
