//! Which runs belong together.

use super::conditions::{Aspect, Condition, in_words};
use crate::run::Run;

/// The role of runs whose figures are the result.
pub const STEADY_STATE: &str = "steady state";
/// The role of runs that led there.
pub const EXPLORATORY: &str = "exploratory";

/// Runs that repeat one another: in one role and under equal conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What they are for; `None` if nobody said.
    pub role: Option<String>,
    /// What tells them from other groups of the same role, in words; empty where they are the only one.
    pub distinction: Vec<String>,
    /// Tasks per service, where all of them say the same.
    pub tasks: Option<u32>,
    /// Whether their figures are the result: those in the role [`STEADY_STATE`]; where no run has it, those with the most tasks.
    pub counts: bool,
    /// Their places in the slice that was grouped, in order.
    pub runs: Vec<usize>,
}

/// Groups runs by role and everything that they were made under, in the order in which the groups first appear. Runs of
/// different conditions are never in one group.
#[must_use]
pub fn groups(runs: &[Run]) -> Vec<Group> {
    groups_by(runs, |_| true)
}

/// [`groups`] by role and the aspects that `matters` names. The trials of one search for capacity differ in their load on purpose.
#[must_use]
pub fn groups_by(runs: &[Run], matters: impl Fn(Aspect) -> bool) -> Vec<Group> {
    let aspects: Vec<Aspect> = Aspect::ALL.into_iter().filter(|aspect| matters(*aspect)).collect();
    let mut found: Vec<Found> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let role = run.role.as_deref().map(displayed);
        let key = role.as_deref().map(canonical);
        let conditions: Vec<Option<Condition>> = aspects.iter().map(|aspect| aspect.of(run)).collect();
        match found.iter_mut().find(|group| group.key == key && group.conditions == conditions) {
            Some(group) => group.runs.push(index),
            None => found.push(Found { role, key, conditions, tasks: run.tasks_per_service, runs: vec![index] }),
        }
    }
    let says_so = found.iter().any(|group| group.key.as_deref() == Some(STEADY_STATE));
    let most = found.iter().map(|group| group.tasks).max().flatten();
    let group = |group: &Found| Group {
        role: group.role.clone(),
        distinction: distinction(group, &found),
        tasks: group.tasks,
        counts: if says_so { group.key.as_deref() == Some(STEADY_STATE) } else { group.tasks == most },
        runs: group.runs.clone(),
    };
    found.iter().map(group).collect()
}

struct Found {
    role: Option<String>,
    /// The role in its one spelling.
    key: Option<String>,
    conditions: Vec<Option<Condition>>,
    tasks: Option<u32>,
    runs: Vec<usize>,
}

/// Those conditions of a group that another one of its role does not share.
fn distinction(group: &Found, all: &[Found]) -> Vec<String> {
    let others: Vec<&Found> = all.iter().filter(|other| other.key == group.key).collect();
    let differing = (0..group.conditions.len()).filter_map(|place| {
        let mut values: Vec<Option<Condition>> = Vec::new();
        for other in &others {
            let value = other.conditions.get(place)?;
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        let own = group.conditions.get(place)?;
        let at = values.iter().position(|value| value == own)?;
        // What is not recorded tells nothing apart; the others' values do.
        (values.len() > 1 && own.is_some()).then(|| in_words(&values).swap_remove(at))
    });
    let told: Vec<String> = differing.collect();
    if told.is_empty() && others.len() > 1 { vec!["conditions not recorded".to_owned()] } else { told }
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
    use crate::report::testing;

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
        let roles: Vec<_> = groups.iter().filter_map(|group| group.role.as_deref()).collect();
        assert_eq!(roles, [EXPLORATORY, STEADY_STATE, "With-Cognito"]);
        assert_eq!(groups.iter().map(|group| group.counts).collect::<Vec<_>>(), [false, true, false]);
        let spelled = super::groups(&[run(Some("Soak"), None), run(Some("soak"), None)]);
        assert_eq!((spelled.len(), spelled[0].role.as_deref()), (1, Some("Soak")));
    }

    #[test]
    fn without_roles_the_most_tasks_count_and_nothing_is_called_a_role() {
        let found = groups(&[run(None, Some(1)), run(None, Some(2)), run(None, Some(1)), run(None, Some(2))]);
        let told: Vec<_> = found.iter().map(|it| (it.distinction.concat(), it.counts, it.runs.clone())).collect();
        assert_eq!(
            told,
            [
                ("1 task per service".to_owned(), false, vec![0, 2]),
                ("2 tasks per service".to_owned(), true, vec![1, 3])
            ]
        );
        assert!(found.iter().all(|group| group.role.is_none()));
    }

    #[test]
    fn without_roles_and_tasks_all_are_one_group() {
        let found = groups(&[run(None, None), run(None, None)]);
        assert_eq!(found, [Group { role: None, distinction: vec![], tasks: None, counts: true, runs: vec![0, 1] }]);
    }

    #[test]
    fn runs_of_different_conditions_are_never_in_one_group() {
        let with = |role: &str, provider: &str, log: &str| {
            let mut capsule = testing::capsule(10);
            let settings = &mut capsule.target.stack.as_mut().expect("a stack").settings;
            settings.insert("AUTH_IDENTITY_PROVIDER".into(), provider.into());
            settings.insert("LOG_LEVEL".into(), log.into());
            Run { role: Some(role.into()), capsule: Some(capsule), ..testing::run("a", []) }
        };
        let runs = [
            with("steady state", "local", "info"),
            with("steady state", "cognito", "info"),
            with("steady state", "local", "info"),
            with("other", "cognito", "debug"),
        ];
        let told: Vec<_> = groups(&runs).into_iter().map(|it| (it.distinction.join(", "), it.runs)).collect();
        assert_eq!(
            told,
            [
                ("own accounts".to_owned(), vec![0, 2]),
                ("Cognito double (answers at once, no quotas)".to_owned(), vec![1]),
                (String::new(), vec![3])
            ]
        );
        let pooled = groups_by(&runs, |aspect| aspect == Aspect::Load);
        assert_eq!(pooled.len(), 2, "what does not matter separates nothing");
    }
}
