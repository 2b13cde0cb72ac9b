//! The name of a document: what a client calls its file. It is only ever shown; no path and no object key is made of it.

use std::fmt;

use service_kit::fields::Invalid;
use service_kit::unicode::{is_bidi_control, is_control, is_invisible};
use unicode_normalization::UnicodeNormalization;

/// Longest name, in bytes of UTF-8: what the file systems that will receive a download allow.
pub(crate) const MAX_BYTES: usize = 255;

/// A file name without a path: 1 to [`MAX_BYTES`] bytes, NFC, nothing in it that hides or reorders text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentName(String);

impl DocumentName {
    /// Takes the last path component of what a client sent (over both `/` and `\`, and without a drive prefix, because
    /// RFC 7578 §4.2 forbids to trust the path). Percent sequences stay as they are: a query string is already decoded,
    /// and decoding twice is how `%252e` becomes a traversal.
    ///
    /// # Errors
    /// `empty`, `invalid_name`, `control_character`, `bidi_character`, `too_long`.
    pub(crate) fn parse(raw: &str) -> Result<Self, Invalid> {
        if raw.is_empty() {
            return Err(Invalid::new("empty", "A file needs a name."));
        }
        let last = raw.rsplit(['/', '\\']).next().unwrap_or_default();
        let name: String = without_drive(last).nfc().collect();
        if name.chars().any(is_control) {
            return Err(Invalid::new("control_character", "Line breaks and control characters are not allowed."));
        }
        if name.chars().any(is_bidi_control) {
            return Err(Invalid::new("bidi_character", "Characters that turn the direction of text are not allowed."));
        }
        // Joiners and selectors inside a name belong to writing; a name of nothing else could not be seen.
        if name.chars().all(|c| c.is_whitespace() || is_invisible(c)) || name == "." || name == ".." {
            return Err(Invalid::new("invalid_name", "There is no file name in it."));
        }
        if name.len() > MAX_BYTES {
            return Err(Invalid::new("too_long", format!("A name has at most {MAX_BYTES} bytes in UTF-8.")));
        }
        Ok(Self(name))
    }

    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocumentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `C:x` is a path relative to the current folder of drive C.
fn without_drive(component: &str) -> &str {
    match component.as_bytes() {
        [letter, b':', ..] if letter.is_ascii_alphabetic() => &component[2..],
        _ => component,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(raw: &str) -> String {
        DocumentName::parse(raw).unwrap().0
    }

    fn code(raw: &str) -> &'static str {
        DocumentName::parse(raw).unwrap_err().code
    }

    #[test]
    fn only_the_last_path_component_remains() {
        for (raw, expected) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            (r"..\..\x", "x"),
            ("/abs", "abs"),
            (r"C:\x", "x"),
            ("C:x", "x"),
            (r"a.txt/../../y", "y"),
            (r"mixed/slashes\z.txt", "z.txt"),
            ("%2e%2e%2f", "%2e%2e%2f"),
            ("a%00b", "a%00b"),
            ("...", "..."),
            (".hidden", ".hidden"),
            (" spaced .txt", " spaced .txt"),
            ("ab:c", "ab:c"),
        ] {
            assert_eq!(name(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn nothing_that_is_no_name_is_one() {
        assert_eq!(code(""), "empty");
        for raw in [".", "..", "a/", r"a\", "../..", "C:", r"C:\", "   ", "\u{a0}", "x/.", "\u{200b}", "\u{feff} "] {
            assert_eq!(code(raw), "invalid_name", "{raw:?}");
        }
    }

    #[test]
    fn characters_that_break_or_turn_text_are_refused() {
        for raw in ["a\0b", "a\nb", "a\rb", "a\tb", "\u{7f}", "a\u{85}b", "a\u{2028}b"] {
            assert_eq!(code(raw), "control_character", "{raw:?}");
        }
        for raw in ["a\u{202e}gpj.exe", "\u{2066}a", "\u{200f}a"] {
            assert_eq!(code(raw), "bidi_character", "{raw:?}");
        }
        // An emoji's zero-width joiner is text.
        assert_eq!(name("👩\u{200D}🚀.png"), "👩\u{200D}🚀.png");
    }

    #[test]
    fn names_are_compared_and_measured_in_nfc() {
        assert_eq!(name("e\u{301}.txt"), "é.txt");
        assert_eq!(name(&"a".repeat(255)).len(), 255);
        assert_eq!(code(&"a".repeat(256)), "too_long");
        assert_eq!(code(&"語".repeat(300)), "too_long");
        assert_eq!(code(&"a".repeat(10_000)), "too_long");
        // A long path to a short name is no long name.
        assert_eq!(name(&format!("{}/x", "a".repeat(10_000))), "x");
        // U+0958 decomposes under NFC: three bytes become six, and the limit holds for what is stored.
        assert_eq!(code(&"\u{0958}".repeat(85)), "too_long");
    }
}
