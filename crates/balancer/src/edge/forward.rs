//! Getting an answer from a target.
//!
//! A request is never sent twice. It may go to another target only as long as nothing of it has left: when no connection
//! can be made, or hyper hands it back because a kept connection had been closed before the request was taken. As soon as
//! bytes may have left, a broken connection is a 502. (A real ALB answers 502 for a refused connection as well. Here the
//! next target is tried, since a task that dies locally is replaced within seconds and nothing was sent to it.)

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use http::header::{CONNECTION, HOST};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::task::coop::unconstrained;
use tokio::time::sleep;

use super::answer::Refusal;
use super::body::{AnswerBody, BodyState, Relay, RequestBody};
use super::exchange::{own, prepare};
use super::headers;
use super::listener::Edge;
use super::session::Session;
use crate::targets::{ConnectError, Group, Lease, Target, Upstream};

/// A request on its way to a group.
pub(super) struct Forwarded<'r> {
    pub(super) edge: &'r Edge,
    pub(super) session: &'r Arc<Session>,
    pub(super) group: &'r Arc<Group>,
    pub(super) request_id: &'r HeaderValue,
}

/// What became of a request on one connection.
enum Outcome {
    Answered(Response<Incoming>),
    /// Nothing of it was sent.
    Returned(Request<RequestBody>),
    /// The connection broke, or what came back is not HTTP.
    Broken(hyper::Error),
    /// The idle timeout passed.
    Expired,
}

impl Forwarded<'_> {
    /// The target's answer, or the balancer's own where there is none.
    pub(super) async fn answer(&self, mut parts: Parts, body: RequestBody) -> Response<AnswerBody> {
        if let Some(delay) = self.edge.forward_delay {
            // Boxed, so that a delay that is not there takes no room in every request's future.
            Box::pin(sleep(delay)).await;
        }
        let answer = match prepare(&mut parts, self.edge, self.session) {
            Ok(()) => self.send(Request::from_parts(parts, body)).await,
            Err(refusal) => Err((refusal, None)),
        };
        answer.unwrap_or_else(|(refusal, target)| {
            self.group.count_refusal(refusal.status());
            let (group, port) = (self.group.name(), target.map(|target| target.address().port()));
            let (request_id, status, code) = (self.request_id.to_str().ok(), refusal.status(), refusal.code());
            if status >= 500 {
                tracing::warn!(group, port, request_id, status, code, "answered in place of a task");
            } else {
                tracing::debug!(group, port, request_id, status, code, "answered in place of a task");
            }
            own(refusal, self.request_id, self.session)
        })
    }

    async fn send(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<AnswerBody>, (Refusal, Option<Arc<Target>>)> {
        let mut tried = Vec::new();
        let mut failure = None;
        while let Some(lease) = self.group.choose(&tried) {
            let target = lease.target().clone();
            let mut upstream = match target.connection().await {
                Ok(upstream) => upstream,
                Err(ConnectError::TimedOut) => {
                    return Err((Refusal::gateway_timeout("The task accepts no connection in time."), Some(target)));
                }
                Err(ConnectError::Local) => {
                    return Err((Refusal::exhausted("The balancer cannot open more connections."), Some(target)));
                }
                Err(ConnectError::Refused) => {
                    failure = Some(target.clone());
                    tried.push(target);
                    continue;
                }
            };
            if !request.headers().contains_key(HOST) {
                // Only HTTP/1.0 may leave it out.
                request.headers_mut().insert(HOST, target.host().clone());
            }
            let body = request.body().state().cloned();
            let started = Instant::now();
            target.count_request();
            match self.exchange(&mut upstream, request, body.as_ref()).await {
                Outcome::Answered(response) => {
                    target.count_answer(response.status(), started.elapsed());
                    return self
                        .relay(response, upstream, lease, body.as_deref())
                        .map_err(|error| (error, Some(target)));
                }
                Outcome::Returned(returned) => {
                    target.uncount_request();
                    request = returned;
                    // A kept connection had been closed, and the pool has one fewer now. One that closed as soon as it was
                    // made says that the target wants none.
                    if !upstream.was_kept() {
                        target.count_broken();
                        failure = Some(target.clone());
                        tried.push(target);
                    }
                }
                Outcome::Broken(error) => {
                    return Err((broken(&target, &error, body.as_deref()), Some(target)));
                }
                Outcome::Expired => {
                    let client_is_silent = body.is_some_and(|body| !body.is_finished() && body.awaits_client());
                    let refusal = if client_is_silent {
                        Refusal::client_timeout()
                    } else {
                        target.count_silent();
                        Refusal::gateway_timeout("The task did not answer in time.")
                    };
                    return Err((refusal, Some(target)));
                }
            }
        }
        request.into_body().skip();
        let refusal = match failure {
            Some(_) => Refusal::bad_gateway("No task accepts connections."),
            None => Refusal::no_targets(),
        };
        Err((refusal, failure))
    }

    /// Sends the request and reads the head of the answer, all within the client connection's task: the target's
    /// connection is driven here and, for the rest of the answer, by the answer's body.
    async fn exchange(
        &self,
        upstream: &mut Upstream,
        mut request: Request<RequestBody>,
        body: Option<&Arc<BodyState>>,
    ) -> Outcome {
        let mut patience = pin!(None);
        if let Some(body) = body.filter(|body| body.is_held()) {
            let wanted = body.clone();
            hyper::ext::on_informational(&mut request, move |informational| {
                if informational.status() == StatusCode::CONTINUE {
                    wanted.release();
                }
            });
            // A client does not wait for ever either; curl, for one, sends its body after one second.
            patience.set(Some(sleep(self.edge.continue_timeout)));
        }
        // Only driving the connection can bring the answer, and the answer is looked at after each time: its own wake-ups
        // would poll this task once more for nothing. Unconstrained, because a budget that ran out would be such a
        // wake-up, too.
        let mut answer = pin!(unconstrained(upstream.send(request, body.cloned())));
        poll_fn(|cx: &mut Context<'_>| {
            if upstream.drive(cx) {
                self.session.moved();
            }
            let mut unwoken = Context::from_waker(Waker::noop());
            match answer.as_mut().poll(&mut unwoken) {
                Poll::Ready(Ok(response)) => return Poll::Ready(Outcome::Answered(response)),
                Poll::Ready(Err(mut error)) => {
                    return Poll::Ready(match error.take_message() {
                        Some(request) => Outcome::Returned(request),
                        None => Outcome::Broken(error.into_error()),
                    });
                }
                Poll::Pending => {}
            }
            if self.session.is_expired() {
                return Poll::Ready(Outcome::Expired);
            }
            if let Some(waited) = patience.as_mut().as_pin_mut()
                && waited.poll(cx).is_ready()
            {
                patience.set(None);
                if let Some(body) = body {
                    body.release();
                    // The connection has to look at the body again.
                    cx.waker().wake_by_ref();
                }
            }
            Poll::Pending
        })
        .await
    }

    fn relay(
        &self,
        response: Response<Incoming>,
        upstream: Box<Upstream>,
        lease: Lease,
        body: Option<&BodyState>,
    ) -> Result<Response<AnswerBody>, Refusal> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Refusal::bad_gateway("The task switched protocols unasked."));
        }
        let (mut parts, incoming) = response.into_parts();
        headers::strip_response(&mut parts.headers);
        if body.is_some_and(|body| !body.is_finished()) {
            // Answered early. The request goes on for as long as the answer does, and the connection ends with it.
            parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let relay = Relay::new(incoming, upstream, lease);
        Ok(Response::from_parts(parts, AnswerBody::relay(relay, self.session)))
    }
}

/// Whose fault it is that a connection broke before the head of an answer.
fn broken(target: &Target, error: &hyper::Error, body: Option<&BodyState>) -> Refusal {
    if body.is_some_and(BodyState::has_failed) {
        return Refusal::incomplete_body();
    }
    target.count_broken();
    if error.is_parse() {
        Refusal::bad_gateway("The task's answer is not valid HTTP.")
    } else if target.is_cut() {
        Refusal::bad_gateway("The task was deregistered, and the deregistration delay is over.")
    } else {
        Refusal::bad_gateway("The task closed the connection before it answered.")
    }
}
