//! Which refusal fits a head that hyper would not have, and what a parsed head hides: hyper drops a `Content-Length` next
//! to a `Transfer-Encoding`, and answers everything that it cannot parse alike.

use http::StatusCode;

use super::answer::Refusal;

/// The longest request target that an ALB takes, and here the longest that is forwarded.
pub(super) const TARGET_MAX_BYTES: usize = 16 * 1024;

/// The refusal for a head that hyper answered with `status`; `head` is what is known of it.
pub(super) fn of(status: StatusCode, head: &[u8]) -> Refusal {
    let mut lines = lines(head);
    let request_line = lines.next().unwrap_or_default();
    match status {
        StatusCode::URI_TOO_LONG => Refusal::uri_too_long(),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE if request_line.len() > TARGET_MAX_BYTES => Refusal::uri_too_long(),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Refusal::head_too_large(),
        _ if has_other_version(request_line) => Refusal::version(),
        _ if lines.any(|line| {
            matches!(field(line), Some((name, value))
            if name.eq_ignore_ascii_case(b"transfer-encoding") && !value.eq_ignore_ascii_case(b"chunked"))
        }) =>
        {
            Refusal::transfer_encoding()
        }
        _ => Refusal::malformed("This is not an HTTP/1.1 request."),
    }
}

/// Whether a head announces its body's length. Looked at only for a chunked request, where hyper has removed it.
pub(super) fn announces_length(head: &[u8]) -> bool {
    lines(head).skip(1).any(|line| field(line).is_some_and(|(name, _)| name.eq_ignore_ascii_case(b"content-length")))
}

/// The lines of the first head in these bytes; empty lines before it are allowed (RFC 9112 §2.2).
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(head.len());
    head[start..]
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .take_while(|line| !line.is_empty())
}

fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
}

/// `GET / HTTP/2.0`, and not `GET /`, which says nothing.
fn has_other_version(request_line: &[u8]) -> bool {
    let version = request_line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    version.starts_with(b"HTTP/") && !version.starts_with(b"HTTP/1.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, head: &str) -> &'static str {
        of(StatusCode::from_u16(status).expect("a status"), head.as_bytes()).code()
    }

    #[test]
    fn each_broken_head_has_its_own_code() {
        assert_eq!(code(400, "GET / HTTP/2.0\r\n\r\n"), "unsupported_version");
        assert_eq!(code(400, "\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "unsupported_version");
        assert_eq!(code(400, "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"), "unsupported_transfer_encoding");
        assert_eq!(code(400, "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"), "malformed_request");
        assert_eq!(code(400, "\u{16}\u{3}\u{1}"), "malformed_request");
        assert_eq!(code(400, ""), "malformed_request");
        assert_eq!(code(414, ""), "uri_too_long");
        assert_eq!(code(431, "GET / HTTP/1.1\r\na: b\r\n"), "headers_too_large");
        assert_eq!(code(431, &format!("GET /{}", "a".repeat(TARGET_MAX_BYTES))), "uri_too_long");
    }

    #[test]
    fn a_length_is_found_in_the_first_head_only() {
        let chunked = "\r\nPOST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
        assert!(announces_length(format!("{chunked}content-LENGTH : 4\r\n\r\n").as_bytes()));
        assert!(!announces_length(format!("{chunked}\r\nContent-Length: 4\r\n\r\n").as_bytes()));
        assert!(!announces_length(b""));
    }
}
