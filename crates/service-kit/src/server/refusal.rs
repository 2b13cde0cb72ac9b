//! What hyper refuses before any handler sees it (a broken request line, a head that is too large) has an empty body
//! and no way to give it one. This puts problem+json in its place, so that clients meet one error shape everywhere.

use http::StatusCode;
use uuid::Uuid;

use crate::problem::ProblemBody;

/// hyper writes such a head in one piece; the largest there is has far fewer bytes.
const MAX_BYTES: usize = 256;

/// A refusal on its way out instead of hyper's.
pub(super) struct Pending {
    bytes: Vec<u8>,
    sent: usize,
    /// How many bytes hyper believes to have written.
    original: usize,
}

impl Pending {
    pub(super) fn remaining(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Counts what was written; the length of hyper's own refusal once all is.
    pub(super) fn advance(&mut self, written: usize) -> Option<usize> {
        self.sent += written;
        (self.sent == self.bytes.len()).then_some(self.original)
    }
}

/// The problem that replaces these bytes, when they are exactly one of hyper's own empty 4xx heads. Everything that our
/// handlers answer carries a request id and is left alone.
pub(super) fn replacing(bytes: &[u8]) -> Option<Pending> {
    if !bytes.starts_with(b"HTTP/1.1 4") || bytes.len() > MAX_BYTES || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
    if head.contains("x-request-id:") || !head.contains("content-length: 0") {
        return None;
    }
    let status = StatusCode::from_bytes(bytes.get(9..12)?).ok()?;
    Some(Pending { bytes: render(status)?, sent: 0, original: bytes.len() })
}

fn render(status: StatusCode) -> Option<Vec<u8>> {
    let (code, detail) = match status {
        StatusCode::URI_TOO_LONG => ("uri_too_long", "The request target is too long."),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            ("headers_too_large", "The request's header fields are too large.")
        }
        StatusCode::REQUEST_TIMEOUT => ("request_timeout", "The request did not arrive in time."),
        _ => ("malformed_request", "This is not an HTTP/1.1 request."),
    };
    let request_id = Uuid::new_v4().simple().to_string();
    let body = ProblemBody {
        kind: format!("urn:datum:problem:{code}"),
        title: status.canonical_reason().unwrap_or("Error"),
        status: status.as_u16(),
        code,
        detail: detail.into(),
        request_id: Some(request_id.clone()),
        errors: Vec::new(),
    };
    let json = serde_json::to_string(&body).ok()?;
    // The headers that the middleware would have set; nothing of this request was timed.
    let head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\nx-request-id: {request_id}\r\n\
         server-timing: app;dur=0.000, total;dur=0.000\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        status.as_u16(),
        body.title,
        json.len(),
    );
    Some((head + &json).into_bytes())
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http_body_util::BodyExt;

    use super::*;
    use crate::problem::Problem;

    #[tokio::test]
    async fn an_empty_refusal_becomes_a_problem_of_the_same_shape() {
        let original = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        let pending = replacing(original).expect("replaced");
        let text = String::from_utf8(pending.bytes.clone()).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
        assert!(head.contains("content-type: application/problem+json"));
        let ours: serde_json::Value = serde_json::from_str(body).expect("json");
        let handlers = Problem::bad_request("malformed_request", "This is not an HTTP/1.1 request.").into_response();
        let shaped = handlers.into_body().collect().await.expect("body").to_bytes();
        let mut theirs: serde_json::Value = serde_json::from_slice(&shaped).expect("json");
        theirs["request_id"] = ours["request_id"].clone();
        assert_eq!(ours, theirs);
        assert!(head.contains(&format!("content-length: {}", body.len())));
    }

    #[test]
    fn what_handlers_answer_is_left_alone() {
        for bytes in [
            &b"HTTP/1.1 404 Not Found\r\nx-request-id: a\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nand more",
            b"",
        ] {
            assert!(replacing(bytes).is_none(), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn hyper_is_told_its_own_length_when_all_is_sent() {
        let original = b"HTTP/1.1 431 X\r\ncontent-length: 0\r\n\r\n";
        let mut pending = replacing(original).expect("replaced");
        assert_eq!(pending.advance(3), None);
        let rest = pending.remaining().len();
        assert_eq!(pending.advance(rest), Some(original.len()));
    }
}
