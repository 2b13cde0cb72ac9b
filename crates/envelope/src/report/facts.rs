//! What sections and rules are made from: the runs, what they are called, and which belong together.

use std::collections::BTreeSet;

use super::Options;
use super::format;
use super::group::{Group, groups};
use super::reference::Reference;
use crate::analysis::{Aspect, Capacity, UslPoint, capacity_evidence_of, differences, is_mostly_broken, think_time_of};
use crate::as_float;
use crate::laws::{CapacityEvidence, ThinkTime};
use crate::result::{Capsule, Load};
use crate::run::Run;

/// Everything that a report is made from.
pub(super) struct Facts<'a> {
    pub(super) runs: &'a [Run],
    pub(super) names: Vec<String>,
    pub(super) groups: Vec<Group<'a>>,
    pub(super) reference: Option<&'a Reference>,
    /// Searches for capacity, by tasks per service.
    pub(super) capacities: &'a [(u32, Capacity)],
    /// The think time that runs imply whose source does not state one.
    pub(super) implied_think_time: Option<ThinkTime>,
}

/// Longer labels than this are not used as names: tables and charts would be all label.
const LONGEST_NAME: usize = 18;

/// What a run is called that is alone in its report.
const THE_ONLY_ONE: &str = "the run";

/// Names for all runs; `None` where one has none, or they are long or not different.
fn names(runs: &[Run], of: impl Fn(&Run) -> Option<String>) -> Option<Vec<String>> {
    let names: Vec<String> = runs.iter().map(of).collect::<Option<_>>()?;
    let short = names.iter().all(|name| name.chars().count() <= LONGEST_NAME);
    let different = names.iter().collect::<BTreeSet<_>>().len() == names.len();
    (short && different).then_some(names)
}

impl<'a> Facts<'a> {
    pub(super) fn new(runs: &'a [Run], options: &'a Options) -> Self {
        // What the operator called them, else what their files are called.
        let labels = names(runs, |run| run.capsule.as_ref()?.label().map(str::to_owned));
        let labels = labels.or_else(|| names(runs, |run| Some(run.label.clone())));
        let name = |index: usize| match &labels {
            _ if runs.len() == 1 => THE_ONLY_ONE.to_owned(),
            Some(labels) => labels[index].clone(),
            None => format!("run {}", index + 1),
        };
        let silent: Vec<Run> = runs.iter().filter(|run| !states_think_time(run)).cloned().collect();
        Self {
            runs,
            names: (0..runs.len()).map(name).collect(),
            groups: groups(runs, !options.capacities.is_empty()),
            reference: options.reference.as_ref(),
            capacities: &options.capacities,
            implied_think_time: think_time_of(&silent).filter(|think_time| think_time.same),
        }
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
            1 if self.runs.len() == 1 => Some(THE_ONLY_ONE.to_owned()),
            all if all == self.runs.len() => Some(format!("all {all} runs")),
            _ => Some(format::list(&named)),
        }
    }

    /// The groups whose runs count: nothing is true of all of them together.
    pub(super) fn counting(&self) -> impl Iterator<Item = &Group<'a>> {
        self.groups.iter().filter(|group| group.counts)
    }

    /// The group that is looked at more closely: of those that count the last one with the most tasks.
    pub(super) fn main_group(&self) -> Option<&Group<'a>> {
        self.counting().max_by_key(|group| group.tasks).or(self.groups.last())
    }

    /// Whether the runs differ in nothing but the size of the system, so that figures over all of them are of something.
    pub(super) fn are_of_one_experiment(&self) -> bool {
        let of_the_size = [Aspect::Tasks, Aspect::Pools, Aspect::CpuQuota];
        differences(self.runs.iter()).iter().all(|difference| of_the_size.contains(&difference.aspect))
    }

    /// What stands before a sentence about one group where it is not the only one that counts: `In the run "x": `.
    pub(super) fn whose(&self, group: &Group<'_>) -> String {
        if self.counting().count() > 1 { format!("In {}: ", group.title) } else { String::new() }
    }

    /// [`Self::whose`] of the main group.
    pub(super) fn whose_main(&self) -> String {
        self.main_group().map_or_else(String::new, |group| self.whose(group))
    }

    /// What a closed run says about capacity; `None` for open ones, and where a figure is missing.
    pub(super) fn capacity(&self, run: &Run) -> Option<CapacityEvidence> {
        let implied = self.implied_think_time.as_ref().filter(|_| !states_think_time(run));
        capacity_evidence_of(run, implied)
    }

    /// Whether the users of a closed run, and not the system, set its throughput.
    pub(super) fn is_generator_bound(&self, run: &Run) -> bool {
        self.capacity(run).is_some_and(|evidence| evidence.void) && !self.is_impossible(run)
    }

    /// Whether a closed run has more throughput than its users could send: its figures contradict each other.
    pub(super) fn is_impossible(&self, run: &Run) -> bool {
        self.capacity(run).is_some_and(|evidence| evidence.is_impossible(run.requests))
    }

    /// Whether something may be concluded from a run as a whole.
    pub(super) fn is_usable(&self, run: &Run) -> bool {
        run.void.is_empty() && !is_mostly_broken(run) && !self.is_impossible(run)
    }

    /// Different values of something among the capsules.
    pub(super) fn distinct<T: Ord>(&self, of: impl Fn(&'a Capsule) -> Option<T>) -> BTreeSet<T> {
        self.runs.iter().filter_map(|run| run.capsule.as_ref()).filter_map(of).collect()
    }
}

/// The capacities that searches found as measurements for a scaling law. A capacity lies between two rates; both ends stand for
/// how well it is known.
pub(super) fn usl_points(capacities: &[(u32, Capacity)]) -> Vec<UslPoint> {
    let of = |(tasks, capacity): &(u32, Capacity)| match capacity.bounds() {
        Some((passes, Some(fails))) => {
            [passes, fails].map(|throughput| UslPoint { n: f64::from(*tasks), throughput }).to_vec()
        }
        _ => vec![],
    };
    capacities.iter().flat_map(of).collect()
}

/// Arrivals a second that an open run was really offered in its window: phases of one run have factors of the rate that its
/// load states. `None` for closed runs and where no seconds are known.
pub(super) fn offered_rate(run: &Run) -> Option<f64> {
    if !matches!(run.load, Some(Load::Open { .. })) {
        return None;
    }
    let window = run.window.as_ref().map(|window| window.from_second..window.until_second);
    let measured = run.series.iter().filter(|at| window.as_ref().is_none_or(|window| window.contains(&at.second)));
    let (seconds, offered) = measured.fold((0_u64, 0), |(seconds, all), at| (seconds + 1, all + at.work.offered));
    (seconds > 0 && offered > 0).then(|| as_float(offered) / as_float(seconds))
}

/// Whether the source of a run says what the think time was, be it none. k6's outputs do not.
fn states_think_time(run: &Run) -> bool {
    match run.load {
        Some(Load::Closed { think_time_mean_seconds, .. }) => run.capsule.is_some() || think_time_mean_seconds > 0.0,
        _ => false,
    }
}
