//! One HTTP request to a health endpoint: how a stack, and a container's health command, ask a task whether it is ready.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

/// The longest answer that is read: a readiness problem is a few hundred bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The answer of a health endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its body, as text.
    pub body: String,
}

/// Sends `GET path` to `authority` (`127.0.0.1:8080`) over plain HTTP and reads the whole answer.
///
/// # Errors
/// A sentence, when there is no whole answer within `timeout`.
pub async fn get(authority: &str, path: &str, timeout: Duration) -> Result<Answer, String> {
    match tokio::time::timeout(timeout, exchange(authority, path)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} ms", timeout.as_millis())),
    }
}

async fn exchange(authority: &str, path: &str) -> Result<Answer, String> {
    let stream = TcpStream::connect(authority).await.map_err(|error| format!("cannot connect: {error}"))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let request = Request::get(path)
        .header(header::HOST, authority)
        .header(header::CONNECTION, "close")
        .header(header::USER_AGENT, "datum-healthcheck")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_BODY_BYTES).collect().await.map_err(|error| error.to_string())?;
    Ok(Answer { status, body: String::from_utf8_lossy(&body.to_bytes()).into_owned() })
}

fn failed(error: &hyper::Error) -> String {
    format!("no HTTP answer: {error}")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn answering(reply: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let authority = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            stream.write_all(reply.as_bytes()).await.expect("written");
            // Hold the connection, as a server that hangs would.
            let _ = stream.read(&mut request).await;
        });
        authority
    }

    #[tokio::test]
    async fn status_and_body_are_returned() {
        let authority = answering("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 8\r\n\r\ndatabase").await;
        let answer = get(&authority, "/ready", Duration::from_secs(10)).await.expect("an answer");
        assert_eq!(answer, Answer { status: StatusCode::SERVICE_UNAVAILABLE, body: "database".into() });
    }

    #[tokio::test]
    async fn silence_and_refusal_are_told_apart() {
        let silent = answering("").await;
        let error = get(&silent, "/live", Duration::from_millis(50)).await.expect_err("silence");
        assert_eq!(error, "no answer within 50 ms");
        let error = get("127.0.0.1:1", "/live", Duration::from_secs(10)).await.expect_err("refused");
        assert!(error.starts_with("cannot connect"), "{error}");
    }
}
