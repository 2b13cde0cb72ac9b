//! Passwords as they come in: the byte cap before any work, normalisation, and the rules for new ones.
//!
//! Rules follow NIST SP 800-63B: length in code points, no composition rules, nothing trimmed, nothing truncated, common ones
//! refused. They apply where a password is set; a login checks none, so that tightening them locks nobody out.

mod common;

use std::fmt;

use service_kit::fields::Invalid;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

/// The most bytes a password may have as it was sent: bounds what is normalised and hashed.
pub const MAX_RAW_BYTES: usize = 1024;

/// The fewest code points of a new password, after NFKC.
pub const MIN_CODE_POINTS: usize = 8;

/// The most code points of a new password, after NFKC.
pub const MAX_CODE_POINTS: usize = 128;

/// NFKC makes UTF-8 at most eleven times as long (UAX #15, "Maximum expansion factors").
const MAX_EXPANSION: usize = 11;

/// A password in NFKC, wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// Reads a password that is to be set.
    ///
    /// # Errors
    /// `too_long`, `too_short`, `only_white_space`, `control_character`, `too_common`.
    pub fn new(raw: String) -> Result<Self, Invalid> {
        let raw = Zeroizing::new(raw);
        if raw.len() > MAX_RAW_BYTES {
            return Err(Invalid::new("too_long", format!("A password may have at most {MAX_RAW_BYTES} bytes.")));
        }
        let password = Self::normalised(&raw);
        password.check_rules()?;
        Ok(password)
    }

    /// Reads a password that is to be verified: no rules. `None` when it is over the byte cap; such a password was never set.
    #[must_use]
    pub fn attempt(raw: String) -> Option<Self> {
        let raw = Zeroizing::new(raw);
        (raw.len() <= MAX_RAW_BYTES).then(|| Self::normalised(&raw))
    }

    /// What is hashed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// What is sent to a provider that hashes itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn normalised(raw: &str) -> Self {
        // Allocated once: a string that grows leaves copies of its contents behind.
        let mut text = Zeroizing::new(String::with_capacity(raw.len() * MAX_EXPANSION));
        text.extend(raw.nfkc());
        Self(text)
    }

    fn check_rules(&self) -> Result<(), Invalid> {
        let text = self.0.as_str();
        let code_points = text.chars().count();
        if code_points < MIN_CODE_POINTS {
            return Err(Invalid::new("too_short", format!("A password has at least {MIN_CODE_POINTS} characters.")));
        }
        if code_points > MAX_CODE_POINTS {
            return Err(Invalid::new("too_long", format!("A password may have at most {MAX_CODE_POINTS} characters.")));
        }
        if text.chars().any(char::is_control) {
            return Err(Invalid::new("control_character", "A password may not contain control characters."));
        }
        if text.chars().all(char::is_whitespace) {
            return Err(Invalid::new("only_white_space", "A password may not consist of white space only."));
        }
        if common::contains(text) {
            return Err(Invalid::new("too_common", "This password is among the first that attackers try."));
        }
        Ok(())
    }
}

/// Passwords never show.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<&'static str> {
        Password::new(text.to_owned()).err().map(|invalid| invalid.code)
    }

    #[test]
    fn length_counts_code_points_after_normalisation() {
        assert_eq!(refusal("short 7"), Some("too_short"));
        assert_eq!(refusal("8 chars!"), None);
        assert_eq!(refusal(&"字".repeat(8)), None);
        assert_eq!(refusal(&"😀".repeat(128)), None);
        assert_eq!(refusal(&"😀".repeat(129)), Some("too_long"));
        // Seven letters, each with a mark that composes.
        assert_eq!(refusal(&"e\u{301}".repeat(7)), Some("too_short"));
        assert_eq!(refusal(&"x".repeat(MAX_RAW_BYTES + 1)), Some("too_long"));
    }

    #[test]
    fn there_are_no_composition_rules_and_nothing_is_trimmed() {
        assert_eq!(refusal("lowercase words only"), None);
        let spaced = Password::new("  pass word 12 ".to_owned()).expect("valid");
        assert_eq!(spaced.as_bytes(), b"  pass word 12 ");
    }

    #[test]
    fn white_space_only_and_control_characters_are_refused() {
        assert_eq!(refusal(&" ".repeat(12)), Some("only_white_space"));
        assert_eq!(refusal(&"\u{3000}".repeat(12)), Some("only_white_space"));
        assert_eq!(refusal("\t\n\t\n\t\n\t\n"), Some("control_character"));
        for c in ['\0', '\n', '\u{7F}', '\u{85}'] {
            assert_eq!(refusal(&format!("a good{c}password")), Some("control_character"), "{c:?}");
        }
    }

    #[test]
    fn common_passwords_are_refused_in_any_case_and_width() {
        for text in ["password1", "PassWord1", "１２３４５６７８", "QWERTYUIOP"] {
            assert_eq!(refusal(text), Some("too_common"), "{text}");
        }
        assert_eq!(refusal("password1 and more"), None);
    }

    #[test]
    fn an_attempt_is_normalised_alike_and_checked_by_no_rule() {
        let set = Password::new("Ａngstro\u{308}m 2024".to_owned()).expect("valid");
        assert_eq!(Password::attempt("Angström 2024".to_owned()), Some(set));
        assert_eq!(Password::attempt("1".to_owned()).map(|password| password.as_bytes().to_vec()), Some(b"1".to_vec()));
        assert!(Password::attempt("x".repeat(MAX_RAW_BYTES)).is_some());
        assert!(Password::attempt("x".repeat(MAX_RAW_BYTES + 1)).is_none());
    }

    #[test]
    fn the_longest_expansion_fits_without_growing() {
        let raw = "\u{FDFA}".repeat(MAX_RAW_BYTES / 3);
        let expanded = Password::attempt(raw.clone()).expect("within the cap");
        assert_eq!(expanded.as_bytes().len(), raw.len() * MAX_EXPANSION);
    }

    #[test]
    fn passwords_do_not_show_in_debug_output() {
        let password = Password::new("correct horse battery".to_owned()).expect("valid");
        assert!(!format!("{password:?}").contains("horse"));
    }
}
