//! `Content-Disposition` of a download: RFC 6266.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What may stand unencoded in an extended value (`attr-char`, RFC 8187 §3.2.1).
const ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// An attachment of this name. The plain parameter is for programs that do not know the extended one: ASCII, and without the
/// quote, the backslash and the percent sign, which those read in different ways (RFC 6266 appendix D).
pub(crate) fn attachment(name: &str) -> String {
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", utf8_percent_encode(name, ATTR_CHAR))
}

fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_out_plain_and_extended() {
        for (name, expected) in [
            ("report.pdf", "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"),
            ("a b.txt", "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"),
            ("é\"%22.txt", "attachment; filename=\"__%22.txt\"; filename*=UTF-8''%C3%A9%22%2522.txt"),
            ("'; x=1", "attachment; filename=\"'; x=1\"; filename*=UTF-8''%27%3B%20x%3D1"),
            ("日本", "attachment; filename=\"__\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC"),
        ] {
            let expected = expected.replace("__%22", "___22");
            assert_eq!(attachment(name), expected);
        }
    }

    #[test]
    fn whatever_the_name_the_value_is_visible_ascii_with_one_quoted_string() {
        for name in ["\u{202e}x", "a\\b", "\"", "%", "a\u{7f}", "👩\u{200D}🚀"] {
            let value = attachment(name);
            assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{value}");
            assert_eq!(value.matches('"').count(), 2, "{value}");
        }
    }
}
