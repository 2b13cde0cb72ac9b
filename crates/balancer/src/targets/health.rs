//! Active health checks.
//!
//! As an ALB does: a new connection each time, the first success makes a new target healthy, later changes need as many
//! results in a row as the thresholds say. Source: AWS, "Health checks for Application Load Balancer target groups".

use std::fmt;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use service_kit::health::SERVICE_HEADER;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::group::Group;
use super::state::{Reason, TargetState};
use super::target::{Status, Target};

/// How targets are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked for.
    pub path: PathAndQuery,
    /// From one check to the next.
    pub interval: Duration,
    /// For connecting and the head of the answer together; shorter than the interval.
    pub timeout: Duration,
    /// Successes in a row that make an unhealthy target healthy.
    pub healthy_threshold: u32,
    /// Failures in a row that make a target unhealthy.
    pub unhealthy_threshold: u32,
    /// The statuses that are a success.
    pub success: StatusMatcher,
    /// The service that must answer, where the answer names one.
    pub service: Option<String>,
}

impl Default for HealthCheck {
    /// `/ready` every 5 s (an ALB: 30 s), 2 s of patience, two results in a row.
    fn default() -> Self {
        Self {
            path: PathAndQuery::from_static("/ready"),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            healthy_threshold: 2,
            unhealthy_threshold: 2,
            success: StatusMatcher::default(),
            service: None,
        }
    }
}

/// Statuses, as an ALB's matcher writes them: `200`, `200,202`, `200-299`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusMatcher(Vec<RangeInclusive<u16>>);

impl StatusMatcher {
    fn matches(&self, status: StatusCode) -> bool {
        self.0.iter().any(|range| range.contains(&status.as_u16()))
    }
}

impl Default for StatusMatcher {
    /// `200`.
    fn default() -> Self {
        Self(vec![200..=200])
    }
}

impl FromStr for StatusMatcher {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (200..=499).contains(&first).then_some(())?;
            (first..=499).contains(&last).then_some(first..=last)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(part).collect();
        ranges
            .map(Self)
            .ok_or_else(|| format!("must be statuses from 200 to 499 like 200,202 or 200-299, not '{text}'"))
    }
}

impl fmt::Display for StatusMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// One check's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Status(StatusCode),
    Timeout,
    Connection,
    AnotherService,
}

impl From<Failure> for Reason {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Status(status) => Self::ResponseCodeMismatch(status.as_u16()),
            Failure::Timeout => Self::Timeout,
            Failure::Connection => Self::FailedHealthChecks,
            Failure::AnotherService => Self::AnotherService,
        }
    }
}

/// Judges a target by the results of its checks.
#[derive(Debug)]
struct Judge {
    state: TargetState,
    successes: u32,
    failures: u32,
}

impl Judge {
    fn new() -> Self {
        Self { state: TargetState::Initial, successes: 0, failures: 0 }
    }

    /// The status after one more result.
    fn hear(&mut self, result: Result<(), Failure>, check: &HealthCheck) -> Status {
        if result.is_ok() {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
            if self.state == TargetState::Initial || self.successes >= check.healthy_threshold {
                self.state = TargetState::Healthy;
            }
        } else {
            self.successes = 0;
            self.failures = self.failures.saturating_add(1);
            // Whoever is somebody else does not become right by being asked again.
            if self.failures >= check.unhealthy_threshold || result == Err(Failure::AnotherService) {
                self.state = TargetState::Unhealthy;
            }
        }
        let reason = match (self.state, result) {
            (TargetState::Healthy, _) => None,
            (TargetState::Initial, _) => Some(Reason::InitialHealthChecking),
            (_, Err(failure)) => Some(failure.into()),
            // Getting better, and not trusted yet.
            (_, Ok(())) => Some(Reason::FailedHealthChecks),
        };
        (self.state, reason)
    }
}

/// Checks a target until it is dropped.
pub(super) async fn watch(group: Arc<Group>, target: Arc<Target>) {
    let check = &group.config().health;
    let mut judge = Judge::new();
    let mut ticks = interval(check.interval);
    // After the machine slept, one check is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let result = timeout(check.timeout, ask(&target, check)).await.unwrap_or(Err(Failure::Timeout));
        group.report(&target, judge.hear(result, check));
        target.expire_idle();
    }
}

async fn ask(target: &Target, check: &HealthCheck) -> Result<(), Failure> {
    let answer = request(target, check).await.map_err(|()| Failure::Connection)?;
    let named = answer.headers().get(SERVICE_HEADER);
    if let (Some(expected), Some(named)) = (&check.service, named)
        && named.as_bytes() != expected.as_bytes()
    {
        return Err(Failure::AnotherService);
    }
    if check.success.matches(answer.status()) { Ok(()) } else { Err(Failure::Status(answer.status())) }
}

async fn request(target: &Target, check: &HealthCheck) -> Result<Response<Incoming>, ()> {
    let stream = TcpStream::connect(target.address()).await.map_err(drop)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(drop)?;
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = Uri::from(check.path.clone());
    let headers = request.headers_mut();
    headers.insert(HOST, target.host().clone());
    headers.insert(CONNECTION, http::HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, http::HeaderValue::from_static("Datum-HealthChecker/1.0"));
    let (answer, connection) = (pin!(sender.send_request(request)), pin!(connection));
    // The body is of no interest: the connection ends with this function.
    match select(answer, connection).await {
        Either::Left((answer, _)) => answer.map_err(drop),
        // The connection may end with the answer.
        Either::Right((_, answer)) => answer.await.map_err(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: Result<(), Failure> = Ok(());
    const BAD: Result<(), Failure> = Err(Failure::Timeout);

    fn check() -> HealthCheck {
        HealthCheck { healthy_threshold: 3, unhealthy_threshold: 2, ..HealthCheck::default() }
    }

    fn after(results: &[Result<(), Failure>]) -> Status {
        let mut judge = Judge::new();
        let mut status = (TargetState::Initial, None);
        for result in results {
            status = judge.hear(*result, &check());
        }
        status
    }

    #[test]
    fn the_first_success_makes_a_new_target_healthy() {
        assert_eq!(after(&[OK]), (TargetState::Healthy, None));
        assert_eq!(after(&[BAD, OK]), (TargetState::Healthy, None));
    }

    #[test]
    fn failures_in_a_row_make_it_unhealthy_and_single_ones_do_not() {
        assert_eq!(after(&[OK, BAD]), (TargetState::Healthy, None));
        assert_eq!(after(&[OK, BAD, OK, BAD]), (TargetState::Healthy, None));
        assert_eq!(after(&[OK, BAD, BAD]), (TargetState::Unhealthy, Some(Reason::Timeout)));
        assert_eq!(after(&[BAD]), (TargetState::Initial, Some(Reason::InitialHealthChecking)));
        assert_eq!(after(&[BAD, BAD]), (TargetState::Unhealthy, Some(Reason::Timeout)));
    }

    #[test]
    fn an_unhealthy_target_needs_successes_in_a_row() {
        let unhealthy = [OK, BAD, BAD];
        let then = |more: &[Result<(), Failure>]| after(&[&unhealthy[..], more].concat());
        assert_eq!(then(&[OK, OK]), (TargetState::Unhealthy, Some(Reason::FailedHealthChecks)));
        assert_eq!(then(&[OK, OK, BAD, OK, OK]).0, TargetState::Unhealthy);
        assert_eq!(then(&[OK, OK, OK]), (TargetState::Healthy, None));
    }

    #[test]
    fn the_reason_is_the_last_failure() {
        let status = Err(Failure::Status(StatusCode::SERVICE_UNAVAILABLE));
        assert_eq!(after(&[BAD, status]).1, Some(Reason::ResponseCodeMismatch(503)));
        assert_eq!(after(&[BAD, Err(Failure::Connection)]).1, Some(Reason::FailedHealthChecks));
    }

    #[test]
    fn another_service_is_unhealthy_at_once() {
        let another = Err(Failure::AnotherService);
        assert_eq!(after(&[OK, another]), (TargetState::Unhealthy, Some(Reason::AnotherService)));
        assert_eq!(after(&[another]), (TargetState::Unhealthy, Some(Reason::AnotherService)));
        assert_eq!(after(&[another, OK, OK, OK]).0, TargetState::Healthy);
    }

    #[test]
    fn matchers_are_read_as_an_alb_reads_them() {
        for text in ["200", "200,202", "200-299", "200,300-399"] {
            let matcher: StatusMatcher = text.parse().expect("a matcher");
            assert_eq!(matcher.to_string(), text);
        }
        let matcher: StatusMatcher = "200,300-302".parse().expect("a matcher");
        for (status, expected) in [(200, true), (201, false), (300, true), (302, true), (303, false)] {
            assert_eq!(matcher.matches(StatusCode::from_u16(status).expect("a status")), expected, "{status}");
        }
        for text in ["", "200,", "abc", "299-200", "100", "200-500", "-"] {
            assert!(text.parse::<StatusMatcher>().is_err(), "{text}");
        }
    }
}
