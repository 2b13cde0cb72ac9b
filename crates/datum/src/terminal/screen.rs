//! What `datum up` shows: steps with their times, then the table. Redrawn in place on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use stack::{Event, Observer, Step};
use tokio::sync::{Notify, watch};

use super::{can_redraw, own_log, say};

/// Between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// The screen of one `datum up`.
pub(crate) struct Screen {
    drawing: Option<Drawing>,
    changed: Notify,
    logs: watch::Sender<Option<PathBuf>>,
}

/// What is redrawn.
struct Drawing {
    all: MultiProgress,
    bars: Mutex<Bars>,
}

#[derive(Default)]
struct Bars {
    steps: BTreeMap<Step, ProgressBar>,
    table: Option<ProgressBar>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let drawing = can_redraw().then(|| Drawing {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
            bars: Mutex::default(),
        });
        Self { drawing, changed: Notify::new(), logs: watch::Sender::default() }
    }

    /// Whether the table is redrawn in place.
    pub(crate) fn redraws(&self) -> bool {
        self.drawing.is_some()
    }

    /// A line that stays, above what is redrawn.
    pub(crate) fn line(&self, text: &str) {
        match &self.drawing {
            Some(drawing) => drop(drawing.all.println(text)),
            None => say(text),
        }
    }

    /// Draws the table at the bottom, or prints it once more.
    pub(crate) fn table(&self, table: &str) {
        let Some(drawing) = &self.drawing else { return say(format_args!("\n{table}\n")) };
        let mut bars = drawing.bars();
        let bar = bars.table.get_or_insert_with(|| {
            let bar = drawing.all.add(ProgressBar::new_spinner());
            bar.set_style(plain_style());
            bar
        });
        bar.set_message(format!("\n{table}"));
        bar.tick();
    }

    /// Takes away what is redrawn.
    pub(crate) fn clear(&self) {
        if let Some(drawing) = &self.drawing {
            *drawing.bars() = Bars::default();
            let _ = drawing.all.clear();
        }
    }

    /// Ends after the next change of a task; one that happened since the last call counts.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The folder of the tasks' logs, once it is known.
    pub(crate) fn logs(&self) -> watch::Receiver<Option<PathBuf>> {
        self.logs.subscribe()
    }

    fn begin(&self, step: Step, what: &str) {
        match &self.drawing {
            Some(drawing) => drawing.step(step, what),
            None => say(format_args!("{step:<13} {what}")),
        }
    }

    fn done(&self, step: Step, what: &str, took: Option<Duration>) {
        let took = took.map(|took| format!("  ({})", seconds(took))).unwrap_or_default();
        if let Some(drawing) = &self.drawing {
            if let Some(bar) = drawing.bars().steps.remove(&step) {
                bar.finish_and_clear();
            }
            self.line(&format!("  \u{2713} {step:<13} {what}{took}"));
        } else {
            say(format_args!("{step:<13} {what}{took}"));
        }
    }
}

impl Drawing {
    fn bars(&self) -> MutexGuard<'_, Bars> {
        self.bars.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, step: Step, what: &str) {
        let mut bars = self.bars();
        let bar = bars.steps.entry(step).or_insert_with(|| {
            let bar = self.all.add(ProgressBar::new_spinner());
            bar.set_style(step_style());
            bar.set_prefix(format!("{step:<13}"));
            bar.enable_steady_tick(TICK);
            bar
        });
        bar.set_message(what.to_owned());
    }
}

impl Observer for Screen {
    fn observe(&self, event: Event) {
        match event {
            // A plain output says what is done; what has begun, or is half done, would only be the same line again.
            Event::Started(_) | Event::Doing(Step::Tasks | Step::Postgres, _) if !self.redraws() => {}
            Event::Started(step) => self.begin(step, ""),
            Event::Doing(step, what) | Event::Stopping(step, what) => self.begin(step, &what),
            Event::Done(step, what, took) => self.done(step, &what, Some(took)),
            Event::Stopped(step) => self.done(step, "stopped", None),
            Event::Logs(folder) => {
                own_log::open(&folder);
                self.logs.send_replace(Some(folder));
            }
            Event::Notice(text) => self.line(&text),
            Event::Changed => self.changed.notify_one(),
        }
    }
}

/// With one decimal, as a reader wants it.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn step_style() -> ProgressStyle {
    ProgressStyle::with_template("  {spinner} {prefix} {msg} {elapsed:.dim}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn plain_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_templates() {
        ProgressStyle::with_template("  {spinner} {prefix} {msg} {elapsed:.dim}").expect("a template");
        ProgressStyle::with_template("{msg}").expect("a template");
        assert_eq!(seconds(Duration::from_millis(2_449)), "2.4 s");
    }
}
