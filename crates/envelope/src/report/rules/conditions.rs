//! Whether the runs were made under the same conditions, and what follows where they were not.

use super::{Rule, Says, capitalised, note, warning};
use crate::analysis::{Aspect, Difference, differences};
use crate::report::document::SectionKind;
use crate::report::facts::Facts;
use crate::report::format;
use crate::report::group::Group;
use crate::run::Run;

pub(super) const MIXED_EXPERIMENTS: Rule = Rule {
    id: "mixed-experiments",
    about: "Conditions that matter for the figures and are not the same in all runs: scenario, load, identity provider, settings, \
            pools, CPU quota, target, users in the database, driver, ramp, warm-up, measured time, machine, revision. Only runs of \
            equal conditions are put together. What differs within one role, and what changes the experiment itself, is a \
            reservation; what roles tell apart is a note. Tasks are what scaling is about.",
    section: SectionKind::Provenance,
    evaluate: |facts| {
        let matters =
            |aspect: Aspect| aspect != Aspect::Tasks && (facts.capacities.is_empty() || !aspect.is_of_the_load());
        let known = facts.runs.iter().filter(|run| run.capsule.is_some());
        let mut said: Vec<Says> = Vec::new();
        let mut told: Vec<String> = Vec::new();
        for difference in differences(facts.runs.iter()) {
            // Sources without a capsule say nothing of most aspects; that is one sentence, below.
            let recorded = differences(known.clone()).into_iter().find(|it| it.aspect == difference.aspect);
            let is_load = difference.aspect == Aspect::Load || difference.aspect == Aspect::Driver;
            let Some(Difference { aspect, values }) = (if is_load { Some(difference) } else { recorded }) else {
                continue;
            };
            if !matters(aspect) {
                continue;
            }
            let values = format::list(&values);
            let changes_all = matches!(aspect, Aspect::Driver | Aspect::Machine | Aspect::Revision | Aspect::Target);
            if changes_all || splits_a_role(facts, aspect) {
                said.push(warning(format!(
                    "The runs differ in their {aspect} ({values}); those that differ are not put together."
                )));
            } else {
                told.push(format!("{aspect} ({values})"));
            }
        }
        if !told.is_empty() {
            said.push(note(format!("The runs of different roles differ in their {}.", format::list(&told))));
        }
        let with = known.count();
        if with > 0 && with < facts.runs.len() {
            said.push(note(format!(
                "{} of {} runs say what they were run on; nothing shows that the others are of the same system.",
                with,
                facts.runs.len()
            )));
        }
        said
    },
};

/// Whether runs that nobody gave different roles differ in it.
fn splits_a_role(facts: &Facts<'_>, aspect: Aspect) -> bool {
    let role = |run: &Run| run.role.as_deref().map(|role| role.trim().to_lowercase().replace(['-', '_'], " "));
    facts.runs.iter().any(|run| {
        let same_role = facts.runs.iter().filter(|other| role(other) == role(run));
        differences(same_role).iter().any(|difference| difference.aspect == aspect)
    })
}

pub(super) const CONFOUNDED: Rule = Rule {
    id: "confounded",
    about: "Runs that differ from every other group in two conditions or more at once: by what their figures differ cannot be put \
            down to any one of them.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        if !facts.capacities.is_empty() {
            return vec![];
        }
        let apart = |one: &Group<'_>, other: &Group<'_>| {
            let between = one.runs.iter().chain(&other.runs).copied();
            differences(between).into_iter().map(|difference| difference.aspect).collect::<Vec<Aspect>>()
        };
        let mut said = Vec::new();
        for group in facts.counting() {
            let others = facts.groups.iter().filter(|other| !std::ptr::eq(*other, group));
            let Some(least) = others.map(|other| apart(group, other)).min_by_key(Vec::len) else { continue };
            if least.len() > 1 {
                let names: Vec<String> = least.iter().map(ToString::to_string).collect();
                said.push(warning(format!(
                    "{} differ{} from all others in more than one condition (at least {}): by what the figures differ cannot be \
                     put down to one of them.",
                    capitalised(&group.title),
                    if group.runs.len() == 1 { "s" } else { "" },
                    format::list(&names),
                )));
            }
        }
        said
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::{said, said_with};
    use super::*;
    use crate::report::document::Severity;
    use crate::report::testing;
    use crate::result::{Capsule, Load};

    fn made(role: Option<&str>, change: impl FnOnce(&mut Capsule)) -> Run {
        let mut capsule = testing::capsule(10);
        change(&mut capsule);
        let (role, load) = (role.map(str::to_owned), Some(capsule.load.clone()));
        Run { role, load, capsule: Some(capsule), ..testing::run("a", []) }
    }

    fn on_cognito(capsule: &mut Capsule) {
        let settings = &mut capsule.target.stack.as_mut().expect("a stack").settings;
        settings.insert("AUTH_IDENTITY_PROVIDER".into(), "cognito".into());
    }

    #[test]
    fn what_differs_within_a_role_is_a_reservation() {
        for role in [None, Some("steady state")] {
            let sentences = said(&MIXED_EXPERIMENTS, &[made(role, |_| {}), made(role, on_cognito)]);
            assert_eq!(sentences.len(), 1, "{sentences:?}");
            assert_eq!(sentences[0].0, Severity::Warning);
            let expected = "identity provider (own accounts and Cognito double (answers at once, no quotas))";
            assert!(sentences[0].1.contains(expected), "{sentences:?}");
        }
        assert_eq!(said(&MIXED_EXPERIMENTS, &[made(None, |_| {}), made(None, |_| {})]), []);
    }

    #[test]
    fn what_roles_tell_apart_is_a_note() {
        let sentences = said(&MIXED_EXPERIMENTS, &[made(Some("local"), |_| {}), made(Some("cognito"), on_cognito)]);
        assert_eq!(sentences[0].0, Severity::Note);
        assert!(sentences[0].1.contains("differ in their identity provider"), "{sentences:?}");
    }

    #[test]
    fn runs_of_one_role_under_different_loads_are_said_to_be() {
        let open = Run { load: Some(Load::Open { arrivals_per_second: 37.0 }), ..testing::run("b", []) };
        let sentences = said(&MIXED_EXPERIMENTS, &[testing::run("a", []), open.clone()]);
        assert!(sentences[0].1.contains("load (10 virtual users and 37 arrivals a second)"), "{sentences:?}");
        assert_eq!(said(&MIXED_EXPERIMENTS, &[open.clone(), open]), []);
    }

    #[test]
    fn trials_of_a_search_are_loaded_differently_on_purpose() {
        let outcome = crate::analysis::CapacityOutcome::Found { passes: 100.0, fails: 104.0 };
        let capacity = crate::analysis::Capacity { outcome, operating_points: vec![], trials: vec![] };
        let options = crate::report::Options { capacities: vec![(1, capacity)], ..crate::report::Options::default() };
        let at = |rate| made(None, |capsule| capsule.load = Load::Open { arrivals_per_second: rate });
        assert_eq!(said_with(&MIXED_EXPERIMENTS, &[at(10.0), at(20.0)], &options), []);
        assert_eq!(said_with(&CONFOUNDED, &[at(10.0), at(20.0)], &options), []);
    }

    #[test]
    fn two_differences_at_once_are_confounded_and_one_is_not() {
        let shorter = |capsule: &mut Capsule| {
            on_cognito(capsule);
            capsule.phases[0].until_second = 30;
        };
        let sentences = said(&CONFOUNDED, &[made(None, |_| {}), made(None, shorter)]);
        assert_eq!(sentences.len(), 2, "each from the other: {sentences:?}");
        assert!(sentences[0].1.contains("identity provider and measured time"), "{sentences:?}");
        assert_eq!(said(&CONFOUNDED, &[made(None, |_| {}), made(None, on_cognito)]), []);
        let between = [made(None, |_| {}), made(None, on_cognito), made(None, shorter)];
        assert_eq!(said(&CONFOUNDED, &between), [], "each has a neighbour that differs in one thing");
    }
}
