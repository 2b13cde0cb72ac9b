//! JSON 1.1 as AWS speaks it: the call's name in a header, errors by `__type` and `x-amzn-errortype`.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use super::operation::Operation;

/// Names the call.
const TARGET: &str = "x-amz-target";
/// What comes before its name.
const SERVICE: &str = "AWSCognitoIdentityProviderService.";
const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.1");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");
const ERROR_MESSAGE: HeaderName = HeaderName::from_static("x-amzn-errormessage");
/// The one error that is the service's own fault, and the only one that is not answered 400.
pub(super) const INTERNAL_ERROR: &str = "InternalErrorException";

/// An error as a caller of the SDK sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CognitoError {
    /// Such as `NotAuthorizedException`.
    pub kind: Cow<'static, str>,
    /// What AWS says with it.
    pub message: Cow<'static, str>,
}

impl CognitoError {
    /// An error of a kind, with its words.
    pub fn new(kind: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: kind.into(), message: message.into() }
    }

    pub(super) fn not_authorized(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new("NotAuthorizedException", message)
    }

    pub(super) fn invalid_parameter(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new("InvalidParameterException", message)
    }

    pub(super) fn throttled() -> Self {
        Self::new("TooManyRequestsException", "Rate exceeded")
    }

    /// The words of the service's validation, before anything is looked at.
    pub(super) fn constraint(member: &str, constraint: &str) -> Self {
        Self::invalid_parameter(format!(
            "1 validation error detected: Value at '{member}' failed to satisfy constraint: Member must {constraint}"
        ))
    }

    /// Almost everything is 400, throttling too.
    fn status(&self) -> StatusCode {
        if self.kind == INTERNAL_ERROR { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::BAD_REQUEST }
    }
}

impl IntoResponse for CognitoError {
    fn into_response(self) -> Response {
        let body = json!({"__type": self.kind, "message": self.message}).to_string();
        let mut response = answer(self.status(), body.into());
        let headers = response.headers_mut();
        // With a colon at the end, as Cognito writes it.
        if let Ok(kind) = HeaderValue::from_str(&format!("{}:", self.kind)) {
            headers.insert(ERROR_TYPE, kind);
        }
        if let Ok(message) = HeaderValue::from_str(&self.message) {
            headers.insert(ERROR_MESSAGE, message);
        }
        response
    }
}

/// What a call answers when it succeeds.
pub(super) type Outcome = Result<Value, CognitoError>;

/// A success.
pub(super) fn success(value: &Value) -> Response {
    answer(StatusCode::OK, value.to_string().into())
}

fn answer(status: StatusCode, body: Bytes) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    if let Ok(id) = HeaderValue::from_str(&Uuid::new_v4().to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

/// Which call a request is.
pub(super) fn operation(headers: &HeaderMap) -> Result<Operation, CognitoError> {
    let target = headers.get(TARGET).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = target.strip_prefix(SERVICE).unwrap_or_default();
    let operation: Operation =
        name.parse().map_err(|_| CognitoError::new("UnknownOperationException", "Unknown operation"))?;
    let is_signed = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 "));
    if operation.is_signed() && !is_signed {
        return Err(CognitoError::new("MissingAuthenticationTokenException", "Missing Authentication Token"));
    }
    Ok(operation)
}

/// The input of a call.
pub(super) fn input<T: DeserializeOwned>(body: &[u8]) -> Result<T, CognitoError> {
    serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            CognitoError::invalid_parameter(format!("1 validation error detected: {error}"))
        } else {
            CognitoError::new("SerializationException", "Unable to parse the request body")
        }
    })
}
