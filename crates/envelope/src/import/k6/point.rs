//! One sample of k6's, and what its tags say.

use std::borrow::Cow;

use serde::Deserialize;

use crate::result::{Answerer, Failure};

/// A sample of a metric that is used here.
pub(super) struct Point {
    pub(super) metric: Metric,
    /// When the request or iteration ended, in milliseconds since 1970.
    pub(super) unix_ms: i64,
    /// In k6's unit: milliseconds for times.
    pub(super) value: f64,
    pub(super) tags: Tags,
}

/// How a file of samples ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With its last sample.
    Whole,
    /// In the middle of one, or of its compressed data: k6 was killed, the disk was full, a copy broke off.
    Truncated,
}

impl Point {
    /// When second 0 is, in milliseconds since 1970, if this says so.
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit, and others saturate")]
    pub(super) fn load_began_ms(&self) -> Option<i64> {
        (self.metric == Metric::LoadBegan).then_some(self.value as i64)
    }
}

/// The metrics that are used here. From `failures` on they are those of Datum's own scripts (`tests/load/k6`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Metric {
    RequestDuration,
    Iterations,
    IterationDuration,
    DroppedIterations,
    Vus,
    Failures,
    /// Of right answers: status and body were checked.
    Latency,
    /// Of all others.
    FailedLatency,
    /// Its value is the time of second 0, in milliseconds since 1970.
    LoadBegan,
    /// One for each distinct identity that sends requests.
    Identities,
    Unattributed,
    Stage(String),
}

impl Metric {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "http_req_duration" => Self::RequestDuration,
            "iterations" => Self::Iterations,
            "iteration_duration" => Self::IterationDuration,
            "dropped_iterations" => Self::DroppedIterations,
            "vus" => Self::Vus,
            "failures" => Self::Failures,
            "latency" => Self::Latency,
            "failed_latency" => Self::FailedLatency,
            "load_began" => Self::LoadBegan,
            "identities" => Self::Identities,
            "unattributed" => Self::Unattributed,
            _ => Self::Stage(name.strip_prefix("stage_").filter(|stage| !stage.is_empty())?.to_owned()),
        })
    }
}

/// The tags that are used here.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Tags {
    pub(super) endpoint: Option<String>,
    pub(super) name: Option<String>,
    pub(super) url: Option<String>,
    pub(super) method: Option<String>,
    pub(super) group: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) status: Option<String>,
    pub(super) expected_response: Option<String>,
    pub(super) error_code: Option<String>,
    pub(super) code: Option<String>,
    pub(super) answerer: Option<String>,
}

impl Tags {
    /// Sets a tag by its name; others are dropped.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        let slot = match name {
            "endpoint" => &mut self.endpoint,
            "name" => &mut self.name,
            "url" => &mut self.url,
            "method" => &mut self.method,
            "group" => &mut self.group,
            "phase" => &mut self.phase,
            "status" => &mut self.status,
            "expected_response" => &mut self.expected_response,
            "error_code" => &mut self.error_code,
            "code" => &mut self.code,
            "answerer" => &mut self.answerer,
            _ => return,
        };
        *slot = (!value.is_empty()).then(|| value.to_owned());
    }

    /// Whether the sample belongs to `setup()` or `teardown()`.
    pub(super) fn is_outside_the_load(&self) -> bool {
        self.group.as_deref().is_some_and(|group| group.starts_with("::setup") || group.starts_with("::teardown"))
    }

    pub(super) fn is_expected(&self) -> bool {
        self.expected_response.as_deref() != Some("false")
    }

    /// The endpoint's name: the script's `endpoint`, else a `name` that it gave, else method and path with the parts
    /// that look like identifiers replaced, so that a path per user is not an endpoint per user.
    pub(super) fn endpoint(&self) -> Cow<'_, str> {
        if let Some(endpoint) = &self.endpoint {
            return Cow::Borrowed(endpoint);
        }
        let Some(name) = self.name.as_ref().or(self.url.as_ref()) else { return Cow::Borrowed("unknown") };
        let Some((_, after_scheme)) = name.split_once("://") else { return Cow::Borrowed(name) };
        let path = after_scheme.find('/').map_or("/", |at| &after_scheme[at..]);
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let parts: Vec<&str> = path.split('/').map(|part| if is_identifier(part) { "{id}" } else { part }).collect();
        Cow::Owned(format!("{} {}", self.method.as_deref().unwrap_or("GET"), parts.join("/")))
    }

    /// What went wrong, as far as the tags say.
    pub(super) fn failure(&self) -> Failure {
        let status = self.status.as_deref().and_then(|status| status.parse().ok()).filter(|status| *status != 0);
        let answerer = match (self.answerer.as_deref(), status) {
            (Some("task"), _) => Answerer::Task,
            (Some("balancer"), _) => Answerer::Balancer,
            (Some("nobody"), _) | (None, None) => Answerer::Nobody,
            _ => Answerer::Unknown,
        };
        let code = match (&self.code, status) {
            (Some(code), _) => code.clone(),
            (None, Some(_)) => "unknown".to_owned(),
            (None, None) => error_code(self.error_code.as_deref()).to_owned(),
        };
        Failure { status, code, answerer }
    }
}

/// Digits, or eight and more hexadecimal digits and hyphens.
fn is_identifier(part: &str) -> bool {
    let hexadecimal = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    !part.is_empty() && (digits == part.len() || (part.len() >= 8 && digits > 0 && part.bytes().all(hexadecimal)))
}

/// k6's error codes where no answer came ("Error codes" in k6's documentation).
fn error_code(code: Option<&str>) -> &'static str {
    match code.and_then(|code| code.parse::<u16>().ok()) {
        Some(1050) => "timeout",
        // Names, dialling, TLS.
        Some(1100..=1199 | 1210..=1219 | 1300..=1399) => "connect",
        Some(1200..=1209 | 1220..=1229) => "reset",
        // HTTP/2 and content encodings.
        Some(1600..=1799) => "protocol",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let mut tags = Tags::default();
        for (name, value) in pairs {
            tags.set(name, value);
        }
        tags
    }

    #[test]
    fn endpoints_have_names_of_bounded_number() {
        let url = "http://127.0.0.1:8080/v1/actors/01a22e04-d7aa-7581-87a3-9024b2bd9563?x=1";
        assert_eq!(tags(&[("endpoint", "login"), ("name", "x")]).endpoint(), "login");
        assert_eq!(tags(&[("name", "get-user"), ("url", url)]).endpoint(), "get-user");
        assert_eq!(tags(&[("name", url), ("method", "PATCH")]).endpoint(), "PATCH /v1/actors/{id}");
        assert_eq!(tags(&[("url", "https://host/a/17/b")]).endpoint(), "GET /a/{id}/b");
        assert_eq!(tags(&[("url", "https://host")]).endpoint(), "GET /");
        assert_eq!(tags(&[("url", "https://host/documents/deadbeef")]).endpoint(), "GET /documents/deadbeef");
        assert_eq!(tags(&[]).endpoint(), "unknown");
    }

    #[test]
    fn failures_say_what_the_tags_do() {
        let refused = tags(&[("status", "0"), ("error_code", "1212")]).failure();
        assert_eq!((refused.status, refused.code.as_str(), refused.answerer), (None, "connect", Answerer::Nobody));
        let foreign = tags(&[("status", "502"), ("error_code", "1502")]).failure();
        assert_eq!(
            (foreign.status, foreign.code.as_str(), foreign.answerer),
            (Some(502), "unknown", Answerer::Unknown)
        );
        let own = tags(&[("status", "503"), ("code", "hashing_busy"), ("answerer", "task")]).failure();
        assert_eq!((own.status, own.code.as_str(), own.answerer), (Some(503), "hashing_busy", Answerer::Task));
        assert_eq!(tags(&[("status", "0"), ("error_code", "1050")]).failure().code, "timeout");
        assert_eq!(tags(&[("status", "0"), ("error_code", "1220")]).failure().code, "reset");
        assert_eq!(tags(&[("status", "0")]).failure().code, "unknown");
    }
}
