//! The client's socket as hyper sees it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::session::{Phase, Session};

/// Reports to the [`Session`] what moves, and holds back what hyper says on its own.
///
/// hyper answers a head that it refuses by itself, with an empty body. Nobody else writes between two exchanges, so such
/// bytes are recognised by their time and not by their content; the connection's task sends a problem in their place.
#[derive(Debug)]
pub(super) struct ClientStream {
    inner: TcpStream,
    session: Arc<Session>,
}

impl ClientStream {
    pub(super) fn new(inner: TcpStream, session: Arc<Session>) -> Self {
        Self { inner, session }
    }

    pub(super) fn into_inner(self) -> TcpStream {
        self.inner
    }

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.session.moved();
        }
        written
    }

    /// `HTTP/1.1 431 …`
    fn hold_back(&self, bytes: &[u8]) {
        let status = bytes.get(9..12).and_then(|digits| StatusCode::from_bytes(digits).ok());
        self.session.refuse(status.unwrap_or(StatusCode::BAD_REQUEST));
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let bytes = &buf.filled()[before..];
        if self.session.phase() == Phase::Idle {
            self.session.saw_head_bytes(bytes);
        } else if !bytes.is_empty() {
            self.session.moved();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.session.phase() == Phase::Idle {
            self.hold_back(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.session.phase() == Phase::Idle {
            self.hold_back(buffers.first().map_or(&[][..], |first| first));
            return Poll::Ready(Ok(buffers.iter().map(|buffer| buffer.len()).sum()));
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, buffers);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.session.flushed();
        Poll::Ready(Ok(()))
    }

    /// Left to the connection's task, which may have something to say first and closes in order.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
