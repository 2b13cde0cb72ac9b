//! The search as a state machine.
//!
//! 1. **Bracket**: double the rate until it fails (or halve it until it holds).
//! 2. **Bisect** until pass and failure are within the resolution.
//! 3. **Confirm** the highest rate that passed by repeats; if one fails, that rate counts as failed, and the search goes on
//!    below it.
//! 4. **Operating points**: the same objectives at 50, 70 and 90 % of the capacity found.

use super::outcome::{
    Capacity, CapacityOutcome, OPERATING_PERCENTS, OperatingPoint, Purpose, Step, Trial, TrialOutcome,
};

/// How to search. Rates are in requests a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapacitySettings {
    /// The first rate tried.
    pub first_rate: f64,
    /// Not below this: then the system has no capacity under these objectives.
    pub lowest_rate: f64,
    /// Not above this.
    pub highest_rate: f64,
    /// The search ends when failure and pass differ by no more than this share of the pass.
    pub resolution: f64,
    /// Repeats that must pass at the rate found.
    pub confirmations: u32,
    /// Trials at most, operating points among them.
    pub most_trials: usize,
}

impl Default for CapacitySettings {
    fn default() -> Self {
        Self {
            first_rate: 50.0,
            lowest_rate: 1.0,
            highest_rate: 100_000.0,
            resolution: 0.05,
            confirmations: 2,
            most_trials: 40,
        }
    }
}

/// The search.
#[derive(Debug, Clone)]
pub struct CapacitySearch {
    settings: CapacitySettings,
    trials: Vec<Trial>,
    /// The highest rate that passed and the lowest that failed.
    passes: Option<f64>,
    fails: Option<f64>,
    /// A rate that was void twice: nothing is tried from there on.
    ceiling: Option<(f64, String)>,
    voided_once: Option<f64>,
    confirmed: u32,
    points: Vec<OperatingPoint>,
}

impl CapacitySearch {
    /// Begins a search.
    #[must_use]
    pub fn new(settings: CapacitySettings) -> Self {
        Self {
            settings,
            trials: Vec::new(),
            passes: None,
            fails: None,
            ceiling: None,
            voided_once: None,
            confirmed: 0,
            points: Vec::new(),
        }
    }

    /// The trials so far.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// What to do next. Asking twice gives the same answer.
    #[must_use]
    pub fn next(&self) -> Step {
        let at = |rate, purpose| Step::Try { rate, purpose };
        if self.trials.len() >= self.settings.most_trials {
            return Step::Done(self.capacity(Some(format!("{} trials were used up", self.trials.len()))));
        }
        let Some(passes) = self.passes else {
            return match self.lower_rate() {
                Some(rate) => at(rate, Purpose::Bracket),
                None => Step::Done(self.capacity(None)),
            };
        };
        if let Some(rate) = self.higher_rate(passes) {
            let purpose = if self.fails.is_some() { Purpose::Bisect } else { Purpose::Bracket };
            return at(rate, purpose);
        }
        if self.confirmed < self.settings.confirmations {
            return at(passes, Purpose::Confirm(self.confirmed + 1));
        }
        match OPERATING_PERCENTS.get(self.points.len()) {
            Some(percent) => at(passes * f64::from(*percent) / 100.0, Purpose::OperatingPoint(*percent)),
            None => Step::Done(self.capacity(None)),
        }
    }

    /// Records what came of the trial that [`next`](Self::next) asked for. Without such a trial nothing happens.
    pub fn record(&mut self, outcome: TrialOutcome) {
        let Step::Try { rate, purpose } = self.next() else { return };
        self.trials.push(Trial { rate, purpose, outcome: outcome.clone() });
        if let Purpose::OperatingPoint(percent) = purpose {
            self.points.push(OperatingPoint { percent, rate, outcome });
            return;
        }
        match outcome {
            TrialOutcome::Passed => {
                self.confirmed = if matches!(purpose, Purpose::Confirm(_)) { self.confirmed + 1 } else { 0 };
                self.passes = Some(rate);
                self.voided_once = None;
            }
            TrialOutcome::Failed(_) => {
                self.fails = Some(rate);
                self.confirmed = 0;
                self.voided_once = None;
                // A pass that could not be confirmed was luck; the search goes on from the best one below.
                if self.passes == Some(rate) {
                    self.passes = self.best_pass_below(rate);
                }
            }
            TrialOutcome::Void(reason) => {
                if self.voided_once == Some(rate) {
                    self.ceiling = Some((rate, reason));
                    self.voided_once = None;
                    if self.passes == Some(rate) {
                        self.passes = self.best_pass_below(rate);
                    }
                } else {
                    self.voided_once = Some(rate);
                }
            }
        }
    }

    /// The highest rate below `rate` that passed whenever it was tried.
    fn best_pass_below(&self, rate: f64) -> Option<f64> {
        let failed = |rate: f64| {
            self.trials.iter().any(|trial| same(trial.rate, rate) && matches!(trial.outcome, TrialOutcome::Failed(_)))
        };
        self.trials
            .iter()
            .filter(|trial| trial.outcome == TrialOutcome::Passed && trial.rate < rate && !failed(trial.rate))
            .map(|trial| trial.rate)
            .reduce(f64::max)
    }

    /// The lowest rate from which on nothing can be tried, and whether that is a failure.
    fn upper(&self) -> Option<f64> {
        let ceiling = self.ceiling.as_ref().map(|(rate, _)| *rate);
        match (self.fails, ceiling) {
            (Some(fails), Some(ceiling)) => Some(fails.min(ceiling)),
            (fails, ceiling) => fails.or(ceiling),
        }
    }

    /// While nothing has passed.
    fn lower_rate(&self) -> Option<f64> {
        let rate = match self.upper() {
            None => self.settings.first_rate.clamp(self.settings.lowest_rate, self.settings.highest_rate),
            Some(upper) if upper <= self.settings.lowest_rate => return None,
            Some(upper) => (upper / 2.0).max(self.settings.lowest_rate),
        };
        Some(rate)
    }

    /// While something higher than `passes` is worth trying.
    fn higher_rate(&self, passes: f64) -> Option<f64> {
        match self.upper() {
            None if passes >= self.settings.highest_rate => None,
            None => Some((passes * 2.0).min(self.settings.highest_rate)),
            Some(upper) if upper / passes - 1.0 <= self.settings.resolution => None,
            Some(upper) => Some(f64::midpoint(passes, upper)),
        }
    }

    fn capacity(&self, cut_short: Option<String>) -> Capacity {
        let ceiling = self.ceiling.as_ref().filter(|(rate, _)| self.fails.is_none_or(|fails| *rate < fails));
        let outcome = match (self.passes, self.fails, ceiling) {
            (Some(passes), _, Some((rate, reason))) => {
                CapacityOutcome::AtLeast { passes, reason: format!("trials at {rate:.1}/s say nothing: {reason}") }
            }
            (Some(passes), Some(_), None) if self.unsettled(passes) => {
                let reason = cut_short.unwrap_or_else(|| "it was not confirmed".into());
                CapacityOutcome::AtLeast { passes, reason }
            }
            (Some(passes), Some(fails), None) => CapacityOutcome::Found { passes, fails },
            (Some(passes), None, None) => {
                let highest = || format!("{:.1}/s is the highest rate that may be tried", self.settings.highest_rate);
                CapacityOutcome::AtLeast { passes, reason: cut_short.unwrap_or_else(highest) }
            }
            (None, _, Some((_, reason))) => {
                CapacityOutcome::None { reason: format!("no trial says anything: {reason}") }
            }
            (None, ..) => {
                let reason = match self.trials.iter().rev().map(|trial| &trial.outcome).next() {
                    Some(TrialOutcome::Failed(reason)) => {
                        format!("no rate met the objectives; at the lowest tried: {reason}")
                    }
                    _ => cut_short.unwrap_or_else(|| "nothing was tried".into()),
                };
                CapacityOutcome::None { reason }
            }
        };
        Capacity { outcome, operating_points: self.points.clone(), trials: self.trials.clone() }
    }

    /// Whether the trials ran out before the rate was narrow and confirmed.
    fn unsettled(&self, passes: f64) -> bool {
        self.higher_rate(passes).is_some() || self.confirmed < self.settings.confirmations
    }
}

fn same(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search against a system that carries up to `capacity`, and voids from `ceiling` on.
    fn search(settings: CapacitySettings, capacity: f64, ceiling: f64) -> Capacity {
        let mut search = CapacitySearch::new(settings);
        loop {
            match search.next() {
                Step::Done(capacity) => return capacity,
                Step::Try { rate, .. } if rate >= ceiling => {
                    search.record(TrialOutcome::Void("the driver was busy".into()));
                }
                Step::Try { rate, .. } if rate <= capacity => search.record(TrialOutcome::Passed),
                Step::Try { .. } => search.record(TrialOutcome::Failed("p95".into())),
            }
        }
    }

    #[test]
    fn capacity_is_bracketed_bisected_and_confirmed() {
        let capacity = search(CapacitySettings::default(), 437.0, f64::INFINITY);
        let CapacityOutcome::Found { passes, fails } = capacity.outcome else { panic!("{capacity:?}") };
        assert!(passes <= 437.0 && fails > 437.0 && fails / passes <= 1.05 + 1e-9, "{passes} {fails}");
        let confirmations = capacity.trials.iter().filter(|trial| matches!(trial.purpose, Purpose::Confirm(_))).count();
        assert_eq!(confirmations, 2);
        let points: Vec<_> = capacity.operating_points.iter().map(|point| point.percent).collect();
        assert_eq!(points, OPERATING_PERCENTS);
        assert!((capacity.operating_points[0].rate - passes / 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_search_goes_down_when_the_first_rate_fails() {
        let capacity = search(CapacitySettings::default(), 7.0, f64::INFINITY);
        let CapacityOutcome::Found { passes, fails } = capacity.outcome else { panic!("{capacity:?}") };
        assert!(passes <= 7.0 && fails > 7.0);
    }

    #[test]
    fn no_capacity_is_a_result() {
        let capacity = search(CapacitySettings::default(), 0.0, f64::INFINITY);
        let CapacityOutcome::None { reason } = capacity.outcome else { panic!("{capacity:?}") };
        assert!(reason.contains("p95"), "{reason}");
        assert!(capacity.operating_points.is_empty());
    }

    #[test]
    fn a_busy_driver_is_a_ceiling_and_no_failure() {
        let capacity = search(CapacitySettings::default(), 1_000.0, 300.0);
        let CapacityOutcome::AtLeast { passes, reason } = capacity.outcome else { panic!("{capacity:?}") };
        assert!(passes < 300.0 && passes > 280.0, "{passes}");
        assert!(reason.contains("the driver was busy"), "{reason}");
    }

    #[test]
    fn the_highest_rate_is_a_bound() {
        let settings = CapacitySettings { highest_rate: 120.0, ..CapacitySettings::default() };
        let capacity = search(settings, 1_000.0, f64::INFINITY);
        assert!(
            matches!(capacity.outcome, CapacityOutcome::AtLeast { passes, .. } if same(passes, 120.0)),
            "{capacity:?}"
        );
    }

    #[test]
    fn a_pass_that_was_luck_is_given_up() {
        let settings = CapacitySettings { first_rate: 100.0, ..CapacitySettings::default() };
        let mut search = CapacitySearch::new(settings);
        // Carries 150; 190 to 200 passes the first time and never again.
        let mut lucky = true;
        let capacity = loop {
            match search.next() {
                Step::Done(capacity) => break capacity,
                Step::Try { rate, purpose } => {
                    let luck = lucky && rate > 170.0 && rate <= 195.0 && purpose == Purpose::Bisect;
                    search.record(if rate <= 150.0 || luck {
                        TrialOutcome::Passed
                    } else {
                        TrialOutcome::Failed("p95".into())
                    });
                    lucky &= !matches!(purpose, Purpose::Confirm(_));
                }
            }
        };
        let CapacityOutcome::Found { passes, fails } = capacity.outcome else { panic!("{capacity:?}") };
        assert!(passes <= 150.0 && fails / passes <= 1.05 + 1e-9, "{passes} {fails}");
        assert!(
            capacity
                .trials
                .iter()
                .any(|trial| matches!((trial.purpose, &trial.outcome), (Purpose::Confirm(_), TrialOutcome::Failed(_))))
        );
    }

    #[test]
    fn trials_are_bounded() {
        let settings = CapacitySettings { most_trials: 5, ..CapacitySettings::default() };
        let capacity = search(settings, 437.0, f64::INFINITY);
        assert_eq!(capacity.trials.len(), 5);
        let CapacityOutcome::AtLeast { reason, .. } = capacity.outcome else { panic!("{capacity:?}") };
        assert!(reason.contains("5 trials"), "{reason}");
    }

    #[test]
    fn asking_twice_changes_nothing() {
        let search = CapacitySearch::new(CapacitySettings::default());
        assert_eq!(search.next(), search.next());
    }
}
