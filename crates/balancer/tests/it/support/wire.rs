//! A client that sends bytes and reads what comes, so that nothing is done behind a test's back.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::soon;

/// One connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    /// Read and not looked at.
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The one value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut values = fields.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let first = values.next();
        assert!(values.next().is_none(), "{name} is there twice in {}", self.head);
        first
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Asserts that this is the balancer's own problem and returns its code.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.head);
        assert_eq!(self.header("server"), Some("datum-balancer"), "{}", self.head);
        let json: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(json["status"], self.status);
        assert_eq!(json["request_id"].as_str(), self.header("x-request-id"));
        assert!(!json["title"].as_str().unwrap().is_empty() && !json["detail"].as_str().unwrap().is_empty());
        let code = json["code"].as_str().unwrap().to_owned();
        assert_eq!(json["type"], format!("urn:datum:problem:{code}"));
        code
    }

    /// Status and code of the balancer's own problem.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.problem())
    }
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Sends a request without a body.
    pub(crate) async fn request(&mut self, method: &str, path: &str, headers: &str) {
        self.send(format!("{method} {path} HTTP/1.1\r\nhost: datum\r\n{headers}\r\n")).await;
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, "").await;
        self.reply().await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Reply {
        self.request("POST", path, &format!("content-length: {}\r\n", body.len())).await;
        self.send(body).await;
        self.reply().await
    }

    /// Sends a head and reads the answer.
    pub(crate) async fn exchange(&mut self, request: impl AsRef<[u8]>) -> Reply {
        self.send(request).await;
        self.reply().await
    }

    /// The next answer, whole.
    pub(crate) async fn reply(&mut self) -> Reply {
        self.try_reply().await.unwrap_or_else(|error| panic!("no whole answer: {error}"))
    }

    /// The next answer of a `HEAD`.
    pub(crate) async fn head_reply(&mut self) -> Reply {
        let head = self.head().await.unwrap();
        Reply { status: status(&head), head, body: Vec::new() }
    }

    /// The next answer, or why it is not whole.
    pub(crate) async fn try_reply(&mut self) -> io::Result<Reply> {
        let head = self.head().await?;
        let mut reply = Reply { status: status(&head), head, body: Vec::new() };
        reply.body = if let Some(length) = reply.header("content-length") {
            self.take(length.parse().unwrap()).await?
        } else if reply.header("transfer-encoding") == Some("chunked") {
            self.chunks().await?
        } else if matches!(reply.status, 100 | 204 | 304) {
            Vec::new()
        } else {
            self.rest().await?
        };
        Ok(reply)
    }

    /// The next head.
    pub(crate) async fn head(&mut self) -> io::Result<String> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            self.fill().await?;
        };
        Ok(String::from_utf8(self.buffer.drain(..end).collect()).unwrap())
    }

    /// The next `length` bytes.
    pub(crate) async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.fill().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill().await?;
        }
    }

    /// The chunks of a body and, where there are any, its trailers as lines.
    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(self.line().await?.trim(), 16).unwrap();
            body.extend(self.take(size).await?);
            if size == 0 {
                break;
            }
            self.line().await?;
        }
        loop {
            let trailer = self.line().await?;
            if trailer.is_empty() {
                return Ok(body);
            }
            body.extend_from_slice(trailer.as_bytes());
        }
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.fill().await {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(std::mem::take(&mut self.buffer));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Asserts that the connection has been closed in order, with nothing more to say.
    pub(crate) async fn closed(&mut self) {
        let rest = self.rest().await.expect("an orderly end");
        assert!(rest.is_empty(), "{:?} came before the end", String::from_utf8_lossy(&rest));
    }

    async fn fill(&mut self) -> io::Result<()> {
        let read = soon(self.stream.read_buf(&mut self.buffer)).await?;
        if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no status in {head:?}"))
}
