//! What limits.

use super::stages::{breakdowns, of_main_group};
use super::{Rule, capitalised, note, warning};
use crate::report::attribution::Part;
use crate::report::document::{SectionKind, Severity};
use crate::report::facts::Facts;
use crate::report::format;
use crate::report::group::Group;
use crate::result::ProcessUse;
use crate::run::Run;

/// A resource this busy makes the rest wait: with random arrivals the wait grows as 1/(1 − utilisation).
const SATURATED: f64 = 0.9;

pub(super) const CPU_SATURATED: Rule = Rule {
    id: "cpu-saturated",
    about: "A process of the stack that used 90 % or more of its CPU quota over the measured phase. By the utilisation \
            law, U = X·D, its throughput at 100 % is X/U as long as a request costs what it costs now. Without a quota: the whole machine, 90 % or more of all its CPUs, driver included.",
    section: SectionKind::Bottleneck,
    evaluate: |facts| {
        let mut said: Vec<(String, Vec<&str>)> = Vec::new();
        for (run, name) in facts.runs_with_names() {
            for sentence in [busy_processes(run), busy_machine(run)].into_iter().flatten() {
                match said.iter_mut().find(|(other, _)| *other == sentence) {
                    Some((_, names)) => names.push(name),
                    None => said.push((sentence, vec![name])),
                }
            }
        }
        let with_names = |(sentence, names): (String, Vec<&str>)| {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            warning(format!("{}: {sentence}.", capitalised(&format::list(&names))))
        };
        said.into_iter().map(with_names).collect()
    },
};

/// Processes at their quota.
fn busy_processes(run: &Run) -> Option<String> {
    let used = run.capsule.as_ref()?.stack_use.as_ref().filter(|used| used.seconds > 0.0)?;
    let mut busy: Vec<String> = Vec::new();
    for (process, ProcessUse { cpu_seconds, quota_cores, .. }) in &used.processes {
        let Some(quota) = quota_cores.filter(|quota| *quota > 0.0) else { continue };
        let share = cpu_seconds / used.seconds / quota;
        if share >= SATURATED {
            let most = run.goodput().filter(|rate| *rate > 0.0).map_or_else(String::new, |rate| {
                let most = format::decimals(rate / share.min(1.0), 0);
                format!(" (with it at 100 % the system carries {most} requests a second of this mix)")
            });
            busy.push(format!(
                "{process} used {} of its {} cores{most}",
                format::percent(share),
                format::decimals(quota, 2)
            ));
        }
    }
    (!busy.is_empty()).then(|| format!("CPU is saturated: {}", format::list(&busy)))
}

/// The machine at its limit, all processes and the driver together.
fn busy_machine(run: &Run) -> Option<String> {
    let capsule = run.capsule.as_ref()?;
    let used = capsule.stack_use.as_ref().filter(|used| used.seconds > 0.0)?;
    let all: f64 = used.processes.values().map(|process| process.cpu_seconds).sum();
    let own = capsule.generator.cpu_seconds.unwrap_or(0.0);
    let cores = f64::from(capsule.machine.cpus);
    let share = (all + own) / used.seconds / cores;
    (share >= SATURATED).then(|| {
        format!(
            "the machine is saturated: stack and driver used {} of its {} CPUs, the driver alone {}; with the driver on another \
             machine the figures would be others",
            format::percent(share),
            capsule.machine.cpus,
            format::percent(own / used.seconds / cores),
        )
    })
}

/// From this share of an endpoint's mean on, waiting for something is worth a sentence.
const MUCH_WAITING: f64 = 0.1;
/// From this share on the thing is at its limit: requests wait for it longer than everything else takes.
const MOST_WAITING: f64 = 0.5;
/// Shorter waits are the cost of taking the thing, not of its being taken.
const WAIT_MS: f64 = 1.0;

pub(super) const POOL_SATURATED: Rule = Rule {
    id: "pool-saturated",
    about: "An endpoint that spends 10 % or more of its mean, and at least 1 ms, waiting for a database connection. From 50 % on \
            the pool is called too small.",
    section: SectionKind::Bottleneck,
    evaluate: |facts| {
        waiting(
            facts,
            "pool",
            "a database connection",
            "the pool is too small for the load, or the database too slow for the pool",
        )
    },
};

pub(super) const ADMISSION_SATURATED: Rule = Rule {
    id: "admission-saturated",
    about: "An endpoint that spends 10 % or more of its mean, and at least 1 ms, waiting for a permit: the hashing threads or \
            the upload slots of its task are busy. From 50 % on they are called to be at their limit.",
    section: SectionKind::Bottleneck,
    evaluate: |facts| {
        waiting(facts, "admission", "a permit", "the work that it admits to (hashing, uploads) is at its limit")
    },
};

fn waiting(facts: &Facts<'_>, stage: &str, what: &str, why: &str) -> Vec<super::Says> {
    let much = |part: &&Part| part.share >= MUCH_WAITING && part.mean_ms >= WAIT_MS;
    let mut said = Vec::new();
    for found in of_main_group(facts) {
        let Some(part) = found.part(stage).filter(much) else { continue };
        let p99 = part.summary.as_ref().and_then(|it| format::percentile_in_words(it.p99, 99.0, it.count));
        let tail = p99.map_or_else(String::new, |p99| format!(", 99th percentile {p99}"));
        let is_limit = part.share >= MOST_WAITING;
        let sentence = format!(
            "{}{} waits {} for {what} on average ({} of its mean{tail}): {}.",
            facts.whose_main(),
            capitalised(&found.endpoint),
            format::ms(part.mean_ms),
            format::percent(part.share),
            if is_limit { why } else { "at times there is none free, and most of the time there is" },
        );
        said.push(if is_limit { warning(sentence) } else { note(sentence) });
    }
    said
}

pub(super) const GENERATOR_COST: Rule = Rule {
    id: "generator-cost",
    about: "CPU that the driver itself used, per request: what it takes from the system where both share a machine.",
    section: SectionKind::Bottleneck,
    evaluate: |facts| {
        let costs: Vec<(f64, f64)> = facts.runs.iter().filter_map(driver_cost).collect();
        let Some(cores) = range(costs.iter().map(|cost| cost.0), format::percent) else { return vec![] };
        let Some(each) = range(costs.iter().map(|cost| cost.1), format::ms) else { return vec![] };
        vec![note(format!("The driver used {cores} of one core, {each} of CPU a request."))]
    },
};

/// CPU of the driver: share of one core, and milliseconds a request.
fn driver_cost(run: &Run) -> Option<(f64, f64)> {
    let cpu = run.capsule.as_ref()?.generator.cpu_seconds?;
    let seconds = run.seconds.filter(|seconds| *seconds > 0.0)?;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let requests = run.requests as f64;
    (requests > 0.0).then(|| (cpu / seconds, cpu / requests * 1000.0))
}

/// `5.2 %`, or `5.2 % to 10 %` where they differ as shown.
fn range(values: impl Iterator<Item = f64> + Clone, show: fn(f64) -> String) -> Option<String> {
    let (low, high) = (values.clone().reduce(f64::min)?, values.reduce(f64::max)?);
    let (low, high) = (show(low), show(high));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

pub(super) const NO_BOTTLENECK_SHOWN: Rule = Rule {
    id: "no-bottleneck-shown",
    about: "Runs in which no resource was seen at its limit: none of the rules of this section found one.",
    section: SectionKind::Bottleneck,
    evaluate: |facts| {
        if facts.runs.is_empty() {
            return vec![];
        }
        if !limits(facts).is_empty() {
            return vec![];
        }
        let bound = |run: &Run| facts.is_generator_bound(run);
        if let Some(names) = facts.names_of(bound) {
            return vec![note(format!(
                "Of the system no resource is shown at its limit; in {names} the limit was the think time of the virtual users."
            ))];
        }
        let seen = facts.runs.iter().any(|run| run.capsule.as_ref().is_some_and(|capsule| capsule.stack_use.is_some()));
        vec![note(if seen {
            "No resource is shown at its limit: CPU, pools and permits had room.".to_owned()
        } else {
            "No bottleneck is shown: waits for pools and permits are small or not recorded, and the CPU use of the system was \
             not seen."
                .to_owned()
        })]
    },
};

/// Everything that was seen at its limit.
pub(super) fn limits(facts: &Facts<'_>) -> Vec<super::Says> {
    [&CPU_SATURATED, &POOL_SATURATED, &ADMISSION_SATURATED]
        .into_iter()
        .flat_map(|rule| (rule.evaluate)(facts))
        .filter(|says| says.severity == Severity::Warning)
        .collect()
}

/// Whether a resource was at its limit in the runs of a group.
pub(super) fn is_at_a_limit(group: &Group<'_>) -> bool {
    let is_waiting = |stage: &str| {
        let is_limit = |part: &Part| part.share >= MOST_WAITING && part.mean_ms >= WAIT_MS;
        breakdowns(Some(group)).iter().any(|found| found.part(stage).is_some_and(is_limit))
    };
    let is_busy = |run: &&Run| busy_processes(run).is_some() || busy_machine(run).is_some();
    group.runs.iter().any(is_busy) || ["pool", "admission"].into_iter().any(is_waiting)
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::report::testing::{capsule, endpoint_with_stages, figures, run};
    use crate::result::StackUse;

    fn with_use(cpu_seconds: f64, quota_cores: Option<f64>) -> Run {
        let mut capsule = capsule(10);
        let process = ProcessUse { cpu_seconds, quota_cores, throttled: None };
        capsule.stack_use = Some(StackUse { seconds: 60.0, processes: [("auth-1".to_owned(), process)].into() });
        capsule.generator.cpu_seconds = Some(6.0);
        Run { capsule: Some(capsule), throughput: Some(98.0), ..run("a", []) }
    }

    #[test]
    fn a_process_at_its_quota_is_named() {
        let sentences = said(&CPU_SATURATED, &[with_use(14.7, Some(0.25))]);
        assert!(
            sentences[0]
                .1
                .contains("auth-1 used 98 % of its 0.25 cores (with it at 100 % the system carries 100 requests"),
            "{sentences:?}"
        );
        assert_eq!(said(&CPU_SATURATED, &[with_use(10.0, Some(0.25))]), []);
    }

    #[test]
    fn without_quotas_the_machine_is_the_limit() {
        // Two CPUs for a minute are 120 CPU seconds.
        let sentences = said(&CPU_SATURATED, &[with_use(108.0, None)]);
        assert!(sentences[0].1.contains("used 95 % of its 2 CPUs, the driver alone 5.0 %"), "{sentences:?}");
    }

    #[test]
    fn waiting_for_connections_is_named_where_it_is_much() {
        let with_pool = |ms| {
            let stages = [("pool", 10, ms), ("db", 10, 20), ("total", 10, ms + 20)];
            run("a", [("get-user", endpoint_with_stages(10, ms + 21, &stages, 1))])
        };
        let sentences = said(&POOL_SATURATED, &[with_pool(79)]);
        assert!(
            sentences[0].1.contains("79.0 ms for a database connection on average (79 % of its mean"),
            "{sentences:?}"
        );
        let some = said(&POOL_SATURATED, &[with_pool(10)]);
        assert_eq!(some[0].0, Severity::Note);
        assert!(some[0].1.contains("at times there is none free"), "{some:?}");
        assert_eq!(said(&POOL_SATURATED, &[with_pool(1)]), []);
    }

    #[test]
    fn where_the_users_were_the_limit_that_is_said() {
        let sentences = said(&NO_BOTTLENECK_SHOWN, &[figures("a", "steady state", 2, 222.04, 75.28)]);
        assert!(sentences[0].1.contains("in the run the limit was the think time"), "{sentences:?}");
        assert_eq!(said(&NO_BOTTLENECK_SHOWN, &[with_use(14.7, Some(0.25))]), []);
    }
}
