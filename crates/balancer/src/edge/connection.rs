//! One client connection, in one task: hyper, the watchdog, and an orderly end.

use std::future::{Future, poll_fn};
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::answer::Refusal;
use super::exchange;
use super::listener::Edge;
use super::meters;
use super::refusal;
use super::session::{Order, Session, Verdict};
use super::stream::ClientStream;
use super::wakeups::Wakeups;

/// The head of a request, all lines together; what an ALB takes. A larger one is refused with 431.
pub(super) const HEAD_MAX_BYTES: usize = 64 * 1024;

/// A client that is still sending a body nobody wants is read from for at most this long, so that it gets to the answer:
/// closing with unread bytes makes the kernel send a reset, which may take the answer away from it.
const LINGER_TOTAL: Duration = Duration::from_secs(10);
const LINGER_SILENCE: Duration = Duration::from_secs(2);
const LINGER_MAX_BYTES: usize = 256 * 1024 * 1024;

/// How a connection came to its end.
enum End {
    /// hyper is done with it, or could not go on.
    Done,
    /// The client sent a part of a head and then nothing.
    HeadTimeout,
    /// An answer was stuck, or the balancer stops.
    Cut,
}

/// Serves a client until its connection ends.
pub(super) async fn run(stream: TcpStream, edge: Arc<Edge>, session: Arc<Session>) {
    let service = {
        let (edge, session) = (edge.clone(), session.clone());
        service_fn(move |request| exchange::serve(edge.clone(), session.clone(), request))
    };
    let io = TokioIo::new(ClientStream::new(stream, session.clone()));
    // The watchdog bounds the time that a head may take; hyper's own timer would cost an allocation a request.
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(HEAD_MAX_BYTES)
        .max_header_size(HEAD_MAX_BYTES)
        .serve_connection(io, service);

    let idle_timeout = edge.idle_timeout;
    let mut finishing = false;
    let mut watchdog = pin!(sleep(idle_timeout));
    let wakeups = Wakeups::new();
    let mut poll = |cx: &mut Context<'_>| {
        match session.order(cx.waker()) {
            Order::None => {}
            Order::Finish if finishing => {}
            Order::Finish => {
                finishing = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            Order::Cut => return Poll::Ready(End::Cut),
        }
        loop {
            if Pin::new(&mut connection).poll(cx).is_ready() {
                return Poll::Ready(End::Done);
            }
            if watchdog.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let wait = match session.verdict(idle_timeout) {
                Verdict::Wait(rest) => rest,
                Verdict::CloseIdle => return Poll::Ready(End::Done),
                Verdict::HeadTimeout => return Poll::Ready(End::HeadTimeout),
                Verdict::Cut => return Poll::Ready(End::Cut),
                Verdict::Expire => {
                    session.expire();
                    idle_timeout
                }
            };
            watchdog.as_mut().reset(Instant::now() + wait);
        }
    };
    let end = poll_fn(|cx| wakeups.poll(cx, &mut poll)).await;
    // What is still in progress is dropped here, and with it the connection to the target.
    let stream = connection.into_parts().io.into_inner().into_inner();
    tokio::select! {
        () = close(stream, end, &edge, &session) => {}
        () = session.cut() => {}
    }
}

async fn close(mut stream: TcpStream, end: End, edge: &Edge, session: &Session) {
    let refusal = match (&end, session.refused()) {
        (End::HeadTimeout, _) => Some(Refusal::client_timeout()),
        (End::Done, Some(status)) => Some(session.with_head(|head| refusal::of(status, head))),
        (End::Done, None) if session.with_head(is_http2_preface) => {
            Some(refusal::of(StatusCode::BAD_REQUEST, b"PRI * HTTP/2.0\r\n"))
        }
        _ => None,
    };
    if let Some(refusal) = &refusal {
        meters::answered(refusal.status());
        let _ = timeout(LINGER_SILENCE, stream.write_all(&refusal.to_wire(&edge.ids.fresh()))).await;
    }
    if matches!(end, End::Cut) || session.is_broken() {
        // An answer that ends with the connection would look complete after an orderly end.
        let _ = stream.set_zero_linger();
    } else if refusal.is_some() || session.is_unread() {
        linger(stream).await;
    }
}

/// hyper recognises HTTP/2 with prior knowledge and answers nothing at all.
fn is_http2_preface(head: &[u8]) -> bool {
    head.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
}

/// Ends the sending direction and reads until the client ends its own.
async fn linger(mut stream: TcpStream) {
    if socket2::SockRef::from(&stream).shutdown(Shutdown::Write).is_err() {
        return;
    }
    let until = Instant::now() + LINGER_TOTAL;
    let mut scratch = vec![0; 16 * 1024];
    let mut left = LINGER_MAX_BYTES;
    while left > 0 {
        let silence = until.min(Instant::now() + LINGER_SILENCE);
        match timeout_at(silence, stream.read(&mut scratch)).await {
            Ok(Ok(read @ 1..)) => left = left.saturating_sub(read),
            _ => return,
        }
    }
}
