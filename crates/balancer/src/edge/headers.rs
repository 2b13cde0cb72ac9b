//! The headers that a hop adds, and those that end at it (RFC 9110 §7.6.1).

use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, HeaderValue};

use super::answer::Refusal;

pub(super) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// As many addresses as an ALB takes before it answers 463.
const FORWARDED_FOR_MAX: usize = 30;

/// Removes what concerns only the client's connection. `Transfer-Encoding` stays: the caller has checked that it is
/// `chunked`, and without it a chunked `GET` would lose its body.
pub(super) fn strip_request(headers: &mut HeaderMap) {
    // Trailers may be sent back through a hop that says so.
    let wants_trailers = headers.contains_key(TE) && headers.get_all(TE).iter().any(|value| lists(value, "trailers"));
    strip_hop_by_hop(headers);
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Removes what concerns only the target's connection; hyper frames the answer for the client anew.
pub(super) fn strip_response(headers: &mut HeaderMap) {
    strip_hop_by_hop(headers);
    headers.remove(TRANSFER_ENCODING);
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have none of these; a look costs less than a removal.
    if headers.contains_key(CONNECTION) {
        let lines: Vec<HeaderValue> = headers.get_all(CONNECTION).iter().cloned().collect();
        headers.remove(CONNECTION);
        let named = lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
        for name in named.filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok()) {
            // What frames or routes the message is not the sender's to remove.
            if ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) {
                headers.remove(name);
            }
        }
    }
    for name in [KEEP_ALIVE, PROXY_CONNECTION, TE, UPGRADE] {
        headers.remove(name);
    }
}

fn lists(value: &HeaderValue, token: &str) -> bool {
    value.to_str().is_ok_and(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
}

/// Whether the client asks for a WebSocket. Other upgrades are offers, which a hop may pass over.
pub(super) fn wants_websocket(headers: &HeaderMap) -> bool {
    headers.get_all(UPGRADE).iter().any(|value| lists(value, "websocket"))
}

/// Appends the client to `X-Forwarded-For` and says how it came.
///
/// # Errors
/// 463 when there are more addresses than an ALB takes.
pub(super) fn forward(headers: &mut HeaderMap, peer: &HeaderValue, port: &HeaderValue) -> Result<(), Refusal> {
    let forwarded = append_peer(headers, peer)?;
    headers.insert(FORWARDED_FOR, forwarded);
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    headers.insert(FORWARDED_PORT, port.clone());
    Ok(())
}

fn append_peer(headers: &HeaderMap, peer: &HeaderValue) -> Result<HeaderValue, Refusal> {
    let mut lines = headers.get_all(FORWARDED_FOR).iter().filter(|line| !line.is_empty()).peekable();
    if lines.peek().is_none() {
        return Ok(peer.clone());
    }
    let (mut joined, mut addresses) = (BytesMut::new(), 0);
    for line in lines {
        addresses += line.as_bytes().split(|byte| *byte == b',').count();
        joined.extend_from_slice(line.as_bytes());
        joined.extend_from_slice(b", ");
    }
    if addresses > FORWARDED_FOR_MAX {
        return Err(Refusal::too_many_addresses());
    }
    joined.extend_from_slice(peer.as_bytes());
    // Header values and ", " make a header value.
    Ok(HeaderValue::from_maybe_shared(joined.freeze()).unwrap_or_else(|_| peer.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_ends_at_this_hop_is_removed_and_the_rest_stays() {
        let mut headers = map(&[
            ("connection", "keep-alive, X-Mine"),
            ("connection", "x-other, host, content-length"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("x-mine", "1"),
            ("x-other", "1"),
            ("host", "datum"),
            ("content-length", "3"),
            ("authorization", "Bearer x"),
            ("trailer", "x-sum"),
        ]);
        strip_request(&mut headers);
        assert_eq!(names(&headers), ["authorization", "content-length", "host", "trailer"]);
    }

    #[test]
    fn a_client_that_takes_trailers_still_says_so() {
        let mut headers = map(&[("te", "gzip;q=1, Trailers"), ("connection", "TE")]);
        strip_request(&mut headers);
        assert_eq!(headers[TE], "trailers");
    }

    #[test]
    fn chunked_stays_in_requests_only() {
        let chunked = [("transfer-encoding", "chunked"), ("connection", "transfer-encoding")];
        let (mut request, mut response) = (map(&chunked), map(&chunked));
        strip_request(&mut request);
        strip_response(&mut response);
        assert_eq!(names(&request), ["transfer-encoding"]);
        assert!(response.is_empty());
    }

    fn forwarded(lines: &[(&'static str, &'static str)]) -> Result<HeaderValue, Refusal> {
        let mut headers = map(lines);
        forward(&mut headers, &HeaderValue::from_static("127.0.0.1"), &HeaderValue::from_static("8080"))?;
        assert_eq!(headers[FORWARDED_PROTO], "http");
        assert_eq!(headers[FORWARDED_PORT], "8080");
        assert_eq!(headers.get_all(FORWARDED_FOR).iter().count(), 1);
        Ok(headers[FORWARDED_FOR].clone())
    }

    #[test]
    fn the_client_is_the_last_address_whatever_it_claims() {
        assert_eq!(forwarded(&[]).expect("accepted"), "127.0.0.1");
        assert_eq!(forwarded(&[("x-forwarded-for", "")]).expect("accepted"), "127.0.0.1");
        let claimed = [("x-forwarded-for", "192.0.2.1, 192.0.2.2"), ("x-forwarded-for", "192.0.2.3")];
        assert_eq!(forwarded(&claimed).expect("accepted"), "192.0.2.1, 192.0.2.2, 192.0.2.3, 127.0.0.1");
        assert_eq!(
            forwarded(&[("x-forwarded-proto", "https"), ("x-forwarded-port", "1")]).expect("accepted"),
            "127.0.0.1"
        );
    }

    #[test]
    fn more_than_thirty_addresses_are_refused() {
        let thirty = Box::leak(vec!["192.0.2.1"; 30].join(", ").into_boxed_str());
        assert!(forwarded(&[("x-forwarded-for", thirty)]).is_ok());
        let refusal = forwarded(&[("x-forwarded-for", thirty), ("x-forwarded-for", "192.0.2.2")]).expect_err("refused");
        assert_eq!(refusal.status(), 463);
    }

    #[test]
    fn only_a_websocket_cannot_be_passed_over() {
        assert!(wants_websocket(&map(&[("upgrade", "WebSocket")])));
        assert!(!wants_websocket(&map(&[("upgrade", "h2c")])));
        assert!(!wants_websocket(&map(&[])));
    }
}
