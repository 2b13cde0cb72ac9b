//! Which runs belong together.

use std::collections::BTreeSet;

use crate::run::Run;

/// The role of runs whose figures are the result.
pub const STEADY_STATE: &str = "steady state";
/// The role of runs that led there.
pub const EXPLORATORY: &str = "exploratory";

/// Runs in the same role with the same number of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What they are for.
    pub role: String,
    /// Tasks per service, where all of them say the same.
    pub tasks: Option<u32>,
    /// Their places in the slice that was grouped, in order.
    pub runs: Vec<usize>,
}

impl Group {
    /// Whether these runs are the result.
    #[must_use]
    pub fn is_steady_state(&self) -> bool {
        self.role == STEADY_STATE
    }
}

/// Groups runs by role and tasks, in the order in which the groups first appear.
///
/// A run that has a role keeps it. For the others: where task counts differ, those with the most tasks are [`STEADY_STATE`]
/// and the rest [`EXPLORATORY`]; otherwise all are steady state.
#[must_use]
pub fn groups(runs: &[Run]) -> Vec<Group> {
    let known: BTreeSet<u32> =
        runs.iter().filter(|run| run.role.is_none()).filter_map(|run| run.tasks_per_service).collect();
    let most = known.last().copied();
    let role = |run: &Run| match &run.role {
        Some(role) => displayed(role),
        None if known.len() > 1 && run.tasks_per_service != most => EXPLORATORY.to_owned(),
        None => STEADY_STATE.to_owned(),
    };
    let mut groups: Vec<Group> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let (role, tasks) = (role(run), run.tasks_per_service);
        match groups.iter_mut().find(|group| canonical(&group.role) == canonical(&role) && group.tasks == tasks) {
            Some(group) => group.runs.push(index),
            None => groups.push(Group { role, tasks, runs: vec![index] }),
        }
    }
    groups
}

/// The two roles that mean something here have one spelling; others keep that of the first run.
fn displayed(role: &str) -> String {
    let canonical = canonical(role);
    if [STEADY_STATE, EXPLORATORY].contains(&canonical.as_str()) { canonical } else { role.trim().to_owned() }
}

/// `Steady-State`, `steady_state` and `steady state` are one role.
fn canonical(role: &str) -> String {
    role.trim().to_lowercase().replace(['-', '_'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::pooled::tests::figures;

    fn run(role: Option<&str>, tasks: Option<u32>) -> Run {
        Run { role: role.map(Into::into), tasks_per_service: tasks, ..figures("run", 100.0, 50.0) }
    }

    #[test]
    fn given_roles_are_kept() {
        let groups = groups(&[
            run(Some("Exploratory"), Some(1)),
            run(Some("steady-state"), Some(2)),
            run(Some("With-Cognito"), None),
        ]);
        let roles: Vec<_> = groups.iter().map(|group| group.role.as_str()).collect();
        assert_eq!(roles, [EXPLORATORY, STEADY_STATE, "With-Cognito"]);
        let spelled = super::groups(&[run(Some("Soak"), None), run(Some("soak"), None)]);
        assert_eq!((spelled.len(), spelled[0].role.as_str()), (1, "Soak"));
    }

    #[test]
    fn without_roles_the_most_tasks_are_the_steady_state() {
        let found = groups(&[run(None, Some(1)), run(None, Some(2)), run(None, Some(1)), run(None, Some(2))]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].role.as_str(), found[0].runs.as_slice()), (EXPLORATORY, [0, 2].as_slice()));
        assert_eq!((found[1].role.as_str(), found[1].runs.as_slice()), (STEADY_STATE, [1, 3].as_slice()));
    }

    #[test]
    fn without_roles_and_tasks_all_are_one_group() {
        let found = groups(&[run(None, None), run(None, None)]);
        assert_eq!(found, [Group { role: STEADY_STATE.into(), tasks: None, runs: vec![0, 1] }]);
    }
}
