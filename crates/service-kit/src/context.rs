//! What is known about the request being served: its id, its stage times, and where it came from.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;

use crate::faults::Armed;
use crate::stages::StageTimes;

/// The state of one request; reachable from anywhere in its future.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) request_id: String,
    pub(crate) stages: StageTimes,
    /// Slows the request down, to test measuring with.
    pub(crate) fault: Option<Armed>,
}

tokio::task_local! {
    pub(crate) static CURRENT: Arc<RequestContext>;
}

/// The current request's id; `None` outside a request.
#[must_use]
pub fn request_id() -> Option<String> {
    CURRENT.try_with(|context| context.request_id.clone()).ok()
}

/// Takes the current request's context along into a task of its own, so that stages measured there count for the request;
/// outside a request it is `future` alone.
pub fn carried<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let context = CURRENT.try_with(Clone::clone).ok();
    async move {
        match context {
            Some(context) => CURRENT.scope(context, future).await,
            None => future.await,
        }
    }
}

/// The other end of the TCP connection; the server puts it into every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// The client's address as far as it can be trusted: the n-th `X-Forwarded-For` entry from the right, n being
/// `TRUSTED_PROXY_HOPS`, or the peer itself for 0 hops and where the header does not reach that far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    pub(crate) fn of(headers: &HeaderMap, peer: Option<PeerAddress>, trusted_hops: usize) -> Self {
        let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |PeerAddress(address)| address.ip());
        let forwarded = trusted_hops.checked_sub(1).and_then(|nth| {
            let values = headers.get_all("x-forwarded-for").iter().rev();
            values
                .flat_map(|value| value.to_str().unwrap_or_default().rsplit(','))
                .map(str::trim)
                .nth(nth)
                .and_then(parse_address)
        });
        Self(canonical(forwarded.unwrap_or(peer)))
    }
}

/// An entry may carry a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
fn parse_address(entry: &str) -> Option<IpAddr> {
    entry
        .parse()
        .ok()
        .or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
        .or_else(|| entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
}

/// `::ffff:192.0.2.1` and `192.0.2.1` are one client.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<Self>().copied();
        Ok(known.unwrap_or_else(|| Self::of(&HeaderMap::new(), parts.extensions.get().copied(), 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(lines: &[&'static str], hops: usize) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", http::HeaderValue::from_static(line));
        }
        let peer = PeerAddress("198.51.100.9:1000".parse().expect("address"));
        ClientAddress::of(&headers, Some(peer), hops).0.to_string()
    }

    #[test]
    fn without_trusted_proxies_the_header_is_ignored() {
        assert_eq!(address(&["203.0.113.1"], 0), "198.51.100.9");
    }

    #[test]
    fn entries_count_from_the_right_over_all_lines() {
        assert_eq!(address(&["203.0.113.1, 203.0.113.2"], 1), "203.0.113.2");
        assert_eq!(address(&["203.0.113.1, 203.0.113.2", "203.0.113.3"], 1), "203.0.113.3");
        assert_eq!(address(&["203.0.113.1, 203.0.113.2", "203.0.113.3"], 2), "203.0.113.2");
    }

    #[test]
    fn what_cannot_be_an_address_falls_back_to_the_peer() {
        for line in ["", "unknown", "203.0.113.1, nonsense"] {
            assert_eq!(address(&[line], 1), "198.51.100.9", "{line}");
        }
        assert_eq!(address(&["203.0.113.1"], 3), "198.51.100.9");
    }

    #[test]
    fn ports_and_mapped_addresses_are_understood() {
        assert_eq!(address(&["203.0.113.1:4711"], 1), "203.0.113.1");
        assert_eq!(address(&["[2001:db8::1]:4711"], 1), "2001:db8::1");
        assert_eq!(address(&["::ffff:203.0.113.1"], 1), "203.0.113.1");
    }
}
