//! Request ids: a well-formed one is echoed, anything else is replaced.

use http::HeaderMap;
use uuid::Uuid;

use super::REQUEST_ID;

const MAX_CHARS: usize = 128;

/// The client's own id where it is one header of 1 to 128 letters, digits, `-`, `_`, `.`; else a new random one. Ids go
/// into logs and headers, so nothing else may pass.
pub(super) fn of(headers: &HeaderMap) -> String {
    let mut values = headers.get_all(REQUEST_ID).iter();
    match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
        (Some(id), None) if is_well_formed(id) => id.to_owned(),
        _ => Uuid::new_v4().simple().to_string(),
    }
}

fn is_well_formed(id: &str) -> bool {
    (1..=MAX_CHARS).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn id_for(values: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(REQUEST_ID, HeaderValue::from_static(value));
        }
        of(&headers)
    }

    #[test]
    fn well_formed_ids_are_echoed() {
        assert_eq!(id_for(&["Root-1.2_3"]), "Root-1.2_3");
    }

    #[test]
    fn anything_else_is_replaced() {
        for values in
            [&[][..], &[""], &["a b"], &["{x}"], &["a", "b"], &[&*Box::leak("x".repeat(129).into_boxed_str())]]
        {
            let id = id_for(values);
            assert_eq!(id.len(), 32, "{values:?} gave {id}");
        }
        assert_ne!(id_for(&[]), id_for(&[]));
    }
}
