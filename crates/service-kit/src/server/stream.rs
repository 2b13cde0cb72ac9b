//! A client's TCP stream with what hyper leaves to its transport: a limit for clients that do not read, and a close that
//! lets a refusal be read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::refusal;

/// After our last byte, a client may take this long until its next one …
const LINGER_IDLE: Duration = Duration::from_secs(2);
/// … and this long in all.
const LINGER_TOTAL: Duration = Duration::from_secs(30);

/// Closing a socket whose receive buffer holds unread bytes sends a reset, which destroys the answer on its way to the
/// client: somebody who uploads too much would see "connection reset" and not the 413. So the write side is closed first,
/// and what still arrives is thrown away until the client closes, falls silent, or time is up (nginx calls this
/// `lingering_close`).
pub(super) struct ClientStream {
    inner: TcpStream,
    write_idle_timeout: Duration,
    /// Armed while a write waits for the client.
    stalled: Option<Pin<Box<Sleep>>>,
    lingering: Option<Lingering>,
    /// The rest of a refusal that replaces hyper's own.
    replacement: Option<refusal::Pending>,
}

struct Lingering {
    until: Instant,
    silence: Pin<Box<Sleep>>,
}

impl ClientStream {
    pub(super) fn new(inner: TcpStream, write_idle_timeout: Duration) -> Self {
        Self { inner, write_idle_timeout, stalled: None, lingering: None, replacement: None }
    }

    fn watch_writes(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timeout = self.write_idle_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }

    /// Sends a replaced refusal to its end and then reports hyper's own bytes as written.
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while let Some(pending) = &mut self.replacement {
            match ready!(Pin::new(&mut self.inner).poll_write(cx, pending.remaining())) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    if let Some(original) = pending.advance(written) {
                        self.replacement = None;
                        return Poll::Ready(Ok(original));
                    }
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(0))
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let lingering = self.lingering.get_or_insert_with(|| Lingering {
            until: Instant::now() + LINGER_TOTAL,
            silence: Box::pin(tokio::time::sleep(LINGER_IDLE)),
        });
        let mut scratch = [0; 16 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.inner).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && Instant::now() < lingering.until => {
                    lingering.silence.as_mut().reset(Instant::now() + LINGER_IDLE);
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return lingering.silence.as_mut().poll(cx),
            }
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.replacement.is_none() {
            self.replacement = refusal::replacing(bytes);
        }
        let written = if self.replacement.is_some() {
            self.poll_replacement(cx)
        } else {
            Pin::new(&mut self.inner).poll_write(cx, bytes)
        };
        self.watch_writes(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
        }
        ready!(self.poll_linger(cx));
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // hyper's own refusals are one small buffer.
        if let [only] = buffers {
            return self.poll_write(cx, only);
        }
        if self.replacement.is_some() {
            return self.poll_write(cx, &[]);
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, buffers);
        self.watch_writes(cx, written)
    }
}
