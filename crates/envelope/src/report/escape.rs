//! What comes from a result file is text, never markup: labels, roles, error codes and file names may hold anything.

use std::fmt::Write as _;

/// For HTML and SVG, in text and in double-quoted attributes.
#[must_use]
pub(crate) fn markup(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(visible(other)),
        }
    }
    safe
}

/// For the beginning of a line of Markdown (GitHub's flavour), where also headings, lists and quotes could begin.
#[must_use]
pub(crate) fn markdown_line(text: &str) -> String {
    let safe = markdown(text);
    let marker = text.starts_with('#') || ["- ", "+ "].iter().any(|marker| text.starts_with(marker)) || text == "-";
    if marker { format!("\\{safe}") } else { safe }
}

/// For text within a line of Markdown, also in a table.
#[must_use]
pub(crate) fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let inside_a_word = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        match character {
            '\n' | '\r' => safe.push(' '),
            // Within a word it begins no emphasis, and names such as DB_POOL_MAX stay readable.
            '_' if inside_a_word => safe.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' => {
                let _ = write!(safe, "\\{character}");
            }
            other => safe.push(visible(other)),
        }
        before = character;
    }
    safe
}

/// Control characters, and those that turn the direction of writing, would show something else than is there.
fn visible(character: char) -> char {
    match character {
        '\t' | '\n' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        other if other.is_control() => '\u{fffd}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_stays_text() {
        assert_eq!(
            markup("<script>alert('1')</script> & \"x\""),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;"
        );
        assert_eq!(markup("a\u{0}b\u{1b}[31m\u{202e}c"), "a\u{fffd}b\u{fffd}[31m\u{fffd}c");
    }

    #[test]
    fn markdown_stays_text() {
        assert_eq!(markdown("a | b\n<img src=x> *c* [d](e) `f`"), "a \\| b \\<img src=x\\> \\*c\\* \\[d\\](e) \\`f\\`");
        assert_eq!(markdown_line("# no heading"), "\\# no heading");
        assert_eq!(markdown_line("- no list"), "\\- no list");
        assert_eq!(markdown_line("-3 % is a figure"), "-3 % is a figure");
        assert_eq!(markdown("&lt;b&gt;"), "\\&lt;b\\&gt;");
    }

    #[test]
    fn names_stay_readable() {
        assert_eq!(markdown("DB_POOL_MAX of get-user"), "DB_POOL_MAX of get-user");
        assert_eq!(markdown("_emphasis_"), "\\_emphasis\\_");
    }
}
