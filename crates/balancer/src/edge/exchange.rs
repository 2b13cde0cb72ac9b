//! One request: what it is, who answers it, and the answer.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HOST, SERVER, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use tower::ServiceExt;

use super::answer::{self, Refusal, SERVER_NAME};
use super::body::{AnswerBody, RequestBody};
use super::forward::Forwarded;
use super::headers;
use super::identity::REQUEST_ID;
use super::listener::Edge;
use super::meters;
use super::refusal::{TARGET_MAX_BYTES, announces_length};
use super::session::Session;
use crate::targets::Group;

/// Who answers a request.
enum Answerer<'e> {
    Live,
    Pages(&'e axum::Router),
    Group(&'e Arc<Group>),
}

/// Counts the client as gone when the exchange is dropped before it has an answer.
struct Unanswered<'e>(&'e Edge);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.0.meters.client_gone();
    }
}

/// Answers one request.
pub(super) async fn serve(
    edge: Arc<Edge>,
    session: Arc<Session>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    session.begin();
    let unanswered = Unanswered(&edge);
    let (mut parts, incoming) = request.into_parts();
    let request_id = edge.ids.ensure(&mut parts.headers);
    let body = RequestBody::new(incoming, &session);
    hold_until_wanted(&mut parts, &body);

    let mut response = match admit(&mut parts, &session).and_then(|()| choose(&edge, &parts)) {
        Ok(Answerer::Group(group)) => {
            let forwarded = Forwarded { edge: &edge, session: &session, group, request_id: &request_id };
            forwarded.answer(parts, body).await
        }
        Ok(Answerer::Pages(pages)) => {
            if let Some(state) = body.state() {
                // Whoever answers here asks for the body by reading it.
                state.release();
            }
            let request = Request::from_parts(parts, axum::body::Body::new(body));
            let Ok(mut response) = pages.clone().oneshot(request).await;
            meters::answered(response.status().as_u16());
            // A router says no without a word; here every error has one shape.
            match response.status() {
                StatusCode::NOT_FOUND => own(Refusal::no_rule(), &request_id, &session),
                StatusCode::METHOD_NOT_ALLOWED => own(Refusal::method("GET, HEAD"), &request_id, &session),
                _ => {
                    response.headers_mut().insert(SERVER, SERVER_NAME);
                    response.map(|body| AnswerBody::pages(body, &session))
                }
            }
        }
        Ok(Answerer::Live) => {
            body.skip();
            meters::answered(200);
            answer::alive(&request_id).map(|body| AnswerBody::own(body, &session))
        }
        Err(refusal) => {
            body.skip();
            meters::answered(refusal.status());
            own(refusal, &request_id, &session)
        }
    };
    std::mem::forget(unanswered);
    let headers = response.headers_mut();
    if !headers.contains_key(REQUEST_ID) {
        headers.insert(REQUEST_ID, request_id);
    }
    if session.is_unread() {
        // The rest of the body stands between this answer and the next request: the connection ends, and says so.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    session.respond();
    Ok(response)
}

/// An answer of the balancer's own.
pub(super) fn own(refusal: Refusal, request_id: &HeaderValue, session: &Arc<Session>) -> Response<AnswerBody> {
    let body = |body: Bytes| AnswerBody::own(body, session);
    refusal.into_response(request_id).map(body)
}

/// With `Expect: 100-continue` the body is not asked for until the target wants it: whoever refuses the request by its
/// head alone does so before the client sends anything (RFC 9110 §10.1.1).
fn hold_until_wanted(parts: &mut Parts, body: &RequestBody) {
    let Some(expectation) = parts.headers.get_all(EXPECT).iter().next_back() else { return };
    if !expectation.as_bytes().eq_ignore_ascii_case(b"100-continue") {
        return;
    }
    match body.state() {
        // hyper waits with its own "100 Continue" until the body is read, for HTTP/1.1 only.
        Some(state) if parts.version == Version::HTTP_11 => state.hold(),
        _ => {
            parts.headers.remove(EXPECT);
        }
    }
}

/// Refuses what must not be forwarded, and gives the rest its one form: an origin-form target and one `Host`.
fn admit(parts: &mut Parts, session: &Session) -> Result<(), Refusal> {
    if session.is_over_capacity() {
        return Err(Refusal::exhausted("The balancer has as many connections as it may."));
    }
    if matches!(parts.method, Method::CONNECT | Method::TRACE) {
        return Err(Refusal::method("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    }
    check_framing(parts, session)?;
    check_target(parts)?;
    if headers::wants_websocket(&parts.headers) {
        return Err(Refusal::upgrade());
    }
    Ok(())
}

fn check_framing(parts: &Parts, session: &Session) -> Result<(), Refusal> {
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            // RFC 9112 §6.1: such a request may be an attempt at smuggling. hyper drops the length and ends the connection
            // after it; this refuses it, and hyper's way remains for the requests that a client pipelined.
            if session.with_head(announces_length) {
                return Err(Refusal::malformed("A request has a Content-Length or a Transfer-Encoding, not both."));
            }
            Ok(())
        }
        _ => Err(Refusal::transfer_encoding()),
    }
}

fn check_target(parts: &mut Parts) -> Result<(), Refusal> {
    let target = parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
    if target.len() > TARGET_MAX_BYTES {
        return Err(Refusal::uri_too_long());
    }
    match (parts.headers.get_all(HOST).iter().count(), parts.version) {
        (1, _) | (0, Version::HTTP_09 | Version::HTTP_10) => {}
        _ => return Err(Refusal::malformed("A request has exactly one Host.")),
    }
    if let Some(authority) = parts.uri.authority() {
        // Absolute form: its authority replaces Host (RFC 9112 §3.2.2).
        let host = authority.as_str().rsplit('@').next().unwrap_or_default();
        let host = HeaderValue::from_str(host).map_err(|_| Refusal::malformed("The request target has no host."))?;
        parts.headers.insert(HOST, host);
        let origin = parts.uri.path_and_query().cloned();
        parts.uri = origin.map_or_else(|| Uri::from_static("/"), Uri::from);
    }
    Ok(())
}

fn choose<'e>(edge: &'e Edge, parts: &Parts) -> Result<Answerer<'e>, Refusal> {
    let path = parts.uri.path();
    if let Some((_, group)) = edge.rules.iter().find(|(rule, _)| rule.matches(path)) {
        return Ok(Answerer::Group(group));
    }
    match (path, &edge.pages) {
        ("/live", _) if matches!(parts.method, Method::GET | Method::HEAD) => Ok(Answerer::Live),
        ("/live", _) => Err(Refusal::method("GET, HEAD")),
        (path, Some(pages)) if path == "/openapi.json" || path == "/docs" || path.starts_with("/docs/") => {
            Ok(Answerer::Pages(pages))
        }
        _ => Err(Refusal::no_rule()),
    }
}

/// Prepares the head of a request for its target.
///
/// # Errors
/// When it cannot be forwarded.
pub(super) fn prepare(parts: &mut Parts, edge: &Edge, session: &Session) -> Result<(), Refusal> {
    headers::strip_request(&mut parts.headers);
    headers::forward(&mut parts.headers, session.peer(), &edge.port)?;
    parts.version = Version::HTTP_11;
    // hyper's upgrade handle and whatever else belongs to the client's connection.
    parts.extensions.clear();
    Ok(())
}
