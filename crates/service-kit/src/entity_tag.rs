//! Entity tags and the conditions that clients make with them (RFC 9110 §8.8.3, §13.1.1, §13.1.2).

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::problem::Problem;

/// `If-Match`, for writes: absent is `None`, malformed is 400 `invalid_if_match`, because a condition that was meant to
/// protect somebody's change must not be dropped in silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfMatch(pub Option<EntityTags>);

/// `If-None-Match`, for reads: absent or malformed is `None`, because a condition that only saves bytes may be ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfNoneMatch(pub Option<EntityTags>);

/// The value of either header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntityTags {
    /// `*`: whatever representation there is.
    Any,
    /// One of these; never empty.
    List(Vec<EntityTag>),
}

/// One entity tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag {
    /// Marked with `W/`.
    pub weak: bool,
    /// What stands between the quotes; visible ASCII or `obs-text`.
    pub opaque: Vec<u8>,
}

impl EntityTags {
    /// Strong comparison, as `If-Match` demands: weak tags match nothing.
    #[must_use]
    pub fn match_strongly(&self, opaque: &str) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| !tag.weak && tag.opaque == opaque.as_bytes()),
        }
    }

    /// Weak comparison, as `If-None-Match` demands: only what stands between the quotes counts.
    #[must_use]
    pub fn match_weakly(&self, opaque: &str) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| tag.opaque == opaque.as_bytes()),
        }
    }

    /// Reads all lines of the header `name`: `None` when it is absent.
    fn read(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Self>, Malformed> {
        if !headers.contains_key(name) {
            return Ok(None);
        }
        // Several lines are one list (RFC 9110 §5.3).
        let lines: Vec<_> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        let value = lines.join(&b","[..]);
        if value.trim_ascii() == b"*" {
            return Ok(Some(Self::Any));
        }
        let tags = parse_list(&value).ok_or(Malformed)?;
        if tags.is_empty() { Err(Malformed) } else { Ok(Some(Self::List(tags))) }
    }
}

struct Malformed;

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        EntityTags::read(&parts.headers, &IF_MATCH).map(Self).map_err(|Malformed| {
            Problem::bad_request("invalid_if_match", "If-Match takes `*` or a list of quoted entity tags.")
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(EntityTags::read(&parts.headers, &IF_NONE_MATCH).unwrap_or(None)))
    }
}

/// A comma-separated list whose elements may be empty (RFC 9110 §5.6.1.2) and whose tags may hold commas.
fn parse_list(mut rest: &[u8]) -> Option<Vec<EntityTag>> {
    let mut tags = Vec::new();
    loop {
        while let [b' ' | b'\t' | b',', tail @ ..] = rest {
            rest = tail;
        }
        if rest.is_empty() {
            return Some(tags);
        }
        let (weak, quoted) = rest.strip_prefix(b"W/").map_or((false, rest), |strong| (true, strong));
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|byte| *byte == b'"')?;
        let opaque = &inner[..end];
        if !opaque.iter().all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)) {
            return None;
        }
        tags.push(EntityTag { weak, opaque: opaque.to_vec() });
        rest = inner[end + 1..].trim_ascii_start();
        if !matches!(rest, [] | [b',', ..]) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Option<EntityTags>, Malformed> {
        let lines = lines.iter().map(|line| (IF_MATCH, HeaderValue::from_bytes(line.as_bytes()).unwrap()));
        EntityTags::read(&lines.collect(), &IF_MATCH)
    }

    fn tags(lines: &[&str]) -> EntityTags {
        read(lines).ok().flatten().expect("well-formed")
    }

    #[test]
    fn absent_is_no_condition() {
        assert!(matches!(read(&[]), Ok(None)));
    }

    #[test]
    fn a_star_matches_whatever_there_is() {
        assert_eq!(tags(&[" * "]), EntityTags::Any);
        assert!(EntityTags::Any.match_strongly("x") && EntityTags::Any.match_weakly("x"));
    }

    #[test]
    fn lists_may_span_lines_and_have_empty_elements_and_commas_inside_tags() {
        let tags = tags(&[r#""a", , W/"b""#, "\t\"c,d\" ,"]);
        for opaque in ["a", "c,d"] {
            assert!(tags.match_strongly(opaque), "{opaque}");
        }
        assert!(!tags.match_strongly("b"), "weak tags match nothing strongly");
        assert!(tags.match_weakly("b"));
        assert!(!tags.match_weakly("c"));
    }

    #[test]
    fn malformed_lists_are_noticed() {
        for value in [
            "",
            ",",
            "a",
            r#""a"#,
            r#""a""b""#,
            r#""a" "b""#,
            r#"w/"a""#,
            r#"W/ "a""#,
            r#"*, "a""#,
            r#""a b""#,
            r#""a"; x"#,
        ] {
            assert!(read(&[value]).is_err(), "{value:?} was accepted");
        }
    }

    #[test]
    fn the_empty_tag_and_high_bytes_are_tags() {
        assert!(tags(&[r#""""#]).match_strongly(""));
        assert!(tags(&["\"é\""]).match_strongly("é"));
    }
}
