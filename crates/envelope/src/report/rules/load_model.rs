//! What the way of loading does to the figures.

use super::{Rule, capitalised, note, void, warning};
use crate::analysis::think_time_of;
use crate::laws::{Agreement, check_users};
use crate::report::document::SectionKind;
use crate::report::facts::Facts;
use crate::report::format;
use crate::report::group::Group;
use crate::result::Load;
use crate::run::{Run, Second};

pub(super) const GENERATOR_BOUND: Rule = Rule {
    id: "generator-bound",
    about: "A closed run that achieves 90 % or more of N/Z: its N virtual users, each thinking for Z seconds, could send \
            hardly more however fast the system were (interactive response time law, X = N/(R+Z); Denning and Buzen, 1978).",
    section: SectionKind::Conclusion,
    evaluate: |facts| facts.groups.iter().filter_map(|group| bound_in_words(facts, group)).map(void).collect(),
};

/// One sentence for all runs of a group that are bound, with the figures of the one that is most.
fn bound_in_words(facts: &Facts<'_>, group: &Group<'_>) -> Option<String> {
    let bound = |run: &Run| facts.is_generator_bound(run) && group.runs.iter().any(|member| std::ptr::eq(*member, run));
    let names = facts.names_of(bound)?;
    let (run, evidence) = group
        .runs
        .iter()
        .filter(|run| facts.is_generator_bound(run))
        .filter_map(|run| facts.capacity(run).map(|evidence| (*run, evidence)))
        .max_by(|a, b| a.1.throughput.total_cmp(&b.1.throughput))?;
    let implied = if facts.implied_think_time.is_some() && run.capsule.is_none() {
        ", as their figures imply (Z = N/X − R),"
    } else {
        ""
    };
    let which = facts.names_of(|other| std::ptr::eq(other, run)).unwrap_or_default();
    let share = evidence.share_of_bound?;
    let chance = if share > 1.0 { " (think times are random, and this run's were a little shorter)" } else { "" };
    Some(format!(
        "The throughput of {names} says nothing about capacity: {} virtual users who think for {} on average{implied} cannot send more than {} \
         requests a second in the long run, however fast the system is; {which} sent {} at a mean response time of {}, {} of \
         that bound{chance}.",
        format::decimals(evidence.users, 0),
        format::seconds(evidence.think_time),
        format::rate(evidence.bound?),
        format::rate(evidence.throughput),
        format::ms(evidence.response_time * 1000.0),
        format::percent(share),
    ))
}

pub(super) const FIGURES_CONTRADICT: Rule = Rule {
    id: "figures-contradict",
    about: "A closed run with more throughput than its N virtual users, each thinking for Z seconds, could send: above N/Z by more \
            than 5 % and more than random think times explain (3/√n for n requests). One of the three figures is wrong.",
    section: SectionKind::Conclusion,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names().filter(|(run, _)| facts.is_impossible(run)) {
            let Some(evidence) = facts.capacity(run) else { continue };
            let (Some(bound), Some(share)) = (evidence.bound, evidence.share_of_bound) else { continue };
            said.push(void(format!(
                "The figures of {name} contradict each other: {} virtual users who think for {} on average cannot send more than \
                 {} requests a second, and {} are recorded, {} of that. Users, think time or throughput are not what the record \
                 says, and nothing follows from them.",
                format::decimals(evidence.users, 0),
                format::seconds(evidence.think_time),
                format::rate(bound),
                format::rate(evidence.throughput),
                format::percent(share),
            )));
        }
        said
    },
};

/// Virtual users and think time in seconds of a closed run.
fn closed(run: &Run) -> Option<(f64, f64)> {
    match run.load {
        Some(Load::Closed { vus, think_time_mean_seconds }) => Some((f64::from(vus), think_time_mean_seconds)),
        _ => None,
    }
}

pub(super) const SAME_THINK_TIME: Rule = Rule {
    id: "same-think-time",
    about: "Closed runs whose figures imply the same think time, Z = N/X − R, within 5 %: they differ only in how long \
            answers took, and their throughput follows from that.",
    section: SectionKind::Throughput,
    evaluate: |facts| {
        let Some(think) = think_time_of(facts.runs).filter(|think| think.same && think.seconds > 0.0) else {
            return vec![];
        };
        let each: Vec<String> = think.each.iter().map(|seconds| format::seconds(*seconds)).collect();
        vec![note(format!(
            "The figures of {} imply the same think time, {} on average (Z = N/X − R gives {}): throughput here is what \
             latency leaves of the users' time.",
            format::plural(think.each.len(), "run", "runs"),
            format::seconds(think.seconds),
            format::list(&each),
        ))]
    },
};

pub(super) const USERS_ACCOUNTED_FOR: Rule = Rule {
    id: "users-accounted-for",
    about: "Little's law over a closed run: X·(R+Z) must give its virtual users within 5 %. Where it does not, users idled, or \
            the figures do not belong together.",
    section: SectionKind::Throughput,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names() {
            let Some((users, think)) = closed(run).filter(|(_, think)| *think > 0.0) else { continue };
            let (Some(throughput), Some(mean)) = (run.throughput, run.mean_response_ms()) else { continue };
            // That more was sent than could be is said already.
            if facts.is_impossible(run) {
                continue;
            }
            let Some(Agreement { expected, deviation, agrees: false, .. }) =
                check_users(throughput, mean / 1000.0, think, users)
            else {
                continue;
            };
            said.push(warning(format!(
                "{}: throughput, response time and think time account for {} virtual users, and {} were to be active ({}): some idled, or \
                 the figures do not belong together.",
                capitalised(name),
                format::decimals(expected, 1),
                format::decimals(users, 0),
                format::change(deviation),
            )));
        }
        said
    },
};

pub(super) const CLOSED_MODEL_STALL: Rule = Rule {
    id: "closed-model-stall",
    about: "Half a second or more of a closed run in which no request ended although virtual users were active. They all waited, so \
            that requests which should have met the stall were never sent: coordinated omission (G. Tene, \"How NOT to \
            measure latency\"). Runs of fewer than 20 requests a second have such pauses by chance and are left out.",
    section: SectionKind::Latency,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names() {
            if closed(run).is_none() || requests_a_second(run) < QUIET {
                continue;
            }
            let stalls = stalls(run);
            let (Some(longest), Some(first)) = (stalls.iter().map(|stall| stall.1).reduce(f64::max), stalls.first())
            else {
                continue;
            };
            let seconds: f64 = stalls.iter().map(|stall| stall.1).sum();
            said.push(warning(format!(
                "{} stalled: in {} of the measured time no request ended while virtual users were active ({}, the longest {}, \
                 the first at second {}). The model is closed: users waited instead of sending, each counts the stall once, and \
                 the percentiles are better than what arriving users would have met. Measure stalls in an open model.",
                capitalised(name),
                format::seconds(seconds),
                format::plural(stalls.len(), "stall", "stalls"),
                format::seconds(longest),
                first.0,
            )));
        }
        said
    },
};

/// Shorter silences are not called a stall.
const STALL_MS: u32 = 500;

/// Second and length in seconds of every stall. Where the driver does not say how long it was silent, whole seconds tell.
fn stalls(run: &Run) -> Vec<(u32, f64)> {
    if measured(run).any(|second| second.longest_silence_ms.is_some()) {
        let silence = |second: &Second| second.longest_silence_ms.filter(|silence| *silence >= STALL_MS);
        return measured(run).filter_map(|it| Some((it.second, f64::from(silence(it)?) / 1_000.0))).collect();
    }
    empty_seconds(measured(run)).into_iter().map(|(second, length)| (second, f64::from(length))).collect()
}

/// The seconds of a run's window; all of them where there is none.
fn measured(run: &Run) -> impl Iterator<Item = &Second> {
    let window = run.window.as_ref().map(|window| window.from_second..window.until_second);
    run.series.iter().filter(move |second| window.as_ref().is_none_or(|window| window.contains(&second.second)))
}

/// Below this rate half a second passes without a request by chance: at 20 a second once in some three hours (e^-10).
const QUIET: f64 = 20.0;

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn requests_a_second(run: &Run) -> f64 {
    let (seconds, requests) =
        measured(run).fold((0_u64, 0), |(seconds, all), second| (seconds + 1, all + second.requests));
    if seconds == 0 { 0.0 } else { requests as f64 / seconds as f64 }
}

/// First second and length of every stretch without an end of a request while users were active. A second that the source
/// left out, because nothing happened in it, belongs to the stretch.
fn empty_seconds<'a>(seconds: impl Iterator<Item = &'a Second>) -> Vec<(u32, u32)> {
    let mut stalls: Vec<(u32, u32)> = Vec::new();
    let mut begun: Option<u32> = None;
    let mut before: Option<&Second> = None;
    for second in seconds {
        if let Some(before) = before.filter(|before| before.active_vus > 0 && second.second > before.second + 1) {
            begun = begun.or(Some(before.second + 1));
        }
        if second.requests == 0 && second.active_vus > 0 {
            begun = begun.or(Some(second.second));
        } else if let Some(from) = begun.take() {
            stalls.push((from, second.second - from));
        }
        before = Some(second);
    }
    if let (Some(from), Some(last)) = (begun, before) {
        stalls.push((from, last.second + 1 - from));
    }
    stalls
}

pub(super) const WORK_DROPPED: Rule = Rule {
    id: "work-dropped",
    about: "Open model: requests that the arrival process asked for and that were never sent, because every virtual user that \
            the driver may have was waiting. Their latency is missing from the figures.",
    section: SectionKind::Throughput,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names() {
            let (offered, dropped) = measured(run).fold((0, 0), |(offered, dropped), second| {
                (offered + second.work.offered, dropped + second.work.dropped)
            });
            if dropped > 0 {
                said.push(warning(format!(
                    "{}: {} of {} requests ({}) were never sent; the percentiles lack them and are too good.",
                    capitalised(name),
                    format::count(dropped),
                    format::count(offered),
                    format::percent(share(dropped, offered)),
                )));
            }
        }
        said
    },
};

/// A backlog beyond this share of what was offered is growing, not noise.
const KEEPS_UP: f64 = 0.98;

pub(super) const OFFERED_NOT_ACHIEVED: Rule = Rule {
    id: "offered-not-achieved",
    about: "Open model: less than 98 % of the offered work completed within the window: the system does not keep up, and its \
            latencies depend on how long the run lasts.",
    section: SectionKind::Throughput,
    evaluate: |facts| {
        let mut said = Vec::new();
        for (run, name) in facts.runs_with_names() {
            if !matches!(run.load, Some(Load::Open { .. })) {
                continue;
            }
            let (offered, completed) = measured(run).fold((0, 0), |(offered, completed), second| {
                (offered + second.work.offered, completed + second.work.completed)
            });
            if offered > 0 && share(completed, offered) < KEEPS_UP {
                said.push(warning(format!(
                    "{}: of {} offered requests {} completed while measuring ({}): the system does not keep up.",
                    capitalised(name),
                    format::count(offered),
                    format::count(completed),
                    format::percent(share(completed, offered)),
                )));
            }
        }
        said
    },
};

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::document::Severity;
    use crate::report::testing::{figures, run, second};
    use crate::result::Work;
    use crate::run::Endpoint;

    #[test]
    fn a_run_near_the_bound_of_its_users_is_void_with_all_its_numbers() {
        let sentences = said(&GENERATOR_BOUND, &[figures("a", "steady state", 2, 222.04, 75.28)]);
        assert_eq!(sentences.len(), 1);
        assert_eq!(sentences[0].0, Severity::Void);
        for part in ["200 virtual users", "0.820 s", "243.90", "75.3 ms", "222.04", "91 %"] {
            assert!(sentences[0].1.contains(part), "{part} is missing: {sentences:?}");
        }
        assert_eq!(said(&GENERATOR_BOUND, &[figures("a", "saturated", 1, 150.0, 513.0)]), []);
    }

    #[test]
    fn more_than_the_users_can_send_is_a_contradiction_and_no_bound() {
        let wrong = figures("a", "steady state", 2, 500.0, 75.28);
        let sentences = said(&FIGURES_CONTRADICT, std::slice::from_ref(&wrong));
        assert_eq!(sentences[0].0, Severity::Void);
        for part in ["contradict each other", "243.90", "500.00", "205 %"] {
            assert!(sentences[0].1.contains(part), "{part} is missing: {sentences:?}");
        }
        assert_eq!(said(&GENERATOR_BOUND, std::slice::from_ref(&wrong)), []);
        assert_eq!(said(&USERS_ACCOUNTED_FOR, &[wrong]), [], "once is enough");
        let chance = figures("a", "steady state", 2, 245.0, 2.0);
        assert!(said(&GENERATOR_BOUND, std::slice::from_ref(&chance))[0].1.contains("a little shorter"));
        assert_eq!(said(&FIGURES_CONTRADICT, &[chance]), []);
    }

    /// Two seconds until a refusal are two seconds in which the user does not think.
    #[test]
    fn users_who_wait_for_a_failure_are_accounted_for() {
        let slow = crate::report::testing::same(100, 2_000);
        let endpoint = Endpoint { failed: slow, ..crate::report::testing::endpoint_with_stages(1_900, 100, &[], 0) };
        let mixed = Run {
            load: Some(Load::Closed { vus: 200, think_time_mean_seconds: 0.82 }),
            requests: 2_000,
            throughput: Some(200.0 / (0.82 + 0.195)),
            ..run("a", [("login", endpoint)])
        };
        assert_eq!(said(&USERS_ACCOUNTED_FOR, std::slice::from_ref(&mixed)), []);
        let idle = Run { throughput: Some(150.0), ..mixed };
        assert!(said(&USERS_ACCOUNTED_FOR, &[idle])[0].1.contains("200 were to be active"));
    }

    #[test]
    fn a_think_time_that_nobody_told_is_inferred_from_two_runs() {
        let untold = |label: &str, throughput, mean| Run {
            load: Some(Load::Closed { vus: 200, think_time_mean_seconds: 0.0 }),
            ..figures(label, "steady state", 2, throughput, mean)
        };
        let sentences = said(&GENERATOR_BOUND, &[untold("a", 222.04, 75.28), untold("b", 190.49, 232.05)]);
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        for part in ["0.822 s on average, as their figures imply", "243.41", "91 %", "The throughput of a says nothing"]
        {
            assert!(sentences[0].1.contains(part), "{part} is missing: {sentences:?}");
        }
        assert_eq!(said(&GENERATOR_BOUND, &[untold("a", 222.04, 75.28)]), [], "one run alone implies nothing");
    }

    /// A stall need not begin with a second: half of two is one.
    #[test]
    fn a_driver_that_says_how_long_it_was_silent_finds_every_stall() {
        let seconds = |silence| {
            let silent =
                |number, silence| crate::run::Second { longest_silence_ms: Some(silence), ..second(number, 50, 10) };
            vec![silent(0, 30), silent(1, 40), silent(2, silence), silent(3, 35)]
        };
        let stalled = Run { series: seconds(1_002), ..run("a", []) };
        let sentences = said(&CLOSED_MODEL_STALL, &[stalled]);
        assert!(sentences[0].1.contains("1 stall, the longest 1.00 s, the first at second 2"), "{sentences:?}");
        let short = Run { series: seconds(499), ..run("a", []) };
        assert_eq!(said(&CLOSED_MODEL_STALL, &[short]), []);
    }

    #[test]
    fn a_second_without_an_answer_is_a_stall_in_a_closed_run_only() {
        let series = vec![second(0, 50, 10), second(1, 0, 10), second(2, 0, 10), second(3, 50, 10), second(4, 0, 0)];
        let closed = Run { series, ..run("a", []) };
        let sentences = said(&CLOSED_MODEL_STALL, std::slice::from_ref(&closed));
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].1.contains("1 stall, the longest 2.00 s, the first at second 1"), "{sentences:?}");
        let open = Run { load: Some(Load::Open { arrivals_per_second: 5.0 }), ..closed };
        assert_eq!(said(&CLOSED_MODEL_STALL, &[open]), []);
        let quiet = Run { series: vec![second(0, 1, 1), second(1, 0, 1), second(2, 1, 1)], ..run("a", []) };
        assert_eq!(said(&CLOSED_MODEL_STALL, &[quiet]), [], "a user who thinks is no stall");
    }

    #[test]
    fn seconds_that_a_source_leaves_out_and_the_last_ones_count() {
        let found = empty_seconds([second(0, 5, 10), second(3, 5, 10), second(4, 0, 10)].iter());
        assert_eq!(found, [(1, 2), (4, 1)]);
        assert_eq!(empty_seconds([second(0, 5, 0), second(3, 5, 10)].iter()), []);
    }

    #[test]
    fn what_was_dropped_and_what_was_not_kept_up_with_is_said() {
        let work = Work { offered: 100, started: 95, completed: 90, dropped: 5 };
        let series = vec![crate::run::Second { work, ..second(0, 90, 3) }];
        let open = Run { series, load: Some(Load::Open { arrivals_per_second: 100.0 }), ..run("a", []) };
        assert!(said(&WORK_DROPPED, std::slice::from_ref(&open))[0].1.contains("5 of 100 requests (5.0 %)"));
        assert!(said(&OFFERED_NOT_ACHIEVED, &[open])[0].1.contains("(90 %)"));
    }
}
