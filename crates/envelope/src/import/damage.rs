//! What is wrong with a result folder although it can be read: seconds that are missing, times that cannot be.

use time::OffsetDateTime;
use time::macros::datetime;

use crate::result::{Capsule, Completion, Load, PhaseKind};
use crate::run::Second;

/// Clocks are set while a run goes on, and the seconds at its ends are parts of one.
const SLACK_SECONDS: f64 = 5.0;
/// The share by which the recorded seconds may exceed the time between the capsule's clock times beside that.
const SLACK_SHARE: f64 = 0.02;
/// A longer run is a wrong clock.
const LONGEST_SECONDS: f64 = 31.0 * 86_400.0;
/// Nobody thinks longer between two requests of a load test.
const LONGEST_THINK_SECONDS: f64 = 86_400.0;
/// Before this there was no Datum: a machine that has lost its clock says 1970.
const EARLIEST: OffsetDateTime = datetime!(2020-01-01 0:00 UTC);

/// Reasons for which a folder's figures cannot be believed, one sentence each; none for a whole one.
pub(super) fn damage(series: &[Second], capsule: &Capsule) -> Vec<String> {
    let mut damage = of_seconds(series, capsule);
    let absurd = of_times(series, capsule).into_iter().chain(of_amounts(series, capsule));
    damage.extend(absurd.map(|what| format!("The record cannot be right: {what}")));
    damage
}

/// The first second after the last that was recorded.
pub(super) fn end_of(series: &[Second]) -> u32 {
    series.iter().map(|second| second.second.saturating_add(1)).max().unwrap_or(0)
}

/// A driver writes each second once, also those in which nothing happened, and those of a whole run reach to the end of what
/// was to be measured. A copy that broke off shows here.
fn of_seconds(series: &[Second], capsule: &Capsule) -> Vec<String> {
    let mut seconds: Vec<u32> = series.iter().map(|second| second.second).collect();
    seconds.sort_unstable();
    let written = seconds.len();
    seconds.dedup();
    let mut damage = Vec::new();
    if seconds.len() < written {
        damage.push(format!("The record is damaged: {} seconds are there more than once", written - seconds.len()));
    }
    let missing = (end_of(series) as usize).saturating_sub(seconds.len());
    if missing > 0 {
        damage.push(format!("The record is damaged: {missing} of its seconds are missing"));
    }
    let measured = capsule.phases.iter().filter(|phase| phase.kind == PhaseKind::Measure);
    let measured_until = measured.map(|phase| phase.until_second).max().unwrap_or(0);
    if capsule.completion == Completion::Whole && end_of(series) < measured_until {
        damage.push(format!(
            "The record is damaged: it ends after {} s, and the run measured until {measured_until} s",
            end_of(series)
        ));
    }
    damage
}

fn of_times(series: &[Second], capsule: &Capsule) -> Vec<String> {
    let mut absurd = Vec::new();
    let lasted = (capsule.ended_at - capsule.started_at).as_seconds_f64();
    let recorded = f64::from(end_of(series));
    if lasted < 0.0 {
        absurd.push(format!("the run ended {:.1} s before it began", -lasted));
    } else if lasted > LONGEST_SECONDS {
        absurd.push(format!("the run lasted {:.0} days by its clock times", lasted / 86_400.0));
    } else if recorded > lasted * (1.0 + SLACK_SHARE) + SLACK_SECONDS {
        absurd.push(format!("{recorded:.0} s were recorded, and the run lasted {lasted:.1} s by its clock times"));
    }
    if capsule.started_at < EARLIEST {
        absurd.push(format!("the run began in {}", capsule.started_at.year()));
    }
    if let Some(phase) = capsule.phases.iter().find(|phase| phase.until_second < phase.from_second) {
        absurd.push(format!("a phase ends at second {} and begins at {}", phase.until_second, phase.from_second));
    }
    absurd
}

fn of_amounts(series: &[Second], capsule: &Capsule) -> Vec<String> {
    let mut absurd = Vec::new();
    match capsule.load {
        Load::Closed { think_time_mean_seconds, .. }
            if !(0.0..=LONGEST_THINK_SECONDS).contains(&think_time_mean_seconds) =>
        {
            absurd.push(format!("virtual users think for {think_time_mean_seconds} s"));
        }
        Load::Open { arrivals_per_second } if arrivals_per_second < 0.0 => {
            absurd.push(format!("{arrivals_per_second} requests arrive a second"));
        }
        _ => {}
    }
    let of_driver = capsule.generator.cpu_seconds.into_iter();
    let of_stack = capsule.stack_use.iter().flat_map(|used| {
        std::iter::once(used.seconds).chain(used.processes.values().map(|process| process.cpu_seconds))
    });
    let of_seconds = series.iter().filter_map(|second| second.generator).map(|generator| generator.cpu_seconds);
    if let Some(negative) = of_driver.chain(of_stack).chain(of_seconds).find(|seconds| *seconds < 0.0) {
        absurd.push(format!("{negative} s of CPU or observation were used"));
    }
    absurd
}
