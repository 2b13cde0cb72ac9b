//! Whose error it was.
//!
//! | Failure | Owner |
//! |---|---|
//! | any status with code `hashing_busy`, `uploads_busy`, `balancer_exhausted` or `too_many_attempts`; any other 429 | shed |
//! | code `database_busy` | pool timeout |
//! | 502, 503, 504 of the balancer; 502, 504 of nobody known (a load balancer's own) | balancer |
//! | other 4xx of anybody | client-expected |
//! | other 5xx of a task, 500 and 501 of nobody known, a check that failed on an answer (`check:NAME`) | service |
//! | no answer: `reset`, `connect`, `protocol` | reset |
//! | no answer: `timeout` | timeout |
//! | no answer: `interrupted` | generator |
//! | everything else, a 503 without code or answerer among it | unknown |

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::as_float;
use crate::result::{Answerer, Failure, FailureCount};
use crate::run::Run;

/// Who has to look into a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// The request did not deserve better: test data, concurrency of the test, or the scenario itself.
    ClientExpected,
    /// The target refused work on purpose, to stay fast for the rest.
    Shed,
    /// A task waited too long for a database connection.
    PoolTimeout,
    /// A task answered with an error, or with the wrong content.
    Service,
    /// The load balancer answered for a target that it could not use.
    Balancer,
    /// The connection was refused or broken before an answer.
    Reset,
    /// The driver stopped waiting: nobody said why.
    Timeout,
    /// The driver gave up for its own reasons.
    Generator,
    /// The source does not say enough.
    Unknown,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ClientExpected => "client-expected",
            Self::Shed => "shed",
            Self::PoolTimeout => "pool timeout",
            Self::Service => "service",
            Self::Balancer => "balancer",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Generator => "generator",
            Self::Unknown => "unknown",
        })
    }
}

/// Codes of problems that mean "not now", as the services and the balancer send them.
const SHED_CODES: [&str; 4] = ["hashing_busy", "uploads_busy", "balancer_exhausted", "too_many_attempts"];
/// The code of a wait for a database connection that took too long.
const POOL_CODE: &str = "database_busy";

/// Whose error a failure is: the module's table.
#[must_use]
pub fn owner_of(failure: &Failure) -> Owner {
    let code = failure.code.as_str();
    if SHED_CODES.contains(&code) {
        return Owner::Shed;
    }
    if code == POOL_CODE {
        return Owner::PoolTimeout;
    }
    if code.starts_with("check:") {
        return Owner::Service;
    }
    match (failure.status, failure.answerer) {
        (None, _) => match code {
            "reset" | "connect" | "protocol" => Owner::Reset,
            "timeout" => Owner::Timeout,
            "interrupted" => Owner::Generator,
            _ => Owner::Unknown,
        },
        (Some(429), _) => Owner::Shed,
        (Some(400..=499), _) => Owner::ClientExpected,
        (Some(502..=504), Answerer::Balancer) | (Some(502 | 504), Answerer::Unknown) => Owner::Balancer,
        (Some(500..=599), Answerer::Task) | (Some(500 | 501), Answerer::Unknown) => Owner::Service,
        _ => Owner::Unknown,
    }
}

/// From this share of [`broken`] requests on, what is left is no sample of a working system's latency.
pub const MOSTLY_BROKEN: f64 = 0.5;

/// Requests that failed in another way than being shed on purpose.
#[must_use]
pub fn broken(failures: &[FailureCount]) -> u64 {
    failures.iter().filter(|it| owner_of(&it.failure) != Owner::Shed).map(|it| it.count).sum()
}

/// What follows for a run whose requests mostly failed; also how a reader finds that its driver has said so.
pub(crate) const NO_STATEMENT: &str = "throughput and latencies are no statement about a system that works";

/// What voids a run that ended before its measured phase, whoever drove it.
pub const NOTHING_MEASURED: &str = "The run ended before anything was measured.";

/// What voids a run whose measured phase saw no request to its end.
pub const NOTHING_ENDED: &str = "No request ended within the measured phase.";

/// Why a run whose requests mostly failed says nothing: the sentence that a driver voids it with. `None` for a run that did not
/// mostly fail, and for one without requests.
#[must_use]
pub fn mostly_broken(broken: u64, requests: u64) -> Option<String> {
    let is_mostly = requests > 0 && as_float(broken) >= MOSTLY_BROKEN * as_float(requests);
    is_mostly.then(|| format!("{broken} of {requests} requests failed, other than being shed: {NO_STATEMENT}."))
}

/// Whether a run is [`mostly_broken`].
#[must_use]
pub fn is_mostly_broken(run: &Run) -> bool {
    mostly_broken(broken(&run.failures), run.requests).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(status: Option<u16>, code: &str, answerer: Answerer) -> Owner {
        owner_of(&Failure { status, code: code.into(), answerer })
    }

    #[test]
    fn from_half_of_the_requests_on_a_run_mostly_failed() {
        assert_eq!(mostly_broken(9, 20), None);
        assert!(mostly_broken(10, 20).unwrap().starts_with("10 of 20 requests failed"));
        assert_eq!(mostly_broken(0, 0), None, "nothing failed");
    }

    #[test]
    fn each_row_of_the_table_holds() {
        use Answerer::{Balancer, Nobody, Task, Unknown};
        assert_eq!(owner(Some(503), "hashing_busy", Task), Owner::Shed);
        assert_eq!(owner(Some(503), "balancer_exhausted", Balancer), Owner::Shed);
        assert_eq!(owner(Some(429), "unknown", Unknown), Owner::Shed);
        assert_eq!(owner(Some(503), "database_busy", Task), Owner::PoolTimeout);
        assert_eq!(owner(Some(503), "no_targets", Balancer), Owner::Balancer);
        assert_eq!(owner(Some(502), "unknown", Unknown), Owner::Balancer);
        assert_eq!(owner(Some(401), "invalid_credentials", Task), Owner::ClientExpected);
        assert_eq!(owner(Some(404), "not_found", Balancer), Owner::ClientExpected);
        assert_eq!(owner(Some(500), "internal_error", Task), Owner::Service);
        assert_eq!(owner(Some(503), "storage_unavailable", Task), Owner::Service);
        assert_eq!(owner(Some(200), "check:email", Task), Owner::Service);
        assert_eq!(owner(None, "reset", Nobody), Owner::Reset);
        assert_eq!(owner(None, "connect", Nobody), Owner::Reset);
        assert_eq!(owner(None, "timeout", Nobody), Owner::Timeout);
        assert_eq!(owner(None, "interrupted", Nobody), Owner::Generator);
        assert_eq!(owner(Some(503), "unknown", Unknown), Owner::Unknown);
        assert_eq!(owner(None, "unknown", Unknown), Owner::Unknown);
    }
}
