//! One HTTP/1.1 connection.

use std::io;

use bytes::Bytes;
use envelope::result::{Answerer, Failure};
use http::header::{CONTENT_TYPE, RETRY_AFTER, SERVER};
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::failure::{broken, nobody};
use super::{Answer, Prepared, ServerTiming, Target};

/// No answer of the API is longer.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// What became of a request.
pub(super) enum Received {
    /// A whole answer.
    Answer(Answer),
    /// The connection was closed before anything was written.
    NotSent(Box<Prepared>, Failure),
    /// The connection broke after that, or what came is no HTTP.
    Broken(Failure),
}

pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Connection {
    /// Dials, TLS included.
    pub(super) async fn open(target: &Target) -> io::Result<Self> {
        let stream = TcpStream::connect((target.host(), target.port())).await?;
        // A request is one write; nothing is gained by waiting for more.
        stream.set_nodelay(true)?;
        match target.tls() {
            None => Self::speak(TokioIo::new(stream)).await,
            Some((connector, name)) => Self::speak(TokioIo::new(connector.connect(name.clone(), stream).await?)).await,
        }
    }

    async fn speak<S>(stream: TokioIo<S>) -> io::Result<Self>
    where
        TokioIo<S>: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let (sender, connection) = Builder::new().handshake(stream).await.map_err(io::Error::other)?;
        let driver = tokio::spawn(async move {
            // Whoever waits for an answer hears the error there.
            let _ = connection.await;
        });
        Ok(Self { sender, driver: driver.abort_handle() })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until the connection takes a request; false when it has been closed.
    pub(super) async fn ready(&mut self) -> bool {
        !self.sender.is_closed() && self.sender.ready().await.is_ok()
    }

    /// Sends a request and reads the answer into `body`.
    pub(super) async fn exchange(&mut self, request: Prepared, body: &mut Vec<u8>) -> Received {
        body.clear();
        let response = match self.sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                let failure = broken(error.error());
                return match error.take_message() {
                    Some(request) => Received::NotSent(Box::new(request), failure),
                    None => Received::Broken(failure),
                };
            }
        };
        match read(response, body).await {
            Ok(answer) => Received::Answer(answer),
            Err(failure) => Received::Broken(failure),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

async fn read(response: Response<Incoming>, body: &mut Vec<u8>) -> Result<Answer, Failure> {
    let (head, mut incoming) = response.into_parts();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        if let Some(data) = frame.data_ref() {
            if body.len() + data.len() > MAX_BODY_BYTES {
                return Err(nobody("protocol"));
            }
            body.extend_from_slice(data);
        }
    }
    let timing = ServerTiming::of(&head.headers);
    let is_problem = text(&head.headers, &CONTENT_TYPE).is_some_and(|it| it.starts_with("application/problem+json"));
    let retry_after = text(&head.headers, &RETRY_AFTER).and_then(|it| it.trim().parse().ok());
    Ok(Answer {
        status: head.status,
        is_problem,
        answerer: answerer(&head.headers, &timing),
        timing,
        retry_after: retry_after.map(std::time::Duration::from_secs),
    })
}

fn text<'h>(headers: &'h HeaderMap, name: &http::HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A task's answers carry a total; the balancers that we know name themselves.
fn answerer(headers: &HeaderMap, timing: &ServerTiming) -> Answerer {
    if timing.total().is_some() {
        return Answerer::Task;
    }
    match text(headers, &SERVER) {
        Some(server) if server.starts_with("datum-balancer") || server.starts_with("awselb") => Answerer::Balancer,
        _ => Answerer::Unknown,
    }
}
