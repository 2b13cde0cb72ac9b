//! What a caller got back, and the promises that every reply of every service keeps.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Stage names that `Server-Timing` may carry.
const STAGES: [&str; 9] = ["admission", "pool", "db", "hash", "idp", "s3", "verify", "app", "total"];

/// Pieces of the inside of a service that no client may ever see: SQL, hashes, source files, panics, addresses of dependencies.
const FORBIDDEN: [&str; 18] = [
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "DELETE FROM",
    "_sqlx_migrations",
    "SQLSTATE",
    "$argon2",
    "/src/",
    ".rs:",
    ".cargo",
    "panicked",
    "RUST_BACKTRACE",
    "tokio_postgres",
    "postgres://",
    "postgresql://",
    "password authentication",
    "PRIVATE KEY",
    "eyJ",
];

/// One complete reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its whole body.
    pub body: Bytes,
}

impl Reply {
    /// Reads a reply to its end.
    pub(crate) async fn receive(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.expect("the reply's body arrives whole");
        Self { status, headers, body }
    }

    /// Parses what came over a bare connection; a chunked body stays as it was framed.
    ///
    /// # Panics
    /// When `bytes` do not start with the head of an HTTP/1.1 response.
    #[must_use]
    #[track_caller]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end else { panic!("no response head in {:?}", String::from_utf8_lossy(bytes)) };
        let head = std::str::from_utf8(&bytes[..end]).expect("a response head is ASCII");
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse::<u16>().ok())
            .and_then(|code| StatusCode::from_u16(code).ok());
        let Some(status) = status else { panic!("no status line in {head:?}") };
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').expect("a header line has a colon");
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            (name, HeaderValue::from_str(value.trim()).expect("a header value"))
        });
        Self { status, headers: headers.collect(), body: Bytes::copy_from_slice(&bytes[end + 4..]) }
    }

    /// The first value of a header, if it is there.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("header values are ASCII"))
    }

    /// Milliseconds by stage, from `Server-Timing`.
    ///
    /// # Panics
    /// When the header is not there or says something else.
    #[must_use]
    #[track_caller]
    pub fn stages(&self) -> BTreeMap<String, f64> {
        let header = self.header("server-timing").expect("a Server-Timing");
        let parse = |entry: &str| {
            let (name, duration) = entry.split_once(";dur=").expect("name;dur=milliseconds");
            (name.to_owned(), duration.parse().expect("a number"))
        };
        header.split(", ").map(parse).collect()
    }

    /// The body as text.
    #[must_use]
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    /// The body as JSON, whatever the status.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        self.json_as()
    }

    /// The body as JSON of a known shape.
    #[must_use]
    #[track_caller]
    pub fn json_as<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => {
                panic!("{} with a body that is not the expected JSON ({error}): {}", self.status, self.shown())
            }
        }
    }

    /// Asserts the status and gives the reply back, so that a line can go on with its body.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status.as_u16(), status, "body: {}", self.shown());
        self
    }

    /// Status and code of a problem, unchecked otherwise: for tests that allow more than one outcome.
    #[must_use]
    #[track_caller]
    pub fn problem(&self) -> (StatusCode, String) {
        let code = self.json()["code"].as_str().map(str::to_owned);
        (self.status, code.unwrap_or_else(|| panic!("{} without a problem code: {}", self.status, self.shown())))
    }

    /// Asserts that this is a problem of `status` and `code` as RFC 9457 and this project's contract have it: media type, every
    /// member, the request id of the header, the headers that its status demands, and nothing of the inside. Gives the body.
    #[track_caller]
    pub fn assert_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "expected the problem `{code}`; body: {}", self.shown());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "body: {}", self.shown());
        for fragment in FORBIDDEN {
            assert!(!self.text().contains(fragment), "`{fragment}` in a problem: {}", self.shown());
        }
        let body = self.json();
        let members = body.as_object().expect("a problem is an object");
        for name in ["type", "title", "status", "code", "detail", "request_id"] {
            assert!(members.contains_key(name), "no `{name}` in {body}");
        }
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(body["type"], format!("urn:datum:problem:{code}"), "{body}");
        assert!(body["title"].as_str().is_some_and(|title| !title.is_empty()), "{body}");
        assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{body}");
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"), "{body}");
        for name in members.keys() {
            match name.as_str() {
                "type" | "title" | "status" | "code" | "detail" | "request_id" => {}
                "errors" => assert_field_errors(&body["errors"]),
                other => panic!("unknown member `{other}` in {body}"),
            }
        }
        match self.status {
            StatusCode::UNAUTHORIZED => {
                let challenge = self.header(header::WWW_AUTHENTICATE.as_str());
                assert!(challenge.is_some_and(|value| value.starts_with("Bearer")), "{challenge:?}");
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                assert!(self.header("allow").is_some_and(|methods| !methods.is_empty()), "405 without Allow");
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let seconds = self.header("retry-after").and_then(|value| value.parse::<u64>().ok());
                assert!(seconds.is_some_and(|seconds| seconds >= 1), "{status} without a usable Retry-After");
            }
            _ => {}
        }
        body
    }

    /// Asserts a 422 `invalid_request` that names exactly these fields, each as (JSON pointer, code), in any order.
    #[track_caller]
    pub fn assert_invalid(&self, expected: &[(&str, &str)]) {
        let body = self.assert_problem(422, "invalid_request");
        let errors = body["errors"].as_array().cloned().unwrap_or_default();
        let mut found: Vec<_> = errors.iter().map(|e| (e["pointer"].as_str(), e["code"].as_str())).collect();
        let mut expected: Vec<_> = expected.iter().map(|(pointer, code)| (Some(*pointer), Some(*code))).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{body}");
    }

    /// Whether the balancer gave this answer, rather than a task behind it.
    #[must_use]
    pub fn is_balancers_own(&self) -> bool {
        self.header("server") == Some("datum-balancer")
    }

    /// Asserts a 405 whose `Allow` names exactly these methods, in any order.
    #[track_caller]
    pub fn assert_method_not_allowed(&self, allowed: &[&str]) {
        self.assert_problem(405, "method_not_allowed");
        let mut named: Vec<_> =
            self.header("allow").into_iter().flat_map(|list| list.split(',').map(str::trim)).collect();
        let mut allowed = allowed.to_vec();
        named.sort_unstable();
        allowed.sort_unstable();
        assert_eq!(named, allowed, "Allow");
    }

    /// Asserts what every reply carries: a well-formed `x-request-id`, and from a task a `Server-Timing` of known stages with
    /// a `total`. The balancer has no stages.
    #[track_caller]
    pub(crate) fn assert_traceable(&self) {
        let id = self.header("x-request-id");
        assert!(id.is_some_and(|id| !id.is_empty() && id.len() <= 128), "{}: x-request-id is {id:?}", self.status);
        if self.is_balancers_own() {
            return;
        }
        let timing = self.header("server-timing");
        let Some(timing) = timing else { panic!("{} without Server-Timing", self.status) };
        let names: Vec<_> = timing.split(',').map(|metric| stage_name(metric, timing)).collect();
        assert!(names.contains(&"total"), "no `total` in {timing}");
    }

    /// The start of the body for a failure message.
    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(2_000)]).into_owned()
    }
}

/// The name of one `Server-Timing` metric whose duration is a sane number of milliseconds.
#[track_caller]
fn stage_name<'h>(metric: &'h str, header: &str) -> &'h str {
    let (name, duration) = metric.trim().split_once(";dur=").unwrap_or_else(|| panic!("no duration in {header}"));
    assert!(STAGES.contains(&name), "unknown stage `{name}` in {header}");
    let duration: f64 = duration.parse().unwrap_or_else(|_| panic!("`{duration}` is no duration in {header}"));
    assert!(duration >= 0.0 && duration.is_finite(), "{header}");
    name
}

#[track_caller]
fn assert_field_errors(errors: &Value) {
    let list = errors.as_array().expect("`errors` is a list");
    assert!(!list.is_empty(), "`errors` is left out when there are none");
    for error in list {
        let text = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {error}")).to_owned();
        assert!(text("pointer").is_empty() || text("pointer").starts_with('/'), "{error}");
        assert!(text("code").bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{error}");
        assert!(!text("detail").is_empty(), "{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 404 Not Found\r\ncontent-type: application/problem+json\r\nx-request-id: r1\r\nserver-timing: db;dur=0.1, total;dur=2\r\n\r\n";

    fn reply(detail: &str) -> Reply {
        let body = serde_json::json!({
            "type": "urn:datum:problem:not_found", "title": "Not Found", "status": 404, "code": "not_found",
            "detail": detail, "request_id": "r1",
        });
        Reply::from_bytes(format!("{HEAD}{body}").as_bytes())
    }

    #[test]
    fn a_proper_problem_passes() {
        let reply = reply("There is nothing here.");
        reply.assert_problem(404, "not_found");
        reply.assert_traceable();
        assert_eq!(reply.problem(), (StatusCode::NOT_FOUND, "not_found".to_owned()));
    }

    #[test]
    #[should_panic(expected = "in a problem")]
    fn sql_in_a_problem_is_noticed() {
        reply("relation missing in SELECT id FROM actors").assert_problem(404, "not_found");
    }

    #[test]
    #[should_panic(expected = "expected the problem")]
    fn another_status_is_noticed() {
        reply("There is nothing here.").assert_problem(403, "not_found");
    }

    #[test]
    #[should_panic(expected = "request_id")]
    fn a_request_id_that_differs_from_the_header_is_noticed() {
        let mut reply = reply("There is nothing here.");
        reply.headers.insert("x-request-id", HeaderValue::from_static("r2"));
        reply.assert_problem(404, "not_found");
    }

    #[test]
    #[should_panic(expected = "unknown stage")]
    fn an_unknown_stage_is_noticed() {
        let mut reply = reply("There is nothing here.");
        reply.headers.insert("server-timing", HeaderValue::from_static("lunch;dur=1, total;dur=2"));
        reply.assert_traceable();
    }

    #[test]
    #[should_panic(expected = "Retry-After")]
    fn a_503_without_retry_after_is_noticed() {
        let body = serde_json::json!({
            "type": "urn:datum:problem:busy", "title": "Busy", "status": 503, "code": "busy",
            "detail": "Later.", "request_id": "r1",
        });
        let head = HEAD.replace("404 Not Found", "503 Service Unavailable");
        Reply::from_bytes(format!("{head}{body}").as_bytes()).assert_problem(503, "busy");
    }
}
