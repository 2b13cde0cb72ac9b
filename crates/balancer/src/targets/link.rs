//! The socket to a target as hyper sees it, and the part of it that others reach.

use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What is known about a connection to a target, and what it can be told, while hyper owns its socket.
#[derive(Debug, Default)]
pub(crate) struct Link {
    moved: AtomicBool,
    deaf: AtomicBool,
    probing: AtomicBool,
    cut: AtomicBool,
    waker: AtomicWaker,
}

impl Link {
    /// Whether bytes have moved since this was asked last.
    pub(super) fn has_moved(&self) -> bool {
        // Reads and writes are in the same task; a plain load is cheaper than a swap, and mostly enough.
        self.moved.load(Ordering::Relaxed) && self.moved.swap(false, Ordering::Relaxed)
    }

    /// Whether the target has stopped reading.
    pub(super) fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Relaxed)
    }

    /// The next reads only look whether the connection has ended.
    pub(super) fn probe(&self, probing: bool) {
        self.probing.store(probing, Ordering::Relaxed);
    }

    /// Ends the connection in the middle of whatever it does.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }
}

/// The socket to a target.
#[derive(Debug)]
pub(super) struct TargetStream {
    inner: TcpStream,
    link: Arc<Link>,
}

impl TargetStream {
    pub(super) fn new(inner: TcpStream, link: Arc<Link>) -> Self {
        Self { inner, link }
    }

    /// Asks the kernel whether the other side has closed or has said something unasked: the runtime may not have been told
    /// yet. `Pending` is the good case.
    fn peek(&self) -> Poll<io::Result<()>> {
        match socket2::SockRef::from(&self.inner).peek(&mut [MaybeUninit::uninit(); 1]) {
            Ok(0) => Poll::Ready(Ok(())),
            Ok(_) => Poll::Ready(Err(ErrorKind::InvalidData.into())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// A target that answers early and closes makes writing fail before its answer has been read, and hyper would drop the
    /// answer with the connection. What it no longer reads is dropped instead; reading shows what it has said.
    fn wrote(&self, written: Poll<io::Result<usize>>, offered: usize) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(0)) | Poll::Pending => written,
            Poll::Ready(Ok(_)) => {
                self.link.moved.store(true, Ordering::Relaxed);
                written
            }
            Poll::Ready(Err(error)) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                self.link.deaf.store(true, Ordering::Relaxed);
                Poll::Ready(Ok(offered))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for TargetStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.link.is_cut() {
            return Poll::Ready(Err(ErrorKind::ConnectionAborted.into()));
        }
        if self.link.probing.load(Ordering::Relaxed) {
            return self.peek();
        }
        let before = buf.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buf) {
            Poll::Pending => {
                self.link.waker.register(cx.waker());
                // It may have been cut since it was looked at.
                if self.link.is_cut() { Poll::Ready(Err(ErrorKind::ConnectionAborted.into())) } else { Poll::Pending }
            }
            read @ Poll::Ready(_) => {
                if buf.filled().len() > before {
                    self.link.moved.store(true, Ordering::Relaxed);
                }
                read
            }
        }
    }
}

impl AsyncWrite for TargetStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.wrote(written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, buffers);
        self.wrote(written, buffers.iter().map(|buffer| buffer.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn connected() -> (TargetStream, Arc<Link>, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
        let (peer, _) = listener.accept().expect("accepted");
        let link = Arc::new(Link::default());
        (TargetStream::new(stream, link.clone()), link, peer)
    }

    #[tokio::test]
    async fn what_a_target_no_longer_reads_is_dropped_so_that_its_answer_can_be_read() {
        let (mut stream, link, peer) = connected().await;
        stream.write_all(b"unread").await.expect("written");
        assert!(link.has_moved() && !link.is_deaf());
        // Closing with unread bytes is a reset.
        drop(peer);
        stream.write_all(b"more").await.expect("dropped without an error");
        assert!(link.is_deaf());
        assert!(!link.has_moved(), "nothing has left");
    }

    #[tokio::test]
    async fn a_cut_wakes_whoever_reads() {
        let (mut stream, link, _peer) = connected().await;
        let reading = tokio::spawn(async move { stream.read(&mut [0; 1]).await.map_err(|error| error.kind()) });
        tokio::task::yield_now().await;
        link.cut();
        assert_eq!(reading.await.expect("ended"), Err(ErrorKind::ConnectionAborted));
    }
}
