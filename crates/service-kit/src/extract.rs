//! Extractors whose refusals are problem+json, each with the status that fits its cause.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::fields::{Fields, FromFields};
use crate::middleware::BodyIdle;
use crate::problem::Problem;

/// The largest JSON body that is read.
pub const JSON_MAX_BYTES: usize = 16 * 1024;

/// A JSON body must be whole within this time.
const JSON_DEADLINE: Duration = Duration::from_secs(10);

/// A JSON object as request body.
///
/// Refuses with 415 (no JSON content type), 413 (over [`JSON_MAX_BYTES`]), 408 (not whole within 10 s), 400 (syntax),
/// and 422 (unknown, duplicate, missing or invalid fields, all at once).
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: FromFields> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        require_json(request.headers())?;
        let bytes = read_json_body(request).await?;
        Ok(Self(Fields::from_json(&bytes)?.read_all()?))
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let refusal = || Problem::unsupported_media_type("The body must be application/json in UTF-8.");
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    // Of two, whoever stands between the client and this task may have read the other one.
    let (Some(value), None) = (values.next(), values.next()) else { return Err(refusal()) };
    let value = value.to_str().map_err(|_| refusal())?;
    let media: mime::Mime = value.parse().map_err(|_| refusal())?;
    let is_utf8 = media.get_param(mime::CHARSET).is_none_or(|charset| charset == mime::UTF_8);
    if media.essence_str() == mime::APPLICATION_JSON.essence_str() && is_utf8 { Ok(()) } else { Err(refusal()) }
}

async fn read_json_body(request: Request) -> Result<Bytes, Problem> {
    let too_large = || Problem::too_large(JSON_MAX_BYTES as u64);
    if content_length(request.headers()).is_some_and(|length| length > JSON_MAX_BYTES as u64) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), JSON_MAX_BYTES);
    match tokio::time::timeout(JSON_DEADLINE, body.collect()).await {
        Err(_elapsed) => Err(slow_body()),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(broken_body(&*error)),
    }
}

/// The announced length of the body in bytes, if there is one.
#[must_use]
pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The problem for a body whose reading failed: 408 where the client was silent, 400 where the body ended early or its
/// framing is broken.
#[must_use]
pub fn broken_body(error: &(dyn std::error::Error + 'static)) -> Problem {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if current.is::<BodyIdle>() {
            return slow_body();
        }
        cause = current.source();
    }
    Problem::bad_request("body_incomplete", "The body ended early or its framing is broken.")
}

/// 408: the body did not come in time.
#[must_use]
pub fn slow_body() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "The body did not arrive in time.")
}

/// The query string. 400 where its encoding is broken, 422 with every failing parameter; unknown ones are let be.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: FromFields> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = parse_query(parts.uri.query().unwrap_or_default())
            .ok_or_else(|| Problem::bad_request("malformed_query", "The query string is not percent-encoded UTF-8."))?;
        Ok(Self(Fields::from_pairs(pairs).read_known()?))
    }
}

fn parse_query(query: &str) -> Option<Vec<(String, String)>> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Strict form decoding: `form_urlencoded` would replace what it cannot decode, and something else than was sent would
/// be looked up.
fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let well_formed = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'%')
        .all(|(at, _)| bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)));
    if !well_formed {
        return None;
    }
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Path parameters; 400 where they do not parse.
#[derive(Debug)]
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let axum::extract::Path(value) = axum::extract::Path::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::bad_request("invalid_path", "A part of the path is malformed."))?;
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_decode_strictly() {
        let pairs = |query| parse_query(query).expect("valid");
        assert_eq!(pairs("limit=5&name=a+b%20c"), [("limit".into(), "5".into()), ("name".into(), "a b c".into())]);
        assert_eq!(pairs("a&b="), [("a".into(), String::new()), ("b".into(), String::new())]);
        assert_eq!(pairs("name=%00"), [("name".into(), "\0".into())]);
        for broken in ["a=%", "a=%2", "a=%zz", "a=%ff", "%e2%82=1"] {
            assert_eq!(parse_query(broken), None, "{broken}");
        }
    }

    #[test]
    fn only_json_in_utf8_is_json() {
        let check = |value: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(value));
            }
            require_json(&headers).map_err(|problem| problem.status().as_u16())
        };
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
        ] {
            assert_eq!(check(Some(good)), Ok(()), "{good}");
        }
        for bad in ["text/plain", "application/json; charset=utf-16", "application/x-www-form-urlencoded", "json", ""] {
            assert_eq!(check(Some(bad)), Err(415), "{bad}");
        }
        assert_eq!(check(None), Err(415));
    }

    #[test]
    fn two_content_types_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        assert!(require_json(&headers).is_ok());
        headers.append(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        assert_eq!(require_json(&headers).unwrap_err().status(), 415);
    }
}
