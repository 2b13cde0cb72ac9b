//! Service level objectives: `p95<250ms`, `errors<0.1%`, `login.p99<1s`.

use std::fmt;
use std::str::FromStr;

use crate::run::{LatencySummary, Run};
use crate::statistics::{ErrorRate, Support, support};

/// One objective: a quantity, of all endpoints or of one, below a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo {
    /// Of which endpoint; `None` for all together.
    pub endpoint: Option<String>,
    /// What is limited.
    pub quantity: SloQuantity,
    /// The limit: milliseconds, or a share of 0 to 1 for errors.
    pub limit: f64,
    /// Whether the limit itself is still acceptable (`<=`).
    pub inclusive: bool,
}

/// What an objective limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SloQuantity {
    /// Mean latency.
    Mean,
    /// A percentile of latency.
    P50,
    /// 90th.
    P90,
    /// 95th.
    P95,
    /// 99th.
    P99,
    /// 99.9th.
    P999,
    /// The longest latency.
    Max,
    /// The share of requests that failed.
    Errors,
}

/// Why a text is no objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no objective: {reason}; for example p95<250ms, errors<0.1%, login.p99<=1s")]
pub struct SloError {
    text: String,
    reason: String,
}

/// What a run says about an objective.
#[derive(Debug, Clone, PartialEq)]
pub struct SloVerdict {
    /// The objective.
    pub slo: Slo,
    /// The measured figure in the limit's unit, where the run has it.
    pub measured: Option<f64>,
    /// What to make of it.
    pub outcome: SloOutcome,
}

/// Whether an objective was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SloOutcome {
    /// It was. For percentiles: with ten requests beyond it at least. For errors: even their exact 95 % upper bound is within the limit.
    Met,
    /// It was not.
    Missed,
    /// The run cannot tell, and why.
    Undecided(String),
}

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Self, SloError> {
        let refused = |reason: &str| SloError { text: text.to_owned(), reason: reason.to_owned() };
        let (left, right) = text.split_once('<').ok_or_else(|| refused("it has no `<`"))?;
        let (inclusive, right) = match right.strip_prefix('=') {
            Some(right) => (true, right.trim()),
            None => (false, right.trim()),
        };
        let left = left.trim();
        // `p99.9` has a point of its own, so that the name is tried whole before it is divided.
        let (endpoint, quantity) = match quantity(left) {
            Some(quantity) => (None, quantity),
            None => divided(left).ok_or_else(|| {
                refused("what is left of `<` is none of mean, p50, p90, p95, p99, p99.9, max, errors")
            })?,
        };
        let limit = match quantity {
            SloQuantity::Errors => {
                share(right).ok_or_else(|| refused("the limit of errors is a percentage such as 0.1%"))?
            }
            _ => milliseconds(right)
                .ok_or_else(|| refused("the limit of a latency is a time with its unit: us, ms, s or m"))?,
        };
        Ok(Self { endpoint, quantity, limit, inclusive })
    }
}

fn quantity(name: &str) -> Option<SloQuantity> {
    Some(match name {
        "mean" | "avg" => SloQuantity::Mean,
        "p50" | "median" | "med" => SloQuantity::P50,
        "p90" => SloQuantity::P90,
        "p95" => SloQuantity::P95,
        "p99" => SloQuantity::P99,
        "p99.9" | "p999" => SloQuantity::P999,
        "max" => SloQuantity::Max,
        "errors" => SloQuantity::Errors,
        _ => return None,
    })
}

fn divided(left: &str) -> Option<(Option<String>, SloQuantity)> {
    left.match_indices('.').find_map(|(at, _)| {
        let (endpoint, rest) = (&left[..at], &left[at + 1..]);
        quantity(rest).filter(|_| !endpoint.is_empty()).map(|quantity| (Some(endpoint.to_owned()), quantity))
    })
}

fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    (share <= 1.0).then_some(share)
}

fn milliseconds(text: &str) -> Option<f64> {
    let unit = text.find(|character: char| character.is_alphabetic())?;
    let factor = match &text[unit..] {
        "us" | "µs" | "μs" => 0.001,
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" | "min" => 60_000.0,
        _ => return None,
    };
    Some(number(&text[..unit])? * factor)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

impl Slo {
    /// What `run` says about this objective.
    #[must_use]
    pub fn check(&self, run: &Run) -> SloVerdict {
        let (measured, outcome) = match self.quantity {
            SloQuantity::Errors => self.check_errors(run),
            _ => self.check_latency(run),
        };
        SloVerdict { slo: self.clone(), measured, outcome }
    }

    /// A measured figure in the unit of the limit, for people.
    #[must_use]
    pub fn figure(&self, measured: f64) -> String {
        match self.quantity {
            SloQuantity::Errors => format!("{:.3} %", measured * 100.0),
            _ => format!("{measured:.1} ms"),
        }
    }

    /// Whether a figure in the limit's unit is within it.
    pub(super) fn within(&self, value: f64) -> bool {
        value < self.limit || (self.inclusive && value <= self.limit)
    }

    fn check_latency(&self, run: &Run) -> (Option<f64>, SloOutcome) {
        let latency = match &self.endpoint {
            None => Some(&run.overall),
            Some(endpoint) => run.endpoints.get(endpoint).map(|endpoint| &endpoint.latency),
        };
        let Some((latency, measured)) = latency.and_then(|latency| Some((latency, self.quantity.of(latency)?))) else {
            return (None, SloOutcome::Undecided("the run has no such latency".into()));
        };
        // What another run would give otherwise decides nothing; what is only the longest request under another name is none.
        let few = || SloOutcome::Undecided(format!("{} requests are too few for {}", latency.count, self.quantity));
        match self.quantity.percent().map_or(Support::Good, |percent| support(percent, latency.count)) {
            Support::None => (None, few()),
            Support::Rough => (Some(measured), few()),
            Support::Good if self.within(measured) => (Some(measured), SloOutcome::Met),
            Support::Good => (Some(measured), SloOutcome::Missed),
        }
    }

    fn check_errors(&self, run: &Run) -> (Option<f64>, SloOutcome) {
        let (errors, requests) = match &self.endpoint {
            None => (run.failures.iter().map(|failure| failure.count).sum(), run.requests),
            Some(name) => match run.endpoints.get(name) {
                None => return (None, SloOutcome::Undecided("the run has no such endpoint".into())),
                Some(endpoint) => {
                    let errors: u64 = endpoint.failures.iter().map(|failure| failure.count).sum();
                    (errors, endpoint.latency.count + endpoint.failed.count.max(errors))
                }
            },
        };
        if requests == 0 {
            return (None, SloOutcome::Undecided("the run has no requests".into()));
        }
        let rate = ErrorRate::of(errors, requests);
        let outcome = if !self.within(rate.rate) {
            SloOutcome::Missed
        } else if self.within(rate.upper_bound) {
            SloOutcome::Met
        } else {
            SloOutcome::Undecided(format!(
                "{errors} of {requests} failed, which may still mean up to {:.3} %",
                rate.upper_bound * 100.0
            ))
        };
        (Some(rate.rate), outcome)
    }
}

impl SloQuantity {
    /// The percentile that it is, 0 to 100.
    fn percent(self) -> Option<f64> {
        match self {
            Self::P50 => Some(50.0),
            Self::P90 => Some(90.0),
            Self::P95 => Some(95.0),
            Self::P99 => Some(99.0),
            Self::P999 => Some(99.9),
            Self::Mean | Self::Max | Self::Errors => None,
        }
    }

    fn of(self, latency: &LatencySummary) -> Option<f64> {
        match self {
            Self::Mean => latency.mean,
            Self::P50 => latency.p50,
            Self::P90 => latency.p90,
            Self::P95 => latency.p95,
            Self::P99 => latency.p99,
            Self::P999 => latency.p999,
            Self::Max => latency.max,
            Self::Errors => None,
        }
    }
}

impl fmt::Display for SloQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Errors => "errors",
        })
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(endpoint) = &self.endpoint {
            write!(f, "{endpoint}.")?;
        }
        let sign = if self.inclusive { "<=" } else { "<" };
        match self.quantity {
            SloQuantity::Errors => write!(f, "{}{sign}{}%", self.quantity, shortest(self.limit * 100.0)),
            _ => write!(f, "{}{sign}{}ms", self.quantity, shortest(self.limit)),
        }
    }
}

/// Without the digits that multiplying by a unit leaves behind.
fn shortest(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::super::pooled::tests::{figures, recorded};
    use super::*;
    use crate::result::{Answerer, Failure, FailureCount};
    use crate::run::Endpoint;

    fn slo(text: &str) -> Slo {
        text.parse().unwrap()
    }

    #[test]
    fn objectives_are_read_with_their_units() {
        let of = |text| {
            let Slo { endpoint, quantity, limit, inclusive } = slo(text);
            (endpoint, quantity, (limit * 1e6).round() / 1e6, inclusive)
        };
        assert_eq!(of("p95<250ms"), (None, SloQuantity::P95, 250.0, false));
        assert_eq!(of("errors<0.1%"), (None, SloQuantity::Errors, 0.001, false));
        assert_eq!(of("login.p99<=1s"), (Some("login".into()), SloQuantity::P99, 1_000.0, true));
        assert_eq!(of(" get-user.p99.9 < 1.5 s "), (Some("get-user".into()), SloQuantity::P999, 1_500.0, false));
        assert_eq!(of("p99.9<500us"), (None, SloQuantity::P999, 0.5, false));
        assert_eq!(of("upload.errors<1%"), (Some("upload".into()), SloQuantity::Errors, 0.01, false));
    }

    #[test]
    fn an_objective_is_written_as_it_is_read() {
        for text in ["p95<250ms", "errors<0.1%", "login.p99<=1000ms", "p99.9<0.5ms"] {
            assert_eq!(slo(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_objective_says_why() {
        for (text, reason) in [
            ("p95", "no `<`"),
            ("p95<250", "with its unit"),
            ("p95<-1ms", "with its unit"),
            ("p42<1ms", "none of"),
            (".p95<1ms", "none of"),
            ("errors<200%", "percentage"),
            ("errors<5ms", "percentage"),
            ("p95<nanms", "with its unit"),
            ("", "no `<`"),
        ] {
            let error = text.parse::<Slo>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn latencies_are_checked_where_the_run_has_them() {
        let mut run = recorded(100.0, (1..=300_u64).map(|third| third.div_ceil(3) * 1_000));
        run.endpoints.insert("login".into(), Endpoint { latency: run.overall.clone(), ..Endpoint::default() });
        assert_eq!(slo("p95<96ms").check(&run).outcome, SloOutcome::Met);
        assert_eq!(slo("p95<94ms").check(&run).outcome, SloOutcome::Missed);
        assert_eq!(slo("login.max<90ms").check(&run).outcome, SloOutcome::Missed);
        assert!(matches!(slo("upload.p95<1s").check(&run).outcome, SloOutcome::Undecided(_)));
        assert!(matches!(slo("p99<1s").check(&figures("x", 1.0, 1.0)).outcome, SloOutcome::Undecided(_)));
    }

    #[test]
    fn a_percentile_of_few_requests_decides_no_objective() {
        let of = |requests: u64| recorded(100.0, (0..requests).map(|_| 50_000));
        let p99 = slo("p99<250ms");
        assert_eq!(p99.check(&of(1_000)).outcome, SloOutcome::Met);
        let rough = p99.check(&of(999));
        assert_eq!(rough.outcome, SloOutcome::Undecided("999 requests are too few for p99".into()));
        assert!(rough.measured.is_some());
        assert_eq!(p99.check(&of(99)).measured, None, "only the longest request under another name");
        assert_eq!(slo("max<250ms").check(&of(3)).outcome, SloOutcome::Met, "a maximum is what it is");
    }

    #[test]
    fn errors_are_met_only_if_their_bound_is() {
        let run = |errors, requests| {
            let failure = Failure { status: Some(500), code: "unknown".into(), answerer: Answerer::Unknown };
            let mut run = figures("x", 1.0, 1.0);
            (run.requests, run.failures) = (requests, vec![FailureCount { failure, count: errors }]);
            run
        };
        let limit = slo("errors<0.1%");
        assert_eq!(limit.check(&run(0, 10_000)).outcome, SloOutcome::Met);
        assert_eq!(limit.check(&run(20, 10_000)).outcome, SloOutcome::Missed);
        assert!(matches!(limit.check(&run(0, 1_000)).outcome, SloOutcome::Undecided(_)), "0 of 1000 is up to 0.3 %");
        assert!(matches!(limit.check(&run(0, 0)).outcome, SloOutcome::Undecided(_)));
    }
}
