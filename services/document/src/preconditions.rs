//! Conditional requests for a document's content: RFC 9110 §13. Content never changes, so its SHA-256 is a strong validator
//! and the time of its upload is an exact one.

use std::time::SystemTime;

use axum::http::header::{IF_MODIFIED_SINCE, IF_RANGE, IF_UNMODIFIED_SINCE};
use axum::http::{HeaderMap, HeaderName};
use service_kit::entity_tag::{IfMatch, IfNoneMatch};
use time::OffsetDateTime;

/// What identifies the current representation.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    /// What stands between the quotes of the entity tag.
    opaque: String,
    /// Whole seconds: HTTP dates have no more.
    modified: SystemTime,
}

/// What the preconditions of a GET or HEAD come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answer as if there were none.
    Proceed,
    /// 304: the client has it already.
    NotModified,
    /// 412: the client wanted another version.
    Failed,
}

impl Validators {
    /// Validators of content with this SHA-256 (in hexadecimal), uploaded at `created_at`.
    pub(crate) fn new(sha256: String, created_at: OffsetDateTime) -> Self {
        Self { opaque: sha256, modified: created_at.truncate_to_second().into() }
    }

    /// `ETag`.
    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.opaque)
    }

    /// `Last-Modified`.
    pub(crate) fn last_modified(&self) -> String {
        httpdate::fmt_http_date(self.modified)
    }

    /// Evaluates in the order of §13.2.2: tags go before dates, and a date that is none is ignored.
    pub(crate) fn evaluate(&self, if_match: &IfMatch, if_none_match: &IfNoneMatch, headers: &HeaderMap) -> Verdict {
        let wanted = match &if_match.0 {
            Some(tags) => tags.match_strongly(&self.opaque),
            None => date(headers, IF_UNMODIFIED_SINCE).is_none_or(|since| self.modified <= since),
        };
        if !wanted {
            return Verdict::Failed;
        }
        let known = match &if_none_match.0 {
            Some(tags) => tags.match_weakly(&self.opaque),
            None => date(headers, IF_MODIFIED_SINCE).is_some_and(|since| self.modified <= since),
        };
        if known { Verdict::NotModified } else { Verdict::Proceed }
    }

    /// Whether a `Range` may be honoured: there is no `If-Range`, or it names exactly this representation (§13.1.5). A weak tag
    /// never does.
    pub(crate) fn range_applies(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(IF_RANGE) else { return true };
        let Ok(value) = value.to_str() else { return false };
        value == self.etag() || httpdate::parse_http_date(value).is_ok_and(|date| date == self.modified)
    }
}

fn date(headers: &HeaderMap, field: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(field)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use axum::extract::FromRequestParts;
    use axum::http::Request;
    use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
    use time::macros::datetime;

    use super::*;

    const TAG: &str = "\"0123abc\"";
    const BEFORE: &str = "Sun, 01 Mar 2026 11:59:59 GMT";
    const EXACT: &str = "Sun, 01 Mar 2026 12:00:00 GMT";
    const AFTER: &str = "Sun, 01 Mar 2026 12:00:01 GMT";

    fn validators() -> Validators {
        Validators::new("0123abc".to_owned(), datetime!(2026-03-01 12:00:00.75 UTC))
    }

    async fn verdict(pairs: &[(HeaderName, &str)]) -> Verdict {
        let request = pairs.iter().fold(Request::builder(), |builder, (name, value)| builder.header(name, *value));
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let if_match = IfMatch::from_request_parts(&mut parts, &()).await.unwrap();
        let if_none_match = IfNoneMatch::from_request_parts(&mut parts, &()).await.unwrap();
        validators().evaluate(&if_match, &if_none_match, &parts.headers)
    }

    #[test]
    fn validators_are_a_quoted_hash_and_a_date_in_seconds() {
        assert_eq!(validators().etag(), TAG);
        assert_eq!(validators().last_modified(), EXACT);
    }

    #[tokio::test]
    async fn known_tags_are_compared_weakly_and_wanted_ones_strongly() {
        let weak = format!("W/{TAG}");
        assert_eq!(verdict(&[]).await, Verdict::Proceed);
        for value in [TAG, &weak, "*"] {
            assert_eq!(verdict(&[(IF_NONE_MATCH, value)]).await, Verdict::NotModified, "{value}");
        }
        assert_eq!(verdict(&[(IF_NONE_MATCH, "\"x\"")]).await, Verdict::Proceed);
        for value in [TAG, "*"] {
            assert_eq!(verdict(&[(IF_MATCH, value)]).await, Verdict::Proceed, "{value}");
        }
        for value in [&weak, "\"x\""] {
            assert_eq!(verdict(&[(IF_MATCH, value)]).await, Verdict::Failed, "{value}");
        }
        assert_eq!(verdict(&[(IF_MATCH, "\"x\""), (IF_NONE_MATCH, TAG)]).await, Verdict::Failed);
    }

    #[tokio::test]
    async fn dates_count_only_without_tags_and_only_when_they_are_dates() {
        for (value, expected) in [
            (BEFORE, Verdict::Proceed),
            (EXACT, Verdict::NotModified),
            (AFTER, Verdict::NotModified),
            ("yesterday", Verdict::Proceed),
        ] {
            assert_eq!(verdict(&[(IF_MODIFIED_SINCE, value)]).await, expected, "{value}");
        }
        for (value, expected) in [
            (BEFORE, Verdict::Failed),
            (EXACT, Verdict::Proceed),
            (AFTER, Verdict::Proceed),
            ("never", Verdict::Proceed),
        ] {
            assert_eq!(verdict(&[(IF_UNMODIFIED_SINCE, value)]).await, expected, "{value}");
        }
        assert_eq!(verdict(&[(IF_MODIFIED_SINCE, AFTER), (IF_NONE_MATCH, "\"x\"")]).await, Verdict::Proceed);
        assert_eq!(verdict(&[(IF_UNMODIFIED_SINCE, BEFORE), (IF_MATCH, TAG)]).await, Verdict::Proceed);
    }

    #[test]
    fn if_range_lets_a_range_through_only_for_exactly_this_content() {
        let applies = |value: &str| {
            let headers = HeaderMap::from_iter([(IF_RANGE, value.parse().unwrap())]);
            validators().range_applies(&headers)
        };
        assert!(validators().range_applies(&HeaderMap::new()));
        assert!(applies(TAG));
        assert!(applies(EXACT));
        for value in ["\"x\"", &format!("W/{TAG}"), AFTER, BEFORE, "*", "", "nonsense", TAG.trim_matches('"')] {
            assert!(!applies(value), "{value}");
        }
    }
}
