//! Bodies on their way through: the request's to the target, and the answer's to the client. Both hold at most what the
//! socket buffers and hyper's two read buffers hold.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::session::Session;
use crate::targets::{Lease, Upstream};

/// Where a request's body stands, for those who decide about its exchange.
#[derive(Debug, Default)]
pub(crate) struct BodyState {
    finished: AtomicBool,
    failed: AtomicBool,
    awaits_client: AtomicBool,
    held: AtomicBool,
}

impl BodyState {
    /// The last byte has been passed on.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    /// The client broke off, or framed the body wrongly.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The target could take more, and the client sends nothing.
    pub(crate) fn awaits_client(&self) -> bool {
        self.awaits_client.load(Ordering::Relaxed)
    }

    /// Nothing is read from the client until [`Self::release`]: with `Expect: 100-continue`, reading is what asks for the
    /// body. Also the end of a body that the target no longer reads.
    pub(crate) fn hold(&self) {
        self.held.store(true, Ordering::Relaxed);
    }

    /// The target wants the body.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }
}

/// The body of a request, as a target's connection reads it.
#[derive(Debug)]
pub(crate) struct RequestBody(Option<Streaming>);

#[derive(Debug)]
struct Streaming {
    incoming: Incoming,
    session: Arc<Session>,
    state: Arc<BodyState>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, session: &Arc<Session>) -> Self {
        if incoming.is_end_stream() {
            return Self(None);
        }
        Self(Some(Streaming { incoming, session: session.clone(), state: Arc::default() }))
    }

    /// `None` when there is no body.
    pub(crate) fn state(&self) -> Option<&Arc<BodyState>> {
        self.0.as_ref().map(|streaming| &streaming.state)
    }

    /// Takes what has arrived together with the head, so that a small body that nobody wants does not cost the connection.
    pub(super) fn skip(mut self) {
        if !self.0.as_ref().is_some_and(|streaming| streaming.state.is_held()) {
            let _ = Pin::new(&mut self).poll_frame(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(Streaming { incoming, state, .. }) = &mut self.0 else { return Poll::Ready(None) };
        if state.is_held() {
            // Whoever releases it polls the connection again, in the same task.
            return Poll::Pending;
        }
        let frame = Pin::new(&mut *incoming).poll_frame(cx);
        state.awaits_client.store(frame.is_pending(), Ordering::Relaxed);
        match &frame {
            Poll::Ready(None) => state.finished.store(true, Ordering::Relaxed),
            Poll::Ready(Some(Ok(_))) if incoming.is_end_stream() => state.finished.store(true, Ordering::Relaxed),
            Poll::Ready(Some(Err(_))) => state.failed.store(true, Ordering::Relaxed),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|streaming| streaming.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or(SizeHint::with_exact(0), |streaming| streaming.incoming.size_hint())
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if !self.state.is_finished() {
            self.session.left_unread();
        }
    }
}

/// The body of an answer. Its end, or its being dropped, ends the exchange.
#[derive(Debug)]
pub(super) struct AnswerBody {
    source: Source,
    session: Arc<Session>,
}

#[derive(Debug)]
enum Source {
    Own(Option<Bytes>),
    Pages(axum::body::Body),
    Relay(Relay),
}

/// The rest of a target's answer.
#[derive(Debug)]
pub(super) struct Relay {
    incoming: Incoming,
    /// While there may be more to read; reading is what drives the connection, and with it the request's body.
    upstream: Option<Box<Upstream>>,
    lease: Lease,
}

impl AnswerBody {
    pub(super) fn own(body: Bytes, session: &Arc<Session>) -> Self {
        Self { source: Source::Own(Some(body).filter(|body| !body.is_empty())), session: session.clone() }
    }

    pub(super) fn pages(body: axum::body::Body, session: &Arc<Session>) -> Self {
        Self { source: Source::Pages(body), session: session.clone() }
    }

    pub(super) fn relay(relay: Relay, session: &Arc<Session>) -> Self {
        Self { source: Source::Relay(relay), session: session.clone() }
    }
}

impl Relay {
    pub(super) fn new(incoming: Incoming, upstream: Box<Upstream>, lease: Lease) -> Self {
        let mut relay = Self { incoming, upstream: Some(upstream), lease };
        relay.release();
        relay
    }

    /// Gives the connection back once the answer has been read whole; a short answer came with its head.
    fn release(&mut self) {
        if let Some(upstream) = self.upstream.take_if(|upstream| upstream.is_free()) {
            self.lease.target().keep(upstream);
            self.lease.release();
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>, session: &Session) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut frame = Pin::new(&mut self.incoming).poll_frame(cx);
        if frame.is_pending()
            && let Some(upstream) = &mut self.upstream
        {
            if upstream.drive(cx) {
                session.moved();
            }
            frame = Pin::new(&mut self.incoming).poll_frame(cx);
        }
        match frame {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Err(error))) => {
                session.break_off();
                self.lease.target().count_broken_answer();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(frame) => {
                if frame.is_none() || self.incoming.is_end_stream() {
                    self.finish(cx);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    /// The whole answer has been read. If the request has been sent whole as well, the connection can serve another one;
    /// else it is closed, which also ends the reading of the request.
    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(upstream) = &mut self.upstream {
            upstream.drive(cx);
        }
        self.release();
        self.upstream = None;
        self.lease.release();
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { source, session } = &mut *self;
        match source {
            Source::Own(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Source::Pages(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Source::Relay(relay) => relay.poll_frame(cx, session),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Own(body) => body.is_none(),
            Source::Pages(body) => body.is_end_stream(),
            Source::Relay(relay) => relay.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Own(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
            Source::Pages(body) => body.size_hint(),
            Source::Relay(relay) => relay.incoming.size_hint(),
        }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.session.end();
    }
}
