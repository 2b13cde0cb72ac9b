//! Whether the measured seconds are of one state, and the runs of one experiment.

use std::collections::BTreeSet;

use super::{Rule, capitalised, note, warning};
use crate::report::document::SectionKind;
use crate::report::format;
use crate::run::{Run, WindowRule};

pub(super) const STEADY_STATE_NEVER_REACHED: Rule = Rule {
    id: "steady-state-never-reached",
    about: "A run whose throughput or latency still drifts where the warm-up should have ended (MSER, White 1997, and a test \
            for trend on the rest): its figures depend on when it was stopped.",
    section: SectionKind::Throughput,
    evaluate: |facts| {
        let reasons: BTreeSet<&str> = facts.runs.iter().filter_map(why_never).collect();
        let sentence = |reason: &str| {
            let names = facts.names_of(|run| why_never(run) == Some(reason))?;
            Some(warning(format!(
                "{} never reached a steady state ({}): the figures are of the whole measured phase and would be others in a \
                 longer run.",
                capitalised(&names),
                reason.trim_end_matches('.'),
            )))
        };
        reasons.into_iter().filter_map(sentence).collect()
    },
};

fn why_never(run: &Run) -> Option<&str> {
    match run.window.as_ref().map(|window| &window.found) {
        Some(WindowRule::NeverReached { reason }) => Some(reason),
        _ => None,
    }
}

pub(super) const WARM_UP_DISCARDED: Rule = Rule {
    id: "warm-up-discarded",
    about: "How many seconds were cut from the beginning of the measured phase before the series was steady.",
    section: SectionKind::Throughput,
    evaluate: |facts| {
        let found = |run: &Run| run.window.as_ref().map(|window| window.found.clone());
        let mut said = Vec::new();
        if let Some(names) = facts.names_of(|run| found(run) == Some(WindowRule::WholePhase)) {
            said.push(note(format!("{}: steady from the beginning of the measured phase.", capitalised(&names))));
        }
        for (run, name) in facts.runs_with_names() {
            if let Some(WindowRule::Truncated { seconds }) = found(run) {
                said.push(note(format!(
                    "{}: the first {} of the measured phase were not steady yet and are discarded beside the warm-up.",
                    capitalised(name),
                    format::seconds(f64::from(seconds)),
                )));
            }
        }
        if let Some(names) = facts.names_of(|run| found(run).is_none_or(|found| found == WindowRule::Unknown)) {
            said.push(note(format!(
                "{}: the source has totals only, so that warm-up may be among them and nothing shows a steady state.",
                capitalised(&names)
            )));
        }
        said
    },
};

/// Repeated runs within this spread are taken as repeating one another.
const REPEATS: f64 = 0.01;

pub(super) const RUNS_REPEAT: Rule = Rule {
    id: "runs-repeat",
    about: "Spread of throughput, (max − min) / mean, over the runs of one role and of equal conditions. Below 1 % they repeat one another; a \
            difference between systems that is smaller than this spread is not to be told from chance.",
    section: SectionKind::Throughput,
    evaluate: |facts| {
        let mut said = Vec::new();
        for group in facts.groups.iter().filter(|group| group.runs.len() > 1 && group.is_loaded_alike()) {
            let Some(sample) = group.throughput() else { continue };
            let Some(spread) = sample.spread() else { continue };
            let sentence = format!(
                "{} lie within {} of one another around {} requests a second",
                capitalised(&group.title),
                format::percent(spread),
                format::rate(sample.mean),
            );
            said.push(if spread <= REPEATS {
                note(format!("{sentence}: they repeat."))
            } else {
                warning(format!("{sentence}: more than the 1 % that repeated runs should show."))
            });
        }
        said
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::document::Severity;
    use crate::report::testing::{capsule, figures, run};
    use crate::result::Load;
    use crate::run::Window;

    #[test]
    fn a_run_that_drifts_warns_with_the_reason() {
        let window = Window {
            from_second: 0,
            until_second: 60,
            found: WindowRule::NeverReached { reason: "p50 grows by 4 ms a minute.".into() },
        };
        let sentences = said(&STEADY_STATE_NEVER_REACHED, &[Run { window: Some(window), ..run("a", []) }]);
        assert_eq!(sentences[0].0, Severity::Warning);
        assert!(sentences[0].1.contains("(p50 grows by 4 ms a minute)"), "{sentences:?}");
        assert_eq!(said(&STEADY_STATE_NEVER_REACHED, &[run("a", [])]), []);
    }

    #[test]
    fn a_small_spread_repeats_and_a_large_one_warns() {
        let runs = |rates: [f64; 3]| rates.map(|rate| figures("a", "steady state", 2, rate, 75.0));
        let steady = said(&RUNS_REPEAT, &runs([222.35, 221.79, 221.97]));
        assert_eq!(steady[0].0, Severity::Note);
        assert!(steady[0].1.contains("0.25 %") && steady[0].1.contains("222.04"), "{steady:?}");
        assert_eq!(said(&RUNS_REPEAT, &runs([222.35, 190.0, 221.97]))[0].0, Severity::Warning);
        assert_eq!(said(&RUNS_REPEAT, &runs([1.0, 1.0, 1.0])[..1]), []);
        let mut under_another_load = runs([222.35, 190.0, 221.97]);
        under_another_load[1].load = Some(Load::Closed { vus: 100, think_time_mean_seconds: 0.82 });
        let alike = said(&RUNS_REPEAT, &under_another_load);
        assert!(
            alike.len() == 1 && alike[0].1.starts_with("The 2 runs"),
            "the one under another load is no repeat: {alike:?}"
        );
        let mut tuned = runs([222.35, 190.0, 221.97]).map(|run| Run { capsule: Some(capsule(200)), ..run });
        let stack = tuned[1].capsule.as_mut().and_then(|capsule| capsule.target.stack.as_mut()).unwrap();
        stack.pools.values_mut().for_each(|pool| pool.max = 30);
        let alike = said(&RUNS_REPEAT, &tuned);
        assert_eq!(alike.len(), 1, "{alike:?}");
        assert!(alike[0].1.starts_with("The 2 runs"), "the one with other pools is no repeat: {alike:?}");
    }
}
