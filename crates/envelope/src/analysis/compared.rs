//! What two groups of runs differ in, and so what a difference between their figures may be put down to.

use super::conditions::{Aspect, Condition, Difference, differences, in_words};
use crate::run::Run;

/// Measured times further apart than this, as a share of the longer, are told where only the files' own length is known.
const SAME_LENGTH: f64 = 0.05;

/// What is compared, and what differs beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// The one condition that is compared: the only one that differs, or the only one of the system and its load. `None` where
    /// nothing differs, and where several do.
    pub subject: Option<Difference>,
    /// What differs beside the subject.
    pub beside: Vec<Difference>,
    /// What only one of the groups says: whether it differs is not known.
    pub unknown: Vec<Aspect>,
    /// In what the runs of the first group differ among themselves.
    pub within_a: Vec<Difference>,
    /// In what those of the second do.
    pub within_b: Vec<Difference>,
}

impl Compared {
    /// What these groups differ in.
    #[must_use]
    pub fn of(a: &[Run], b: &[Run]) -> Self {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for aspect in Aspect::ALL {
            let (of_a, of_b) = (known(aspect, a), known(aspect, b));
            match (of_a.is_empty(), of_b.is_empty()) {
                (true, true) => found.extend((aspect == Aspect::Duration).then(|| length(a, b)).flatten()),
                (false, false) if !equal(&of_a, &of_b) && says_less(&of_a, &of_b) => unknown.push(aspect),
                (false, false) if !equal(&of_a, &of_b) => found.push(between(aspect, &of_a, &of_b)),
                (false, false) => {}
                _ => unknown.push(aspect),
            }
        }
        let of_the_system: Vec<usize> =
            (0..found.len()).filter(|place| !found[*place].aspect.is_of_the_method()).collect();
        let subject = match (&of_the_system[..], found.len()) {
            ([only], _) => Some(found.remove(*only)),
            ([], 1) => found.pop(),
            _ => None,
        };
        Self { subject, beside: found, unknown, within_a: differences(a), within_b: differences(b) }
    }

    /// Whether more than one condition differs, so that a difference in the figures is of no single one.
    #[must_use]
    pub fn is_confounded(&self) -> bool {
        !self.beside.is_empty()
    }

    /// Whether a group holds runs of different conditions.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        !self.within_a.is_empty() || !self.within_b.is_empty()
    }
}

/// The different conditions that runs know of an aspect.
fn known(aspect: Aspect, runs: &[Run]) -> Vec<Condition> {
    let mut found: Vec<Condition> = Vec::new();
    for condition in runs.iter().filter_map(|run| aspect.of(run)) {
        if !found.contains(&condition) {
            found.push(condition);
        }
    }
    found
}

fn equal(a: &[Condition], b: &[Condition]) -> bool {
    a.len() == b.len() && a.iter().all(|condition| b.contains(condition))
}

/// Whether one side says the same as the other and no more than a part of it: k6's files know users and no think time.
fn says_less(a: &[Condition], b: &[Condition]) -> bool {
    matches!((a, b), ([a], [b]) if a.is_part_of(b) || b.is_part_of(a))
}

fn between(aspect: Aspect, a: &[Condition], b: &[Condition]) -> Difference {
    let words = in_words(&a.iter().chain(b).cloned().map(Some).collect::<Vec<_>>());
    let (of_a, of_b) = words.split_at(a.len());
    Difference { aspect, values: vec![of_a.join(" and "), of_b.join(" and ")] }
}

/// Whether files without a capsule are of runs of different lengths.
fn length(a: &[Run], b: &[Run]) -> Option<Difference> {
    let longest = |runs: &[Run]| runs.iter().filter_map(|run| run.seconds).reduce(f64::max);
    let (of_a, of_b) = (longest(a)?, longest(b)?);
    let apart = (of_a - of_b).abs() > SAME_LENGTH * of_a.max(of_b);
    let words = |seconds: f64| format!("measured {seconds:.0} s");
    apart.then(|| Difference { aspect: Aspect::Duration, values: vec![words(of_a), words(of_b)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;
    use crate::result::Capsule;

    fn made(change: impl FnOnce(&mut Capsule)) -> [Run; 1] {
        let mut capsule = testing::capsule(10);
        change(&mut capsule);
        [Run { load: Some(capsule.load.clone()), capsule: Some(capsule), ..testing::run("a", []) }]
    }

    fn on_cognito(capsule: &mut Capsule) {
        let settings = &mut capsule.target.stack.as_mut().expect("a stack").settings;
        settings.insert("AUTH_IDENTITY_PROVIDER".into(), "cognito".into());
    }

    fn shorter(capsule: &mut Capsule) {
        capsule.phases[0].until_second = 30;
    }

    #[test]
    fn the_one_thing_that_differs_is_what_is_compared() {
        assert_eq!(Compared::of(&made(|_| {}), &made(|_| {})), Compared::default());
        let compared = Compared::of(&made(|_| {}), &made(on_cognito));
        let subject = compared.subject.as_ref().expect("one");
        assert_eq!(
            subject.to_string(),
            "identity provider: own accounts against Cognito double (answers at once, no quotas)"
        );
        assert!(!compared.is_confounded());
        let lengths = Compared::of(&made(|_| {}), &made(shorter));
        assert_eq!(lengths.subject.map(|it| it.aspect), Some(Aspect::Duration));
    }

    #[test]
    fn how_it_was_measured_is_no_subject_beside_the_system() {
        let both = |capsule: &mut Capsule| {
            on_cognito(capsule);
            shorter(capsule);
        };
        let compared = Compared::of(&made(|_| {}), &made(both));
        assert_eq!(compared.subject.as_ref().map(|it| it.aspect), Some(Aspect::IdentityProvider));
        let beside: Vec<String> = compared.beside.iter().map(ToString::to_string).collect();
        assert_eq!(beside, ["measured time: measured 60 s against measured 30 s"]);
        assert!(compared.is_confounded());
    }

    #[test]
    fn of_two_differences_of_the_system_neither_is_the_subject() {
        let both = |capsule: &mut Capsule| {
            on_cognito(capsule);
            capsule.target.stack.as_mut().expect("a stack").task_cpu_units.clear();
        };
        let compared = Compared::of(&made(|_| {}), &made(both));
        assert_eq!((compared.subject.is_none(), compared.beside.len()), (true, 2));
    }

    #[test]
    fn a_group_of_different_runs_is_mixed() {
        let mixed = [made(|_| {}), made(shorter)].concat();
        let compared = Compared::of(&mixed, &made(|_| {}));
        assert!(compared.is_mixed());
        assert_eq!(compared.within_a[0].aspect, Aspect::Duration);
    }

    #[test]
    fn what_one_side_does_not_say_is_unknown_and_no_difference() {
        let k6 = [testing::run("b", [])];
        let compared = Compared::of(&made(|_| {}), &k6);
        assert!(compared.unknown.contains(&Aspect::Scenario), "{compared:?}");
        assert!(compared.unknown.contains(&Aspect::Load), "as many users, and who knows how they think: {compared:?}");
        assert!(compared.subject.is_none() && !compared.is_confounded(), "{compared:?}");
        let longer = [Run { seconds: Some(180.0), ..testing::run("c", []) }];
        let lengths = Compared::of(&k6, &longer).subject.expect("one");
        assert_eq!(lengths.to_string(), "measured time: measured 60 s against measured 180 s");
        let hardly = [Run { seconds: Some(60.9), ..testing::run("c", []) }];
        assert_eq!(Compared::of(&k6, &hardly).subject, None);
    }
}
