//! `Content-Disposition` of a form part: RFC 7578 §4.2 over the grammar of RFC 2183.

/// The parameters that count. `filename*` must not be used in forms (RFC 7578 §4.2) and is ignored, so that there is never a
/// second opinion about the name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disposition {
    pub(super) name: String,
    pub(super) filename: Option<String>,
}

impl Disposition {
    /// Reads a header value; `None` where it is malformed, is no `form-data`, has no name, or says one thing twice.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let (kind, mut rest) = split_token(value.trim_matches(BLANK))?;
        if !kind.eq_ignore_ascii_case("form-data") {
            return None;
        }
        let (mut name, mut filename) = (None, None);
        loop {
            rest = rest.trim_start_matches(BLANK);
            if rest.is_empty() {
                return Some(Self { name: name?, filename });
            }
            let (key, after_key) = split_token(rest.strip_prefix(';')?.trim_start_matches(BLANK))?;
            let after_equals = after_key.trim_start_matches(BLANK).strip_prefix('=')?.trim_start_matches(BLANK);
            let (parsed, after) = value_of(after_equals)?;
            rest = after;
            let slot = match key {
                _ if key.eq_ignore_ascii_case("name") => &mut name,
                _ if key.eq_ignore_ascii_case("filename") => &mut filename,
                _ => continue,
            };
            if slot.replace(parsed).is_some() {
                return None;
            }
        }
    }
}

const BLANK: [char; 2] = [' ', '\t'];

/// A token of RFC 9110 §5.6.2 and what follows it.
fn split_token(text: &str) -> Option<(&str, &str)> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let end = text.bytes().position(|byte| !is_token(byte)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A token or a quoted string, and what follows it. In a quoted string a backslash escapes a quote or a backslash; before
/// anything else it is itself, because browsers that send whole Windows paths do not escape them.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (token, rest) = split_token(text)?;
        return Some((token.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => match characters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> Option<(String, Option<String>)> {
        Disposition::parse(value).map(|disposition| (disposition.name, disposition.filename))
    }

    #[allow(clippy::unnecessary_wraps, reason = "it is what `parse` is compared with")]
    fn named(filename: &str) -> Option<(String, Option<String>)> {
        Some(("file".to_owned(), Some(filename.to_owned())))
    }

    #[test]
    fn names_are_tokens_or_quoted_strings() {
        assert_eq!(parse(r#"form-data; name="file"; filename="a b.txt""#), named("a b.txt"));
        assert_eq!(parse("FORM-DATA;NAME=file;FileName=a.txt"), named("a.txt"));
        assert_eq!(parse("form-data ; name = file ;\tfilename = \"a;b=c\" "), named("a;b=c"));
        assert_eq!(parse(r#"form-data; filename="文書.txt"; name="file"; size=3"#), named("文書.txt"));
        assert_eq!(parse(r#"form-data; name="file"; filename="""#), named(""));
        assert_eq!(parse("form-data; name=file"), Some(("file".to_owned(), None)));
    }

    #[test]
    fn backslashes_escape_only_what_needs_it() {
        assert_eq!(parse(r#"form-data; name=file; filename="say \"hi\".txt""#), named(r#"say "hi".txt"#));
        assert_eq!(parse(r#"form-data; name=file; filename="C:\dir\x.txt""#), named(r"C:\dir\x.txt"));
        assert_eq!(parse(r#"form-data; name=file; filename="a\\b""#), named(r"a\b"));
        assert_eq!(parse(r#"form-data; name=file; filename="%22%2e%2e%2f""#), named("%22%2e%2e%2f"));
    }

    #[test]
    fn the_extended_name_is_ignored() {
        let both = r#"form-data; name=file; filename="safe.txt"; filename*=UTF-8''evil.html"#;
        assert_eq!(parse(both), named("safe.txt"));
        assert_eq!(parse("form-data; name=file; filename*=UTF-8''evil.html"), Some(("file".to_owned(), None)));
    }

    #[test]
    fn malformed_and_ambiguous_values_are_refused() {
        for value in [
            "",
            "form-data",
            "attachment; name=file; filename=x",
            "form-data; filename=x",
            "form-data; name=",
            "form-data; name=file; filename=a b",
            "form-data; name=file; filename=\"open",
            r#"form-data; name=file; filename="trailing\""#,
            "form-data; name=file; filename=a; filename=b",
            "form-data; name=file; name=other; filename=a",
            "form-data name=file",
            "form-data; name=file;; filename=a",
            "form-data; name=file; filename=\"a\"b",
            "form-data; =file",
        ] {
            assert_eq!(parse(value), None, "{value}");
        }
    }
}
