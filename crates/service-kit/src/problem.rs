//! The one error shape: RFC 9457 `application/problem+json`.
//!
//! A [`Problem`] is what a client may know. Whatever caused it is attached as a source, logged once by the request
//! middleware, and never sent.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::context;

/// An error answer. Every constructor takes a stable `snake_case` code for programs and a sentence for people.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    headers: Vec<(HeaderName, HeaderValue)>,
    source: Option<Arc<anyhow::Error>>,
}

/// One field of a request that is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the member, or `/name` of the query parameter, header or part.
    #[schema(value_type = String, example = "/email")]
    pub pointer: Cow<'static, str>,
    /// Stable, `snake_case`.
    #[schema(value_type = String, example = "missing")]
    pub code: &'static str,
    /// For people.
    #[schema(value_type = String)]
    pub detail: Cow<'static, str>,
}

impl FieldError {
    /// An error about the field that `pointer` names.
    pub fn new(
        pointer: impl Into<Cow<'static, str>>,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { pointer: pointer.into(), code, detail: detail.into() }
    }
}

/// The body of every error answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// `urn:datum:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:datum:problem:email_taken")]
    pub kind: String,
    /// The status's reason phrase.
    #[schema(value_type = String)]
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Stable, `snake_case`.
    #[schema(value_type = String, example = "email_taken")]
    pub code: &'static str,
    /// For people.
    #[schema(value_type = String)]
    pub detail: Cow<'static, str>,
    /// The `x-request-id` of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// All failing fields at once; absent where no single field is to blame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// What the middleware logs about an error answer; travels as a response extension.
#[derive(Clone)]
pub(crate) struct Cause {
    pub(crate) code: &'static str,
    pub(crate) source: Option<Arc<anyhow::Error>>,
}

impl Problem {
    /// Any status.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, detail: detail.into(), errors: Vec::new(), headers: Vec::new(), source: None }
    }

    /// 400: the syntax is broken (JSON, multipart, query, path).
    pub fn bad_request(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 401 with the challenge that RFC 9110 §11.6.1 demands. `with_header` replaces the challenge.
    pub fn unauthorized(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, detail)
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static(r#"Bearer realm="datum""#))
    }

    /// 403.
    pub fn forbidden(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    /// 404: it does not exist, or is somebody else's.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "There is nothing here.")
    }

    /// 405; axum adds `Allow`.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This path does not know the method.")
    }

    /// 409.
    pub fn conflict(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// 413.
    #[must_use]
    pub fn too_large(limit_bytes: u64) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("The body may have at most {limit_bytes} bytes."),
        )
    }

    /// 415.
    pub fn unsupported_media_type(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    }

    /// 422: well-formed but not acceptable, each failing field named.
    #[must_use]
    pub fn unprocessable(errors: Vec<FieldError>) -> Self {
        let mut problem =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", "The request is well-formed but not valid.");
        problem.errors = errors;
        problem
    }

    /// 429 with `Retry-After`.
    pub fn too_many_requests(code: &'static str, detail: impl Into<Cow<'static, str>>, retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail).with_retry_after(retry_after)
    }

    /// 503 with `Retry-After`: something that this task depends on is down or busy.
    pub fn unavailable(code: &'static str, detail: impl Into<Cow<'static, str>>, retry_after: Duration) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).with_retry_after(retry_after)
    }

    /// 500: a defect of ours. Never for what a client or a failing dependency can cause.
    pub fn internal(source: impl Into<anyhow::Error>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something went wrong here; the request id helps to find it.",
        )
        .with_source(source)
    }

    /// Sets a header of the answer, replacing an earlier value.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.retain(|(existing, _)| *existing != name);
        self.headers.push((name, value));
        self
    }

    /// Adds what caused it: logged once, never sent.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<anyhow::Error>) -> Self {
        self.source = Some(Arc::new(source.into()));
        self
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Whole seconds, rounded up, at least one: a client that waits as told must not come too early (RFC 9110 §10.2.3).
    fn with_retry_after(self, after: Duration) -> Self {
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.with_header(RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            kind: format!("urn:datum:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            code: self.code,
            detail: self.detail,
            request_id: context::request_id(),
            errors: self.errors,
        };
        // A struct of strings and numbers always serialises.
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status, json).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response.extensions_mut().insert(Cause { code: self.code, source: self.source });
        response
    }
}

/// What a router answers for a path that it does not know.
pub async fn unknown_route() -> Problem {
    Problem::not_found()
}

/// What a router answers for a known path with another method.
pub async fn wrong_method() -> Problem {
    Problem::method_not_allowed()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn json(response: Response) -> serde_json::Value {
        let bytes = response.into_body().collect().await.expect("body").to_bytes();
        serde_json::from_slice(&bytes).expect("json")
    }

    #[tokio::test]
    async fn a_problem_has_the_shape_of_rfc_9457_and_hides_its_source() {
        let problem = Problem::unavailable("database_unavailable", "No database.", Duration::from_millis(1_200))
            .with_source(anyhow::anyhow!("connect to 10.0.0.7 failed"));
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        let body = json(response).await;
        assert_eq!(
            body,
            serde_json::json!({
                "type": "urn:datum:problem:database_unavailable", "title": "Service Unavailable", "status": 503,
                "code": "database_unavailable", "detail": "No database.",
            })
        );
    }

    #[tokio::test]
    async fn failing_fields_are_named() {
        let body = json(
            Problem::unprocessable(vec![FieldError::new("/email", "missing", "This member is required.")])
                .into_response(),
        )
        .await;
        assert_eq!(body["errors"][0]["pointer"], "/email");
        assert_eq!(body["errors"][0]["code"], "missing");
    }

    #[test]
    fn a_401_carries_a_challenge_and_it_can_be_replaced() {
        let problem = Problem::unauthorized("token_missing", "x")
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer error=\"invalid_token\""));
        let response = problem.into_response();
        let challenges: Vec<_> = response.headers().get_all(WWW_AUTHENTICATE).iter().collect();
        assert_eq!(challenges, ["Bearer error=\"invalid_token\""]);
    }
}
