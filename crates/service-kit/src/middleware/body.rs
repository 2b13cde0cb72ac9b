//! The request body under guard: a client that falls silent gets an error, and whether the body was read to its end is
//! known when the answer goes out.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// What a silent client's body ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no body byte arrived in time")]
pub(crate) struct BodyIdle;

/// Whether a body still has unread bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadState(Arc<AtomicBool>);

impl ReadState {
    pub(super) fn is_unfinished(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set_unfinished(&self, unfinished: bool) {
        self.0.store(unfinished, Ordering::Release);
    }
}

/// How much of what has already arrived is skipped when a handler leaves a body unread, so that a few trailing bytes
/// (a multipart epilogue) do not cost the connection.
const SKIP_BYTES: usize = 64 * 1024;

pub(super) struct GuardedBody {
    inner: Body,
    idle_timeout: Duration,
    /// Armed only while a read waits: a handler that takes its time between reads is not the client's silence.
    silence: Option<Pin<Box<Sleep>>>,
    state: ReadState,
}

impl GuardedBody {
    pub(super) fn new(inner: Body, idle_timeout: Duration, state: ReadState) -> Self {
        state.set_unfinished(!inner.is_end_stream());
        Self { inner, idle_timeout, silence: None, state }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) {
            this.silence = None;
            if frame.is_none() || this.inner.is_end_stream() {
                this.state.set_unfinished(false);
            }
            return Poll::Ready(frame);
        }
        let timeout = this.idle_timeout;
        let silence = this.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + timeout)));
        ready!(silence.as_mut().poll(cx));
        Poll::Ready(Some(Err(axum::Error::new(BodyIdle))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for GuardedBody {
    fn drop(&mut self) {
        if !self.state.is_unfinished() {
            return;
        }
        let mut skipped = 0;
        let mut cx = Context::from_waker(Waker::noop());
        while skipped <= SKIP_BYTES {
            match Pin::new(&mut self.inner).poll_frame(&mut cx) {
                Poll::Ready(Some(Ok(frame))) => skipped += frame.data_ref().map_or(0, Bytes::len),
                Poll::Ready(None) => return self.state.set_unfinished(false),
                Poll::Ready(Some(Err(_))) | Poll::Pending => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::BodyExt;

    use super::*;

    fn guarded(chunks: Vec<&'static str>, then_silent: bool) -> (GuardedBody, ReadState) {
        use futures_util::StreamExt;
        let arrived = stream::iter(chunks.into_iter().map(|chunk| Ok::<_, std::io::Error>(Bytes::from(chunk))));
        let body =
            if then_silent { Body::from_stream(arrived.chain(stream::pending())) } else { Body::from_stream(arrived) };
        let state = ReadState::default();
        (GuardedBody::new(body, Duration::from_secs(30), state.clone()), state)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_body() {
        let (body, state) = guarded(vec!["a"], true);
        let error = body.collect().await.expect_err("silent");
        assert!(std::error::Error::source(&error).is_some_and(<dyn std::error::Error>::is::<BodyIdle>), "{error:?}");
        assert!(state.is_unfinished());
    }

    #[tokio::test]
    async fn a_body_that_was_read_is_finished() {
        let (body, state) = guarded(vec!["a", "b"], false);
        assert!(state.is_unfinished());
        assert_eq!(body.collect().await.expect("body").to_bytes(), "ab");
        assert!(!state.is_unfinished());
    }

    #[tokio::test]
    async fn what_has_arrived_is_skipped_but_nothing_is_waited_for() {
        let (body, state) = guarded(vec!["tail"], false);
        drop(body);
        assert!(!state.is_unfinished());
        let (body, state) = guarded(vec!["tail"], true);
        drop(body);
        assert!(state.is_unfinished());
    }
}
