//! Media types: what an upload declared, and what a download may say.

use axum::http::HeaderValue;
use service_kit::fields::Invalid;

/// Longest declared type, parameters included.
pub(crate) const MAX_BYTES: usize = 255;

/// What a file is when nothing was declared (RFC 9110 §8.3).
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// A well-formed media type as its uploader declared it. It says nothing about the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentType(mime::Mime);

impl ContentType {
    /// `application/octet-stream`.
    pub(crate) fn unknown() -> Self {
        Self(mime::APPLICATION_OCTET_STREAM)
    }

    /// Reads the value of a `Content-Type` header.
    ///
    /// # Errors
    /// [`Invalid`] with `invalid_content_type`.
    pub(crate) fn parse(raw: &str) -> Result<Self, Invalid> {
        let invalid = |detail: String| Invalid::new("invalid_content_type", detail);
        if raw.len() > MAX_BYTES {
            return Err(invalid(format!("A content type has at most {MAX_BYTES} bytes.")));
        }
        // `mime` lets bytes above ASCII into quoted parameters; a header of a later download could not carry them.
        if !raw.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(invalid("A content type is printable ASCII.".to_owned()));
        }
        let parsed: mime::Mime = raw.trim().parse().map_err(|_| invalid("This is not `type/subtype`.".to_owned()))?;
        // `mime` takes an empty subtype for one.
        if parsed.type_() == mime::STAR || parsed.subtype() == mime::STAR || parsed.essence_str().ends_with('/') {
            return Err(invalid("A content type names one type and one subtype.".to_owned()));
        }
        Ok(Self(parsed))
    }

    /// The declared type.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_ref()
    }

    /// Its parts.
    pub(crate) fn parsed(&self) -> &mime::Mime {
        &self.0
    }
}

/// The type under which stored bytes are served: the declared one, unless a browser could run what it says. Such a
/// file keeps its declared type in the metadata and leaves as `application/octet-stream`. `nosniff`, `attachment` and a
/// sandboxing policy go with every download; this is the layer that holds when a client strips those.
pub(crate) fn served_as(declared: &str) -> HeaderValue {
    let served = if is_active(declared) { UNKNOWN } else { declared };
    HeaderValue::from_str(served).unwrap_or(HeaderValue::from_static(UNKNOWN))
}

/// HTML, every kind of XML (it can carry scripts and style sheets: SVG, XHTML, `XSLT`), scripts, and containers that embed
/// those.
fn is_active(declared: &str) -> bool {
    let Ok(parsed) = declared.parse::<mime::Mime>() else { return true };
    let (kind, subtype) = (parsed.type_().as_str(), parsed.subtype().as_str());
    let suffix = parsed.suffix().map_or("", |suffix| suffix.as_str());
    // An office document is named after XML but is a zip file.
    let office = subtype.starts_with("vnd.openxmlformats-officedocument.");
    matches!(kind, "multipart" | "message")
        || suffix == "xml"
        || subtype == "css"
        || (!office && ["html", "xml", "xsl", "svg", "script", "flash"].iter().any(|word| subtype.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_is_kept_with_its_parameters() {
        for (raw, expected) in [
            ("text/plain", "text/plain"),
            ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
            (" image/png ", "image/png"),
            ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
        ] {
            assert_eq!(ContentType::parse(raw).unwrap().as_str(), expected);
        }
        assert_eq!(ContentType::unknown().as_str(), "application/octet-stream");
    }

    #[test]
    fn what_is_no_type_is_refused() {
        let long = format!("text/{}", "a".repeat(MAX_BYTES));
        for raw in [
            "",
            "text",
            "text/",
            "/plain",
            "*/*",
            "text/*",
            "text/plain; charset",
            "te xt/plain",
            "text/plàin",
            "a/b\r\nx: y",
            &long,
        ] {
            assert_eq!(ContentType::parse(raw).unwrap_err().code, "invalid_content_type", "{raw:?}");
        }
    }

    #[test]
    fn what_a_browser_could_run_is_served_as_bytes() {
        for active in [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            "application/xhtml+xml",
            "image/svg+xml",
            "text/xml",
            "application/xml",
            "application/atom+xml",
            "text/xsl",
            "text/javascript",
            "application/x-javascript",
            "application/ecmascript",
            "text/vbscript",
            "text/css",
            "multipart/related; boundary=x",
            "message/rfc822",
            "application/x-shockwave-flash",
            "not a type",
        ] {
            assert_eq!(served_as(active), UNKNOWN, "{active}");
        }
        for passive in [
            "image/png",
            "text/plain; charset=utf-8",
            "application/pdf",
            "application/json",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/zip",
            "video/mp4",
        ] {
            assert_eq!(served_as(passive), passive);
        }
    }
}
