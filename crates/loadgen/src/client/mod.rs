//! HTTP/1.1 as a real client speaks it: one keep-alive connection a virtual user, kept for as long as the server keeps it.
//!
//! A connection that the server has closed between two requests is dialled anew, and the request sent there, only while
//! nothing of it has been written; that counts as no error. From the first byte written on nothing is sent twice: a
//! connection that breaks then is a failed request.

mod connection;
mod failure;
mod server_timing;
mod target;
mod trust;

use std::io;
use std::time::Duration;

use bytes::Bytes;
use envelope::result::{Answerer, Failure};
use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::time::timeout;

use connection::{Connection, Received};
use failure::nobody;
pub(crate) use failure::{check_failed, interrupted, refused};
pub(crate) use server_timing::{STAGES, ServerTiming};
pub(crate) use target::Target;
pub use target::check_target;
pub use trust::{Trust, TrustError};

use crate::run::Timeouts;

/// A request ready to be sent.
pub(crate) type Prepared = Request<Full<Bytes>>;

/// The head of an answer; its body is in the client's buffer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// Whether the body says that it is a problem (RFC 9457).
    pub(crate) is_problem: bool,
    pub(crate) answerer: Answerer,
    pub(crate) timing: ServerTiming,
    /// `Retry-After` in seconds (RFC 9110 §10.2.3); dates are not looked at.
    pub(crate) retry_after: Option<Duration>,
}

/// The code of a failure to connect, TLS included.
const CONNECT: &str = "connect";

/// Why a connection could not be made, and what to do about a certificate that nobody vouches for: one of an unknown
/// authority, or of another one of the same name.
fn in_words(error: &io::Error) -> String {
    let text = error.to_string();
    if ["UnknownIssuer", "BadSignature"].iter().any(|reason| text.contains(reason)) {
        return format!("{text}: its authority is not trusted here; --target-ca names a private one");
    }
    text
}

/// One client with one connection.
pub(crate) struct Client {
    target: Target,
    timeouts: Timeouts,
    connection: Option<Connection>,
    body: Vec<u8>,
    /// Why the last attempt to connect failed, for those who ask.
    refusal: Option<String>,
}

impl Client {
    pub(crate) fn new(target: Target, timeouts: Timeouts) -> Self {
        Self { target, timeouts, connection: None, body: Vec::new(), refusal: None }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The body of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// A failure in words, with the cause where no connection could be made.
    pub(crate) fn describe(&self, failure: &Failure) -> String {
        match (failure.status, &self.refusal) {
            (Some(status), _) => format!("{status} {}", failure.code),
            (None, Some(refusal)) if failure.code == CONNECT => format!("no answer ({CONNECT}: {refusal})"),
            (None, _) => format!("no answer ({})", failure.code),
        }
    }

    /// Dials now, so that the first request needs not.
    pub(crate) async fn connect(&mut self) -> Result<(), Failure> {
        self.usable().await.map(drop)
    }

    /// Sends a request and receives the whole answer.
    pub(crate) async fn send(&mut self, request: Prepared) -> Result<Answer, Failure> {
        if let Ok(outcome) = timeout(self.timeouts.request, self.exchange(request)).await {
            return outcome;
        }
        self.forget_connection();
        Err(nobody("timeout"))
    }

    /// Whoever has given up waiting: the answer may still come, and must not be taken for the next one's.
    pub(crate) fn forget_connection(&mut self) {
        self.connection = None;
    }

    async fn exchange(&mut self, mut request: Prepared) -> Result<Answer, Failure> {
        // The second connection is fresh: a server that closes that one, too, before it has read is broken.
        for attempt in 0..2 {
            self.usable().await?;
            let Some(connection) = &mut self.connection else { return Err(nobody(CONNECT)) };
            match connection.exchange(request, &mut self.body).await {
                Received::Answer(answer) => {
                    if connection.is_closed() {
                        self.connection = None;
                    }
                    return Ok(answer);
                }
                Received::NotSent(unsent, _) if attempt == 0 => {
                    self.connection = None;
                    request = *unsent;
                }
                Received::NotSent(_, failure) | Received::Broken(failure) => {
                    self.connection = None;
                    return Err(failure);
                }
            }
        }
        Err(nobody("reset"))
    }

    /// Makes sure that there is a connection that was open a moment ago.
    async fn usable(&mut self) -> Result<(), Failure> {
        if let Some(connection) = &mut self.connection
            && connection.ready().await
        {
            return Ok(());
        }
        self.connection = None;
        let dialled = timeout(self.timeouts.connect, Connection::open(&self.target)).await;
        let refusal = match dialled {
            Ok(Ok(connection)) => {
                self.connection = Some(connection);
                return Ok(());
            }
            Ok(Err(error)) => in_words(&error),
            Err(_) => format!("not within {} s", self.timeouts.connect.as_secs_f64()),
        };
        self.refusal = Some(refusal);
        Err(nobody(CONNECT))
    }
}
