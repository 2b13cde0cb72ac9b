//! A known delay in a known place, so that whoever measures can be measured.
//!
//! `FAULT_STAGE_DELAY=db:50ms` makes every request slower by 50 ms inside stage `db`, once, when it gets there. Where nobody
//! has also said `DATUM_ALLOW_FAULTS=1` the process refuses to start: a deployment cannot carry it along by accident.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::config::Settings;
use crate::stages::Stage;

/// Names the stage and the delay.
pub const STAGE_DELAY_VARIABLE: &str = "FAULT_STAGE_DELAY";
/// What allows a fault at all.
pub const ALLOW_VARIABLE: &str = "DATUM_ALLOW_FAULTS";

/// A request must still end by itself: the shortest deadline of a stage is the two seconds of the hash queue and of the pool.
const LONGEST: Duration = Duration::from_millis(1_900);

/// A delay of every request in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageDelay {
    place: Place,
    delay: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Stage(Stage),
    /// What no stage measures.
    App,
}

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Self::Stage(stage) => stage.name(),
            Self::App => "app",
        }
    }
}

impl StageDelay {
    /// Reads the variables.
    pub fn read(settings: &mut Settings<'_>) -> Option<Self> {
        settings.section("Faults, to test measuring with");
        let delay = settings.parsed(
            STAGE_DELAY_VARIABLE,
            "",
            "Makes a stage of every request slower, such as db:50ms",
            str::parse::<Self>,
        );
        unless_refused(settings, STAGE_DELAY_VARIABLE, delay)
    }

    /// The extra time that a request spends in what no stage measures.
    pub(crate) fn in_app(self) -> Option<Duration> {
        (self.place == Place::App).then_some(self.delay)
    }
}

/// Passes a fault on that was read from `variable`, and makes it an error where faults are not allowed.
pub fn unless_refused<T>(settings: &mut Settings<'_>, variable: &'static str, fault: Option<T>) -> Option<T> {
    let allowed = settings.switch(ALLOW_VARIABLE, false, "Whether faults may be switched on; never in production");
    if fault.is_some() && !allowed {
        settings.error(
            variable,
            format!("makes requests slow on purpose and is refused without {ALLOW_VARIABLE}=1 beside it"),
        );
        return None;
    }
    fault
}

impl fmt::Display for StageDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}ms", self.place.name(), self.delay.as_millis())
    }
}

impl FromStr for StageDelay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, delay) = text.split_once(':').ok_or("is a stage and a delay, such as db:50ms")?;
        let places = Stage::ALL.map(Place::Stage).into_iter().chain([Place::App]);
        let place = places.clone().find(|it| it.name() == place).ok_or_else(|| {
            let names: Vec<_> = places.map(Place::name).collect();
            format!("names no stage: '{place}' is none of {}", names.join(", "))
        })?;
        Ok(Self { place, delay: parse_delay(delay)? })
    }
}

/// A delay of 1 ms to 1,900 ms, written with its unit: `50ms`.
///
/// # Errors
/// What is wrong with it, to follow the variable's name.
pub fn parse_delay(text: &str) -> Result<Duration, String> {
    let millis = text.strip_suffix("ms").and_then(|number| number.parse().ok()).map(Duration::from_millis);
    millis
        .filter(|delay| (Duration::from_millis(1)..=LONGEST).contains(delay))
        .ok_or_else(|| format!("needs a delay from 1ms to {}ms, not '{text}'", LONGEST.as_millis()))
}

/// The delay as one request carries it: it strikes once.
#[derive(Debug)]
pub(crate) struct Armed {
    fault: StageDelay,
    struck: AtomicBool,
}

impl Armed {
    pub(crate) fn new(fault: StageDelay) -> Self {
        Self { fault, struck: AtomicBool::new(false) }
    }

    /// The delay, if it belongs into this stage and has not struck yet.
    pub(crate) fn take(&self, stage: Stage) -> Option<Duration> {
        (self.fault.place == Place::Stage(stage) && !self.struck.swap(true, Ordering::Relaxed))
            .then_some(self.fault.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigErrors, Environment, load};

    fn read(pairs: &[(&str, &str)]) -> Result<Option<StageDelay>, ConfigErrors> {
        load(&Environment::from_pairs(pairs.iter().copied()), StageDelay::read)
    }

    #[test]
    fn a_delay_is_refused_where_faults_are_not_allowed() {
        for not_allowed in [&[][..], &[(ALLOW_VARIABLE, "0")], &[(ALLOW_VARIABLE, "off")]] {
            let pairs: Vec<_> = not_allowed.iter().copied().chain([(STAGE_DELAY_VARIABLE, "db:50ms")]).collect();
            let errors = read(&pairs).expect_err("refused").0;
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(errors[0].starts_with(STAGE_DELAY_VARIABLE) && errors[0].contains(ALLOW_VARIABLE), "{errors:?}");
        }
    }

    #[test]
    fn allowing_faults_is_no_fault() {
        assert_eq!(read(&[(ALLOW_VARIABLE, "1")]), Ok(None));
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn every_stage_can_be_named_and_is_written_as_it_is_read() {
        for text in
            ["admission:1ms", "pool:2ms", "db:50ms", "hash:7ms", "idp:8ms", "s3:9ms", "verify:10ms", "app:1900ms"]
        {
            let delay = read(&[(STAGE_DELAY_VARIABLE, text), (ALLOW_VARIABLE, "1")]).expect("valid").expect("a delay");
            assert_eq!(delay.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_delay_of_a_stage_is_an_error() {
        for text in
            ["db", "db:", "db:50", "db:50s", "db:0ms", "db:1901ms", "db:-1ms", "total:50ms", ":50ms", "db:5ms:5ms"]
        {
            let errors = read(&[(STAGE_DELAY_VARIABLE, text), (ALLOW_VARIABLE, "1")]).expect_err(text).0;
            assert!(errors[0].starts_with(STAGE_DELAY_VARIABLE), "{errors:?}");
        }
    }

    #[test]
    fn it_strikes_once_and_in_its_stage_only() {
        let armed = Armed::new("db:50ms".parse().expect("valid"));
        assert_eq!(armed.take(Stage::Pool), None);
        assert_eq!(armed.take(Stage::Db), Some(Duration::from_millis(50)));
        assert_eq!(armed.take(Stage::Db), None);
    }
}
