//! What the balancer answers itself: problem+json in the shape that the tasks use, told apart by `server`.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, SERVER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use service_kit::clock::{Clock, SystemClock};
use service_kit::problem::ProblemBody;

use super::identity::REQUEST_ID;

/// Marks the balancer's own answers, so that clients can tell its errors from a task's.
pub(super) const SERVER_NAME: HeaderValue = HeaderValue::from_static("datum-balancer");

/// How long a client should wait before it asks again where no target could be asked.
const RETRY_AFTER_SECONDS: u16 = 1;

/// Why the balancer answers instead of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    status: u16,
    title: &'static str,
    code: &'static str,
    detail: Cow<'static, str>,
    advice: Option<Advice>,
    close: bool,
}

/// What a refusal says in a header of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advice {
    Allow(&'static str),
    RetryAfter,
}

impl Advice {
    fn header(self) -> (HeaderName, HeaderValue) {
        match self {
            Self::Allow(methods) => (ALLOW, HeaderValue::from_static(methods)),
            Self::RetryAfter => (RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS)),
        }
    }
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error"),
            code,
            detail: detail.into(),
            advice: None,
            close: false,
        }
    }

    fn advising(mut self, advice: Advice) -> Self {
        self.advice = Some(advice);
        self
    }

    /// The connection ends with this answer.
    fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    /// 404: no rule matches.
    pub(super) fn no_rule() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "There is nothing here.")
    }

    /// 405: a path of the balancer's own, or a method that an ALB refuses.
    pub(super) fn method(allow: &'static str) -> Self {
        let refusal =
            Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This path does not know the method.");
        refusal.advising(Advice::Allow(allow))
    }

    /// 400: not HTTP/1.1, or not to be forwarded without guessing what it means.
    pub(super) fn malformed(detail: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed_request", detail).closing()
    }

    /// 400: the body broke off or is not framed as announced.
    pub(super) fn incomplete_body() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "incomplete_body", "The body of the request is incomplete.").closing()
    }

    /// 408: the client fell silent in the middle of its request.
    pub(super) fn client_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "The request did not arrive in time.").closing()
    }

    /// 414.
    pub(super) fn uri_too_long() -> Self {
        Self::new(StatusCode::URI_TOO_LONG, "uri_too_long", "The request target is too long.").closing()
    }

    /// 431.
    pub(super) fn head_too_large() -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self::new(status, "headers_too_large", "The request's header fields are too large.").closing()
    }

    /// 463, a status of the ALB's own: `X-Forwarded-For` names more than 30 addresses.
    pub(super) fn too_many_addresses() -> Self {
        Self {
            status: 463,
            title: "Too Many Forwarded Addresses",
            code: "too_many_forwarded_addresses",
            detail: "X-Forwarded-For holds more than 30 addresses.".into(),
            advice: None,
            close: true,
        }
    }

    /// 501: a transfer coding other than `chunked`.
    pub(super) fn transfer_encoding() -> Self {
        let detail = "The only transfer coding supported is chunked.";
        Self::new(StatusCode::NOT_IMPLEMENTED, "unsupported_transfer_encoding", detail).closing()
    }

    /// 501: WebSocket.
    pub(super) fn upgrade() -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "unsupported_upgrade", "Protocol upgrades are not supported.")
    }

    /// 505.
    pub(super) fn version() -> Self {
        let detail = "The versions supported are HTTP/1.0 and HTTP/1.1.";
        Self::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "unsupported_version", detail).closing()
    }

    /// 502: the target broke the connection, or sent what is not HTTP.
    pub(super) fn bad_gateway(detail: &'static str) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "bad_gateway", detail)
    }

    /// 504: the target accepts no connection in time, or is silent.
    pub(super) fn gateway_timeout(detail: &'static str) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "gateway_timeout", detail)
    }

    /// 503: nobody to ask.
    pub(super) fn no_targets() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no_targets", "The target group has no registered targets.")
            .advising(Advice::RetryAfter)
    }

    /// 503: out of sockets or connections on this side.
    pub(super) fn exhausted(detail: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "balancer_exhausted", detail).advising(Advice::RetryAfter).closing()
    }

    fn json(&self, request_id: &HeaderValue) -> Bytes {
        let body = ProblemBody {
            kind: format!("urn:datum:problem:{}", self.code),
            title: self.title,
            status: self.status,
            code: self.code,
            detail: self.detail.clone(),
            request_id: request_id.to_str().ok().map(str::to_owned),
            errors: Vec::new(),
        };
        // A struct of strings and numbers always serialises.
        serde_json::to_vec(&body).unwrap_or_default().into()
    }

    /// The answer to a request that hyper has parsed.
    pub(super) fn into_response(self, request_id: &HeaderValue) -> Response<Bytes> {
        let mut response = own(request_id, "application/problem+json", self.json(request_id));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(advice) = self.advice {
            let (name, value) = advice.header();
            headers.insert(name, value);
        }
        response
    }

    /// The same on the wire, for what hyper has not parsed. It ends the connection.
    pub(super) fn to_wire(&self, request_id: &HeaderValue) -> Vec<u8> {
        let json = self.json(request_id);
        let head = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\nserver: {}\r\n\
             x-request-id: {}\r\ndate: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.status,
            self.title,
            SERVER_NAME.to_str().unwrap_or_default(),
            request_id.to_str().unwrap_or_default(),
            httpdate::fmt_http_date(SystemClock.now().into()),
            json.len(),
        );
        [head.as_bytes(), &json].concat()
    }
}

/// `GET /live` and `HEAD /live`: the balancer itself, whatever its targets do.
pub(super) fn alive(request_id: &HeaderValue) -> Response<Bytes> {
    own(request_id, "application/json", Bytes::from_static(br#"{"status":"alive"}"#))
}

fn own(request_id: &HeaderValue, content_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(SERVER, SERVER_NAME);
    headers.insert(REQUEST_ID, request_id.clone());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_refusal_say_the_same() {
        let id = HeaderValue::from_static("abc");
        let refusal = Refusal::head_too_large();
        let response = refusal.clone().into_response(&id);
        let wire = String::from_utf8(refusal.to_wire(&id)).expect("text");
        let (head, body) = wire.split_once("\r\n\r\n").expect("a head and a body");
        assert_eq!(body.as_bytes(), response.body());
        assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{head}");
        for (name, value) in response.headers() {
            let line = format!("\r\n{name}: {}\r\n", value.to_str().expect("text"));
            assert!(head.contains(&line), "{line} is missing in {head}");
        }
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        let json: serde_json::Value = serde_json::from_str(body).expect("json");
        assert_eq!(json["request_id"], "abc");
        assert_eq!(json["code"], "headers_too_large");
    }

    #[test]
    fn no_targets_says_when_to_come_back() {
        let response = Refusal::no_targets().into_response(&HeaderValue::from_static("abc"));
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        assert!(!response.headers().contains_key(CONNECTION));
    }

    #[test]
    fn a_status_that_no_standard_knows_has_a_title_too() {
        let wire = Refusal::too_many_addresses().to_wire(&HeaderValue::from_static("abc"));
        assert!(wire.starts_with(b"HTTP/1.1 463 Too Many Forwarded Addresses\r\n"));
    }
}
