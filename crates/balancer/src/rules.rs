//! Listener rules: which target group answers which path.
//!
//! As an ALB does, the path is matched as the client sent it: nothing is decoded or normalised, `/v1/documents/../x` is a
//! path below `/v1/documents/`, and case matters. Rules are tried in order and the first that matches decides.

use std::fmt;
use std::str::FromStr;

/// A path pattern: `*` stands for any characters (none and `/` included), `?` for exactly one.
///
/// Source: AWS, "Condition types for listener rules", path conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    kind: Kind,
}

/// The two shapes that nearly every rule has need no search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    /// The text without its last character, `*`, is a prefix.
    Prefix,
    Glob,
}

/// Why a text is no path pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Paths begin with a slash, and so does a pattern that can match one.
    #[error("a path pattern begins with / or *")]
    NoSlash,
    /// The length that an ALB allows.
    #[error("a path pattern has at most 128 characters")]
    TooLong,
    /// A path holds visible ASCII characters only.
    #[error("a path pattern holds visible ASCII characters only")]
    Characters,
}

impl PathPattern {
    /// Whether the pattern matches all of `path`.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match self.kind {
            Kind::Exact => self.text == path,
            Kind::Prefix => path.as_bytes().starts_with(&self.text.as_bytes()[..self.text.len() - 1]),
            Kind::Glob => glob(self.text.as_bytes(), path.as_bytes()),
        }
    }
}

/// Matches without recursion: after a mismatch only the last `*` is stretched, so that no pattern takes exponential time.
fn glob(pattern: &[u8], path: &[u8]) -> bool {
    let (mut at_pattern, mut at_path) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at_path < path.len() {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                star = Some((at_pattern, at_path));
                at_pattern += 1;
            }
            Some(byte) if *byte == b'?' || *byte == path[at_path] => {
                at_pattern += 1;
                at_path += 1;
            }
            _ => {
                let Some((star_pattern, star_path)) = star else { return false };
                star = Some((star_pattern, star_path + 1));
                at_pattern = star_pattern + 1;
                at_path = star_path + 1;
            }
        }
    }
    pattern[at_pattern..].iter().all(|byte| *byte == b'*')
}

impl FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if !text.starts_with(['/', '*']) {
            return Err(PatternError::NoSlash);
        }
        if text.len() > 128 {
            return Err(PatternError::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(PatternError::Characters);
        }
        let kind = match text.find(['*', '?']) {
            None => Kind::Exact,
            Some(at) if at + 1 == text.len() && text.ends_with('*') => Kind::Prefix,
            Some(_) => Kind::Glob,
        };
        Ok(Self { text: text.to_owned(), kind })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One rule: requests whose path one of the patterns matches go to the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Any of them suffices.
    pub patterns: Vec<PathPattern>,
    /// Name of the target group.
    pub group: String,
}

impl Rule {
    /// A rule that forwards `patterns` to `group`.
    ///
    /// # Errors
    /// The first text that is no pattern.
    pub fn forward(group: &str, patterns: &[&str]) -> Result<Self, PatternError> {
        let patterns = patterns.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        Ok(Self { patterns, group: group.to_owned() })
    }

    /// Whether the rule applies to `path`.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(path))
    }
}

/// Datum's rules, the ones that the load balancer on AWS has.
#[must_use]
pub fn datum() -> Vec<Rule> {
    [
        ("auth", &["/v1/auth", "/v1/auth/*", "/.well-known/jwks.json"][..]),
        ("actor", &["/v1/actors", "/v1/actors/*"]),
        ("document", &["/v1/documents", "/v1/documents/*"]),
    ]
    .into_iter()
    // The texts are constants, and a test parses them all.
    .filter_map(|(group, patterns)| Rule::forward(group, patterns).ok())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        pattern.parse::<PathPattern>().expect("a pattern").matches(path)
    }

    #[test]
    fn a_pattern_without_wildcards_matches_only_itself() {
        assert!(matches("/v1/auth", "/v1/auth"));
        for path in ["/v1/auth/", "/v1/authx", "/V1/auth", "/v1/aut", "", "/v1/auth?x"] {
            assert!(!matches("/v1/auth", path), "{path}");
        }
    }

    #[test]
    fn a_star_at_the_end_matches_whatever_follows_and_nothing_at_all() {
        for path in ["/v1/auth/", "/v1/auth/login", "/v1/auth/a/b", "/v1/auth/../documents"] {
            assert!(matches("/v1/auth/*", path), "{path}");
        }
        for path in ["/v1/auth", "/v1/authx/login"] {
            assert!(!matches("/v1/auth/*", path), "{path}");
        }
    }

    #[test]
    fn stars_and_question_marks_work_anywhere() {
        assert!(matches("/a/*/c", "/a/b/c"));
        assert!(matches("/a/*/c", "/a/b/c/c"));
        assert!(!matches("/a/*/c", "/a/c"));
        assert!(matches("/?/b", "/a/b"));
        assert!(!matches("/?/b", "//b/b"));
        assert!(matches("*.html", "/page.html"));
        assert!(matches("*", "/"));
    }

    #[test]
    fn no_pattern_takes_exponential_time() {
        let pattern = format!("/{}b", "*a".repeat(40));
        assert!(!matches(&pattern, &format!("/{}", "a".repeat(10_000))));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert_eq!("v1".parse::<PathPattern>(), Err(PatternError::NoSlash));
        assert_eq!(format!("/{}", "a".repeat(128)).parse::<PathPattern>(), Err(PatternError::TooLong));
        assert_eq!("/a b".parse::<PathPattern>(), Err(PatternError::Characters));
    }

    #[test]
    fn datums_rules_cover_both_forms_of_each_prefix() {
        let rules = datum();
        assert_eq!(rules.len(), 3, "each constant parses");
        let group = |path: &str| rules.iter().find(|rule| rule.matches(path)).map(|rule| rule.group.as_str());
        for (path, expected) in [
            ("/v1/auth", Some("auth")),
            ("/v1/auth/login", Some("auth")),
            ("/.well-known/jwks.json", Some("auth")),
            ("/v1/actors", Some("actor")),
            ("/v1/actors/me", Some("actor")),
            ("/v1/documents", Some("document")),
            ("/v1/documents/1/content", Some("document")),
            ("/v1/documentsx", None),
            ("/v1", None),
            ("/", None),
            ("/ready", None),
            ("/.well-known/jwks.json/", None),
        ] {
            assert_eq!(group(path), expected, "{path}");
        }
    }
}
