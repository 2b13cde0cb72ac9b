//! What a run changes of its scenario.

use envelope::result::PhaseKind;

use super::{Arrivals, Model, Scenario, ScenarioError};

/// Changes for one run; `None` leaves what the scenario says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Virtual users of a closed model; the most in flight of an open one.
    pub vus: Option<u32>,
    /// Arrivals a second of an open model.
    pub arrivals_per_second: Option<f64>,
    /// How the arrivals of an open model are spaced.
    pub arrivals: Option<Arrivals>,
    /// Mean think time of a closed model in seconds; 0 for none.
    pub think_time_mean_seconds: Option<f64>,
    /// Length of each ramp and ramp down; 0 leaves them out.
    pub ramp_seconds: Option<u32>,
    /// Length of each warm-up; 0 leaves it out.
    pub warm_up_seconds: Option<u32>,
    /// Length of each measured phase.
    pub measure_seconds: Option<u32>,
}

impl Overrides {
    /// The scenario with these changes. An override that its model does not have is an error, and so is a value that
    /// no file could hold.
    pub fn apply(&self, scenario: &Scenario) -> Result<Scenario, ScenarioError> {
        let mut changed = scenario.clone();
        let wrong = |field: &str, reason: &str| {
            Err(ScenarioError::Malformed {
                origin: scenario.name.clone(),
                field: field.to_owned(),
                reason: reason.to_owned(),
            })
        };
        match &mut changed.model {
            Model::Closed { vus, think_time, .. } => {
                if self.arrivals_per_second.is_some() || self.arrivals.is_some() {
                    return wrong("arrivals_per_second", "a closed model has virtual users, not arrivals");
                }
                *vus = self.vus.unwrap_or(*vus);
                think_time.mean_seconds = self.think_time_mean_seconds.unwrap_or(think_time.mean_seconds);
            }
            Model::Open { arrivals_per_second, max_vus, arrivals } => {
                if self.think_time_mean_seconds.is_some() {
                    return wrong("think_time", "an open model has arrivals, not think times");
                }
                *arrivals_per_second = self.arrivals_per_second.unwrap_or(*arrivals_per_second);
                *max_vus = self.vus.unwrap_or(*max_vus);
                *arrivals = self.arrivals.unwrap_or(*arrivals);
            }
        }
        for phase in &mut changed.phases {
            let length = match phase.kind {
                PhaseKind::Ramp | PhaseKind::RampDown => self.ramp_seconds,
                PhaseKind::WarmUp => self.warm_up_seconds,
                PhaseKind::Measure => self.measure_seconds,
            };
            phase.seconds = length.unwrap_or(phase.seconds);
        }
        changed.phases.retain(|phase| phase.seconds > 0 || phase.kind == PhaseKind::Measure);
        match changed.check() {
            Ok(()) => Ok(changed),
            Err(refused) => wrong(&refused.field, &refused.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::open;

    #[test]
    fn a_run_changes_what_it_names_and_nothing_else() {
        let scenario = open("baseline-mix").unwrap();
        assert_eq!(Overrides::default().apply(&scenario).unwrap(), scenario);
        let overrides = Overrides {
            vus: Some(50),
            measure_seconds: Some(10),
            warm_up_seconds: Some(0),
            ramp_seconds: Some(1),
            think_time_mean_seconds: Some(0.0),
            ..Overrides::default()
        };
        let changed = overrides.apply(&scenario).unwrap();
        assert_eq!(changed.virtual_users(), 50);
        let phases: Vec<_> = changed.phases.iter().map(|it| (it.kind, it.seconds)).collect();
        assert_eq!(phases, [(PhaseKind::Ramp, 1), (PhaseKind::Measure, 10), (PhaseKind::RampDown, 1)]);
        assert_eq!(changed.mix, scenario.mix);
    }

    #[test]
    fn what_the_model_does_not_have_cannot_be_changed() {
        let rate = Overrides { arrivals_per_second: Some(5.0), ..Overrides::default() };
        assert!(rate.apply(&open("smoke").unwrap()).is_err());
        assert!(rate.apply(&open("sls").unwrap()).is_ok());
        let think = Overrides { think_time_mean_seconds: Some(1.0), ..Overrides::default() };
        assert!(think.apply(&open("sls").unwrap()).is_err());
    }

    #[test]
    fn what_no_file_could_hold_is_refused() {
        let none = Overrides { vus: Some(0), ..Overrides::default() };
        assert!(none.apply(&open("smoke").unwrap()).unwrap_err().to_string().contains("model.vus"));
        let nothing = Overrides { measure_seconds: Some(0), ..Overrides::default() };
        assert!(nothing.apply(&open("smoke").unwrap()).unwrap_err().to_string().contains("seconds"));
    }
}
