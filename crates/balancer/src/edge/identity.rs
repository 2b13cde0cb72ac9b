//! Request ids: the client's own where it is well-formed, else a new one, so that the balancer's log lines and a task's
//! carry the same.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries a request's id both ways.
pub(super) const REQUEST_ID: HeaderName = service_kit::middleware::REQUEST_ID;

const MAX_CHARS: usize = 128;

/// Makes ids: a random prefix a process and a counter. Unlike random ids they cost no system call, and nobody guesses
/// anything by guessing them.
#[derive(Debug)]
pub(super) struct RequestIds {
    prefix: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(super) fn new() -> Self {
        Self { prefix: rand::random(), next: AtomicU64::new(rand::random()) }
    }

    /// 32 hexadecimal digits.
    fn make(&self) -> HeaderValue {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Wraps around after 2^64 requests.
        let words = [self.prefix, self.next.fetch_add(1, Ordering::Relaxed)];
        let mut text = [0; 32];
        for (at, byte) in words.iter().flat_map(|word| word.to_be_bytes()).enumerate() {
            text[2 * at] = DIGITS[usize::from(byte >> 4)];
            text[2 * at + 1] = DIGITS[usize::from(byte & 15)];
        }
        HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("unknown"))
    }

    /// The id of a request that sent no usable head.
    pub(super) fn fresh(&self) -> HeaderValue {
        self.make()
    }

    /// The request's id, which its headers carry from now on. The rule is the tasks' own: one header of 1 to 128 letters,
    /// digits, `-`, `_`, `.`; anything else would be replaced there, and the two would log different ids.
    pub(super) fn ensure(&self, headers: &mut HeaderMap) -> HeaderValue {
        let mut values = headers.get_all(REQUEST_ID).iter();
        match (values.next(), values.next()) {
            (Some(id), None) if is_well_formed(id.as_bytes()) => id.clone(),
            _ => {
                let id = self.make();
                headers.insert(REQUEST_ID, id.clone());
                id
            }
        }
    }
}

fn is_well_formed(id: &[u8]) -> bool {
    (1..=MAX_CHARS).contains(&id.len())
        && id.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ensured(values: &[&str]) -> (HeaderMap, HeaderValue) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(REQUEST_ID, HeaderValue::from_str(value).expect("a value"));
        }
        let id = RequestIds::new().ensure(&mut headers);
        (headers, id)
    }

    #[test]
    fn a_well_formed_id_stays() {
        let (headers, id) = ensured(&["Root-1.2_3"]);
        assert_eq!(id, "Root-1.2_3");
        assert_eq!(headers[REQUEST_ID], "Root-1.2_3");
    }

    #[test]
    fn anything_else_is_replaced_in_the_request() {
        let long = "x".repeat(129);
        for values in [&[][..], &[""], &["a b"], &["{x}"], &["a", "b"], &[long.as_str()]] {
            let (headers, id) = ensured(values);
            assert_eq!(id.len(), 32, "{values:?}");
            assert_eq!(headers.get_all(REQUEST_ID).iter().collect::<Vec<_>>(), [&id], "{values:?}");
        }
    }

    #[test]
    fn ids_differ() {
        let ids = RequestIds::new();
        assert_ne!(ids.fresh(), ids.fresh());
        assert_ne!(ids.fresh(), RequestIds::new().fresh());
    }
}
