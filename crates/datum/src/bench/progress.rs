//! What a run shows while it goes on: a bar on a terminal, a line every few seconds elsewhere.

use std::collections::VecDeque;

use envelope::result::SET_UP;
use envelope::result::{Interval, Latencies, PhaseKind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use loadgen::scenario::Schedule;

use crate::terminal::{can_redraw, say};

/// Rate and percentiles are those of the last seconds: one second alone jumps, and the whole run hides what happens now.
const RECENT_SECONDS: usize = 5;
/// Between two lines where nothing can be redrawn.
const LINE_EVERY: u32 = 5;

/// The progress of one run.
pub(super) struct Progress {
    schedule: Schedule,
    bar: Option<ProgressBar>,
    recent: VecDeque<Recent>,
    errors: u64,
    dropped: u64,
}

/// A second, boiled down.
struct Recent {
    requests: u64,
    latencies: Latencies,
}

impl Progress {
    pub(super) fn new(schedule: Schedule) -> Self {
        let bar = can_redraw().then(|| {
            let bar = ProgressBar::with_draw_target(Some(length(&schedule)), ProgressDrawTarget::stdout());
            bar.set_style(style());
            bar
        });
        Self { schedule, bar, recent: VecDeque::new(), errors: 0, dropped: 0 }
    }

    /// Virtual users are being set up.
    pub(super) fn set_up(&mut self, ready: u32, of: u32) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("set-up: {ready} of {of} virtual users are ready")),
            // One line when all are there; a line for each would be four hundred.
            None if ready == of => say(format_args!("set-up        {of} virtual users are ready")),
            None => {}
        }
    }

    /// A second has passed.
    pub(super) fn second(&mut self, interval: &Interval) {
        self.take(interval);
        let line = self.line(interval.second);
        match &self.bar {
            Some(bar) => {
                bar.set_position(u64::from(interval.second) + 1);
                bar.set_message(line);
            }
            None if (interval.second + 1).is_multiple_of(LINE_EVERY) => say(line),
            None => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn take(&mut self, interval: &Interval) {
        let mut recent = Recent { requests: 0, latencies: Latencies::new() };
        for (name, endpoint) in &interval.endpoints {
            if name == SET_UP {
                continue;
            }
            recent.requests += endpoint.latency.count() + endpoint.failed_latency.count();
            recent.latencies.merge(&endpoint.latency);
            self.errors += endpoint.failed_latency.count();
        }
        self.dropped += interval.work.dropped;
        self.recent.push_back(recent);
        if self.recent.len() > RECENT_SECONDS {
            self.recent.pop_front();
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a few seconds of requests")]
    fn line(&self, second: u32) -> String {
        let mut latencies = Latencies::new();
        self.recent.iter().for_each(|recent| latencies.merge(&recent.latencies));
        let requests: u64 = self.recent.iter().map(|recent| recent.requests).sum();
        let rate = requests as f64 / self.recent.len().max(1) as f64;
        let at = |percent| latencies.percentile_ms(percent).map_or_else(|| "-".to_owned(), millis);
        let left = length(&self.schedule).saturating_sub(u64::from(second) + 1);
        let left = if left == 0 { "waiting for the last answers".to_owned() } else { format!("{} left", clock(left)) };
        let dropped = if self.dropped > 0 { format!("  dropped {}", self.dropped) } else { String::new() };
        format!(
            "{:>7}  {:<10}  {rate:>8.1} req/s  p50 {:>9}  p95 {:>9}  errors {}{dropped}  {left}",
            clock(u64::from(second) + 1),
            self.phase(second),
            at(50.0),
            at(95.0),
            self.errors,
        )
    }

    fn phase(&self, second: u32) -> String {
        let Some(phase) = self.schedule.phase_at(second) else { return "drain".to_owned() };
        let kind = match phase.kind {
            PhaseKind::Ramp => "ramp",
            PhaseKind::WarmUp => "warm-up",
            PhaseKind::Measure => "measure",
            PhaseKind::RampDown => "ramp down",
        };
        phase.name.as_ref().map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
    }
}

fn length(schedule: &Schedule) -> u64 {
    schedule.length().as_secs()
}

/// `7s`, `3m 05s`, `1h 02m`.
fn clock(seconds: u64) -> String {
    crate::terminal::table::duration(seconds)
}

/// With as many decimals as matter.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms if ms < 10_000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:20} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use envelope::result::{EndpointInterval, Work};

    use super::*;

    fn interval(second: u32, expected: u64, failed: u64) -> Interval {
        let mut endpoint = EndpointInterval::default();
        (0..expected).for_each(|_| endpoint.latency.record(Duration::from_millis(20)));
        (0..failed).for_each(|_| endpoint.failed_latency.record(Duration::from_millis(1)));
        let set_up = endpoint.clone();
        Interval {
            second,
            work: Work { dropped: 1, ..Work::default() },
            endpoints: [("login".to_owned(), endpoint), (SET_UP.to_owned(), set_up)].into(),
            ..Interval::default()
        }
    }

    fn progress() -> Progress {
        let schedule = loadgen::scenario::open("baseline-mix").expect("a scenario").schedule();
        Progress { schedule, bar: None, recent: VecDeque::new(), errors: 0, dropped: 0 }
    }

    #[test]
    fn a_line_has_the_rate_of_the_last_seconds_and_all_errors() {
        let mut progress = progress();
        progress.take(&interval(0, 1_000, 3));
        (1..=5).for_each(|second| progress.take(&interval(second, 10, 0)));
        let line = progress.line(5);
        assert!(line.contains(" 10.0 req/s"), "{line}");
        assert!(line.contains("p50   20.0 ms"), "{line}");
        assert!(line.contains("errors 3  dropped 6"), "{line}");
        assert!(line.contains("ramp ") && line.contains("3m 39s left"), "{line}");
    }

    #[test]
    fn without_answers_there_is_no_percentile() {
        let mut progress = progress();
        progress.take(&interval(0, 0, 0));
        assert!(progress.line(0).contains("p50         -"), "{}", progress.line(0));
        assert!(progress.line(10_000).contains("drain"), "after the last phase");
        assert!(progress.line(10_000).contains("waiting for the last answers"));
    }

    #[test]
    fn milliseconds_have_the_decimals_that_matter() {
        for (ms, shown) in [(0.5, "0.50 ms"), (12.34, "12.3 ms"), (250.4, "250 ms"), (12_345.0, "12.3 s")] {
            assert_eq!(millis(ms), shown);
        }
        ProgressStyle::with_template("{bar:20} {msg}").expect("a template");
    }
}
