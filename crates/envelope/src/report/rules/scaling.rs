//! What more tasks brought.

use std::collections::BTreeSet;

use super::{Rule, note, warning};
use crate::analysis::{Aspect, UslParameter, differences, fit_usl};
use crate::report::document::SectionKind;
use crate::report::facts::{Facts, usl_points};
use crate::report::format;
use crate::report::group::{Group, tasks_in_words};
use crate::statistics::Interval;

pub(super) const SCALING_MEASURED: Rule = Rule {
    id: "scaling-measured",
    about: "Throughput and mean latency of the runs that count against those with fewer tasks per service, means over the \
            runs of each. Where some groups differ in the tasks alone, only those.",
    section: SectionKind::Scaling,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (small, large) in pairs(facts) {
            let (Some(few), Some(many)) = (small.throughput(), large.throughput()) else { continue };
            let (from, to) = (small.tasks.unwrap_or_default(), large.tasks.unwrap_or_default());
            let latency = match (small.overall().mean, large.overall().mean) {
                (Some(slow), Some(fast)) if slow > 0.0 && fast > 0.0 => format!(
                    " and the mean latency of right answers from {} to {} ({})",
                    format::ms(slow),
                    format::ms(fast),
                    if slow >= fast {
                        format!("{} times shorter", format::factor(slow / fast))
                    } else {
                        format!("{} times longer", format::factor(fast / slow))
                    }
                ),
                _ => String::new(),
            };
            let goodput = match (small.goodput(), large.goodput()) {
                (Some(few_good), Some(many_good))
                    if few_good.mean > 0.0
                        && [(&few_good, &few), (&many_good, &many)]
                            .iter()
                            .any(|(good, all)| format::rate(good.mean) != format::rate(all.mean)) =>
                {
                    format!(
                        ", goodput from {} to {} ({})",
                        format::rate(few_good.mean),
                        format::rate(many_good.mean),
                        format::change(many_good.mean / few_good.mean - 1.0)
                    )
                }
                _ => String::new(),
            };
            let which = if is_ambiguous(facts, small, large) {
                format!(" ({} against {})", small.title, large.title)
            } else {
                String::new()
            };
            let beside = beside_tasks(small, large);
            let beside = if beside.is_empty() {
                String::new()
            } else {
                format!("; the {} changed as well, so that this is not of the tasks alone", format::list(&beside))
            };
            said.push(note(format!(
                "From {} to {}{which} throughput went from {} to {} requests a second ({}){goodput}{latency}{beside}.",
                tasks_in_words(from),
                tasks_in_words(to),
                format::rate(few.mean),
                format::rate(many.mean),
                format::change(many.mean / few.mean - 1.0),
            )));
            let bound = large.runs.iter().any(|run| facts.is_generator_bound(run));
            if bound {
                said.push(warning(format!(
                    "The gain of {} is a lower bound, not a scaling factor: with {} the users were the limit, so that more \
                     capacity could not show.",
                    format::change(many.mean / few.mean - 1.0),
                    tasks_in_words(to),
                )));
            }
        }
        said
    },
};

/// Groups with the fewest tasks, each against those with more: those that differ in the tasks alone, where there are any.
fn pairs<'f, 'a>(facts: &'f Facts<'a>) -> Vec<(&'f Group<'a>, &'f Group<'a>)> {
    let Some(fewest) = sizes(facts).first().copied() else { return vec![] };
    let all: Vec<(&Group<'a>, &Group<'a>)> = facts
        .groups
        .iter()
        .filter(|group| group.tasks == Some(fewest))
        .flat_map(|small| {
            let larger = facts.groups.iter().filter(move |group| group.tasks.is_some_and(|tasks| tasks > fewest));
            larger.map(move |large| (small, large))
        })
        .collect();
    let clean = |(small, large): &(&Group<'a>, &Group<'a>)| beside_tasks(small, large).is_empty();
    let clean: Vec<_> = all.iter().copied().filter(clean).collect();
    if clean.is_empty() { all } else { clean }
}

/// What two groups differ in beside their tasks.
fn beside_tasks(small: &Group<'_>, large: &Group<'_>) -> Vec<String> {
    let found = differences(small.runs.iter().chain(&large.runs).copied()).into_iter();
    found.filter(|it| it.aspect != Aspect::Tasks).map(|it| it.aspect.to_string()).collect()
}

/// Whether the numbers of tasks do not say which groups are meant.
fn is_ambiguous(facts: &Facts<'_>, small: &Group<'_>, large: &Group<'_>) -> bool {
    let as_many = |group: &Group<'_>| facts.groups.iter().filter(|other| other.tasks == group.tasks).count();
    as_many(small) > 1 || as_many(large) > 1
}

fn sizes(facts: &Facts<'_>) -> BTreeSet<u32> {
    facts.groups.iter().filter_map(|group| group.tasks).collect()
}

pub(super) const SCALING_LAW: Rule = Rule {
    id: "scaling-law",
    about: "The Universal Scalability Law, X(N) = λN/(1+σ(N−1)+κN(N−1)) (Gunther, 2007), fitted to the capacities found over \
            task counts by least squares, with 95 % intervals; refused where the points cannot identify it.",
    section: SectionKind::Scaling,
    evaluate: |facts| {
        let points = usl_points(facts.capacities);
        if points.is_empty() {
            return vec![];
        }
        match fit_usl(&points) {
            Err(refusal) => vec![warning(format!("No scaling law is fitted to the capacities: {refusal}."))],
            Ok(fit) => {
                let parameter = |name: &str, parameter: UslParameter, unit: &str| {
                    let digits = |value: f64| format!("{value:.3}");
                    let Interval { low, high, .. } = parameter.interval;
                    format!("{name} {}{unit} ({} to {})", digits(parameter.value), digits(low), digits(high))
                };
                let peak = fit.peak.map_or_else(
                    || "no task count at which throughput peaks can be told".to_owned(),
                    |peak| format!("throughput peaks at {} tasks", parameter("N =", peak, "")),
                );
                let mut said = vec![note(format!(
                    "The capacities follow the Universal Scalability Law with {}, {} and {} (95 % intervals); {peak}.",
                    parameter("λ", fit.lambda, "/s"),
                    parameter("σ", fit.sigma, ""),
                    parameter("κ", fit.kappa, ""),
                ))];
                said.extend(fit.caveats.iter().map(|caveat| warning(format!("The fit leaves open: {caveat}."))));
                said
            }
        }
    },
};

/// λ, σ and κ of the Universal Scalability Law.
const PARAMETERS: usize = 3;

pub(super) const TWO_POINTS_IDENTIFY_NO_SCALING_LAW: Rule = Rule {
    id: "two-points-identify-no-scaling-law",
    about: "The Universal Scalability Law (Gunther, 1993) has three parameters: fewer than three different task counts fit \
            any of them, so that nothing can be said of further tasks.",
    section: SectionKind::Scaling,
    evaluate: |facts| {
        let sizes = sizes(facts);
        if !facts.capacities.is_empty() {
            return vec![];
        }
        match sizes.len() {
            0 => vec![],
            1 => vec![note("All runs have the same number of tasks: nothing is said about scaling.".to_owned())],
            points if points < PARAMETERS => {
                let counts: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                vec![warning(format!(
                    "{} task counts ({}) identify no scaling law: its three parameters fit any two points, so that what a \
                     further task brings cannot be extrapolated.",
                    super::capitalised(if points == 2 { "two" } else { "too few" }),
                    format::list(&counts),
                ))]
            }
            _ => vec![],
        }
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::{said, said_with};
    use super::*;
    use crate::analysis::{Capacity, CapacityOutcome};
    use crate::report::Options;
    use crate::report::document::Severity;
    use crate::report::testing::{figures, phase_4};

    #[test]
    fn the_second_task_brought_what_it_brought_at_least() {
        let sentences = said(&SCALING_MEASURED, &phase_4());
        for part in ["189.91", "222.04", "+17 %", "232 ms to 75.3 ms (3.1 times shorter)"] {
            assert!(sentences[0].1.contains(part), "{part} is missing: {sentences:?}");
        }
        assert_eq!(sentences[1].0, Severity::Warning);
        assert!(sentences[1].1.contains("lower bound"), "{sentences:?}");
    }

    #[test]
    fn two_task_counts_are_too_few_and_three_are_not() {
        let mut runs = phase_4();
        assert!(said(&TWO_POINTS_IDENTIFY_NO_SCALING_LAW, &runs)[0].1.starts_with("Two task counts (1 and 2)"));
        runs.push(figures("r", "steady state", 4, 300.0, 60.0));
        assert_eq!(said(&TWO_POINTS_IDENTIFY_NO_SCALING_LAW, &runs), []);
    }

    #[test]
    fn a_law_is_fitted_to_enough_capacities_and_refused_for_two() {
        let capacities = |rates: &[(u32, f64)]| {
            let found = |&(tasks, rate): &(u32, f64)| {
                let outcome = CapacityOutcome::Found { passes: rate, fails: rate * 1.01 };
                (tasks, Capacity { outcome, operating_points: vec![], trials: vec![] })
            };
            Options { capacities: rates.iter().map(found).collect(), ..Options::default() }
        };
        // λ = 100, σ = 0.05, κ = 0.01
        let fitted = said_with(&SCALING_LAW, &[], &capacities(&[(1, 100.0), (2, 186.9), (4, 315.0), (8, 418.0)]));
        assert!(fitted[0].1.contains("follow the Universal Scalability Law with λ 10"), "{fitted:?}");
        let refused = said_with(&SCALING_LAW, &[], &capacities(&[(1, 100.0), (2, 186.9)]));
        assert!(refused[0].1.contains("at least three are needed"), "{refused:?}");
    }
}
