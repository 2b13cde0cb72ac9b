//! Every sentence of interpretation, each from a rule with a name.
//!
//! A rule looks at the facts and says nothing, or sentences with their numbers. Its threshold is a constant beside it, and
//! its description, which the report prints, says what it looks at. Nothing outside this folder interprets.

mod bottleneck;
mod conclusion;
mod conditions;
mod errors;
mod load_model;
mod operating_point;
mod scaling;
mod slow_requests;
mod stages;
mod steadiness;
mod tail;
mod validity;

use super::document::{Finding, SectionKind, Severity};
use super::facts::Facts;

/// A rule.
pub(super) struct Rule {
    /// Its name.
    pub(super) id: &'static str,
    /// What it looks at, and from where on it speaks.
    pub(super) about: &'static str,
    /// Where its sentences stand.
    pub(super) section: SectionKind,
    /// What follows from the facts.
    evaluate: fn(&Facts<'_>) -> Vec<Says>,
}

/// One sentence.
struct Says {
    severity: Severity,
    sentence: String,
}

fn void(sentence: String) -> Says {
    Says { severity: Severity::Void, sentence }
}

fn warning(sentence: String) -> Says {
    Says { severity: Severity::Warning, sentence }
}

fn note(sentence: String) -> Says {
    Says { severity: Severity::Note, sentence }
}

/// All rules, in the order in which they speak within a section.
const RULES: [&Rule; 43] = [
    &validity::DRIVER_VOID,
    &validity::SINGLE_IDENTITY,
    &validity::NOT_VERIFIED,
    &validity::RUN_FAILED,
    &validity::MOSTLY_BROKEN,
    &validity::RUN_INTERRUPTED,
    &validity::RUN_WARNING,
    &conditions::MIXED_EXPERIMENTS,
    &conditions::CONFOUNDED,
    &load_model::FIGURES_CONTRADICT,
    &load_model::GENERATOR_BOUND,
    &load_model::SAME_THINK_TIME,
    &load_model::USERS_ACCOUNTED_FOR,
    &load_model::CLOSED_MODEL_STALL,
    &load_model::WORK_DROPPED,
    &load_model::OFFERED_NOT_ACHIEVED,
    &steadiness::STEADY_STATE_NEVER_REACHED,
    &steadiness::WARM_UP_DISCARDED,
    &steadiness::RUNS_REPEAT,
    &tail::PERCENTILE_OF_FEW,
    &tail::HEAVY_TAIL,
    &tail::PERCENTILES_NOT_MERGED,
    &errors::ERRORS_BOUND,
    &errors::ERRORS_OWNER,
    &stages::STAGES_NOT_RECORDED,
    &stages::DOMINANT_STAGE,
    &stages::UNATTRIBUTED_DOMINATES,
    &stages::STAGE_THAT_GREW,
    &slow_requests::SLOW_REQUESTS,
    &operating_point::CAPACITY_FOUND,
    &operating_point::OPERATING_POINT,
    &operating_point::OPERATING_POINT_UNKNOWN,
    &scaling::SCALING_MEASURED,
    &scaling::SCALING_LAW,
    &scaling::TWO_POINTS_IDENTIFY_NO_SCALING_LAW,
    &bottleneck::CPU_SATURATED,
    &bottleneck::POOL_SATURATED,
    &bottleneck::ADMISSION_SATURATED,
    &bottleneck::GENERATOR_COST,
    &bottleneck::NO_BOTTLENECK_SHOWN,
    &conclusion::WHAT_THE_RUNS_SHOW,
    &slow_requests::IS_IT_THE_IDENTITY_PROVIDER,
    &conclusion::CAPACITY_STATEMENT,
];

/// What all rules say, in their order.
pub(super) fn evaluate(facts: &Facts<'_>) -> Vec<(SectionKind, Finding)> {
    let mut findings = Vec::new();
    for rule in RULES {
        for Says { severity, sentence } in (rule.evaluate)(facts) {
            findings.push((rule.section, Finding { rule: rule.id, severity, sentence }));
        }
    }
    findings
}

/// Every rule with what it looks at, in their order.
pub(super) fn descriptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    RULES.iter().map(|rule| (rule.id, rule.about))
}

/// The rule that says the figures which one looks for first.
pub(super) const FIGURES: &str = conclusion::WHAT_THE_RUNS_SHOW.id;

/// The rule that answers a question of its own, where the runs ask it: its sentences stand beside the verdict, before the figures.
pub(super) const ANSWER: &str = slow_requests::IS_IT_THE_IDENTITY_PROVIDER.id;

/// The rule that voids what is said about capacity, and nothing else.
pub(super) const CAPACITY_VOID: &str = load_model::GENERATOR_BOUND.id;

/// The beginning of a sentence: own words with a capital letter, names of runs and endpoints as they are.
fn capitalised(text: &str) -> String {
    let own = ["run ", "all ", "the ", "with ", "two", "too "].iter().any(|word| text.starts_with(word));
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if own => first.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::Options;
    use crate::run::Run;

    /// What one rule says of runs.
    pub(super) fn said(rule: &Rule, runs: &[Run]) -> Vec<(Severity, String)> {
        said_with(rule, runs, &Options::default())
    }

    /// The same of runs with more beside them.
    pub(super) fn said_with(rule: &Rule, runs: &[Run], options: &Options) -> Vec<(Severity, String)> {
        let facts = Facts::new(runs, options);
        (rule.evaluate)(&facts).into_iter().map(|says| (says.severity, says.sentence)).collect()
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_and_says_what_it_looks_at() {
        let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), RULES.len());
        for rule in RULES {
            assert!(rule.id.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'), "{}", rule.id);
            assert!(rule.about.ends_with('.'), "{}", rule.id);
        }
    }

    #[test]
    fn of_no_runs_no_rule_says_anything() {
        let findings = evaluate(&Facts::new(&[], &Options::default()));
        assert!(findings.is_empty(), "{findings:?}");
    }
}
