//! Email addresses as account names: one canonical form, in which they are unique.
//!
//! Trimmed, NFKC-normalised, lower-cased, the domain in ASCII (IDNA, UTS #46). Lower-casing is not case folding and knows no
//! locale: a dotless `ı` stays apart from `i`, and look-alikes of other scripts are other accounts. Nothing here talks to a
//! mail server; that an address exists is not claimed.

use std::fmt;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use service_kit::fields::Invalid;
use service_kit::unicode::{is_control, is_invisible};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// RFC 5321 §4.5.3.1.3 allows 256 octets for a path, two of which are its brackets.
pub const MAX_BYTES: usize = 254;

/// RFC 5321 §4.5.3.1.1.
const MAX_LOCAL_BYTES: usize = 64;

/// Far above any address whose canonical form fits: bounds the work of normalising.
const MAX_RAW_BYTES: usize = 4 * MAX_BYTES;

/// ASCII that RFC 5321 allows in a local part only within quotes; quoted local parts are not accepted.
const SPECIALS: &str = "\"(),:;<>@[\\]";

/// An email address in canonical form.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Email(String);

impl Email {
    /// Reads an address as somebody typed it.
    ///
    /// # Errors
    /// `invalid_email`, with a detail that never repeats the address.
    #[allow(clippy::needless_pass_by_value, reason = "fits `Fields::required`")]
    pub fn parse(text: String) -> Result<Self, Invalid> {
        let refuse = |detail: &'static str| Err(Invalid::new("invalid_email", detail));
        let trimmed = text.trim();
        if trimmed.len() > MAX_RAW_BYTES {
            return refuse("An address has at most 254 bytes.");
        }
        let Some(folded) = fold(trimmed) else {
            return refuse("The address cannot be normalised.");
        };
        if folded.chars().any(is_refused) {
            return refuse("White space, control and invisible characters are not allowed in an address.");
        }
        let Some((local, domain)) = folded.split_once('@').filter(|(_, domain)| !domain.contains('@')) else {
            return refuse("An address has the form name@domain.");
        };
        if !is_local_part(local) {
            return refuse("The part before the @ is not valid.");
        }
        let Some(domain) = ascii_domain(domain) else {
            return refuse("The domain is not valid.");
        };
        let canonical = format!("{local}@{domain}");
        if canonical.len() > MAX_BYTES {
            return refuse("An address has at most 254 bytes.");
        }
        Ok(Self(canonical))
    }

    /// The canonical form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Addresses do not belong into logs.
impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email(…)")
    }
}

/// NFKC and lower case until neither changes anything: some lower-case letters compose anew. Real text needs two rounds.
fn fold(text: &str) -> Option<String> {
    let mut folded: String = text.nfkc().collect();
    for _ in 0..4 {
        let next: String = folded.to_lowercase().nfkc().collect();
        if next == folded {
            return Some(folded);
        }
        folded = next;
    }
    None
}

/// What nobody can see or tell apart, and what has no meaning yet: unassigned characters may be normalised differently by the
/// next version of Unicode, which would make the account unreachable.
fn is_refused(c: char) -> bool {
    is_control(c)
        || is_invisible(c)
        || matches!(
            c.general_category(),
            GeneralCategory::Format
                | GeneralCategory::SpaceSeparator
                | GeneralCategory::PrivateUse
                | GeneralCategory::Unassigned
        )
}

/// A dot-atom of RFC 5321, extended to other scripts by RFC 6531.
fn is_local_part(local: &str) -> bool {
    (1..=MAX_LOCAL_BYTES).contains(&local.len())
        && !local.chars().any(|c| SPECIALS.contains(c))
        && local.split('.').all(|atom| !atom.is_empty())
}

/// The domain in ASCII, of at least two labels; address literals are not accepted.
fn ascii_domain(domain: &str) -> Option<String> {
    let ascii = Uts46::new()
        .to_ascii(domain.as_bytes(), AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify)
        .ok()?;
    let (_, top) = ascii.rsplit_once('.')?;
    (!top.bytes().all(|byte| byte.is_ascii_digit())).then(|| ascii.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Option<String> {
        Email::parse(text.to_owned()).ok().map(|email| email.0)
    }

    #[track_caller]
    fn assert_same(texts: &[&str], expected: &str) {
        for text in texts {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn case_white_space_and_compatibility_forms_do_not_matter() {
        assert_same(
            &[
                "alice@example.com",
                "Alice@Example.COM",
                " alice@example.com\t\r\n",
                "\u{3000}ＡＬＩＣＥ＠example.com\u{A0}",
            ],
            "alice@example.com",
        );
    }

    #[test]
    fn a_domain_has_one_form_whichever_way_it_is_written() {
        assert_same(
            &[
                "a@münchen.de",
                "a@MÜNCHEN.de",
                "a@mu\u{308}nchen.de",
                "a@xn--mnchen-3ya.de",
                "a@XN--MNCHEN-3YA.DE",
                "a@münchen。de",
            ],
            "a@xn--mnchen-3ya.de",
        );
    }

    #[test]
    fn local_parts_of_other_scripts_are_accepted_in_their_own_form() {
        assert_same(&["Jörg@example.com", "JO\u{308}RG@example.com"], "jörg@example.com");
        assert_same(&["用户@example.com"], "用户@example.com");
    }

    #[test]
    fn look_alikes_stay_apart() {
        let addresses = ["mike@x.io", "mıke@x.io", "mi\u{307}ke@x.io", "miке@x.io", "mike@х.io"];
        for (index, one) in addresses.iter().enumerate() {
            for other in &addresses[index + 1..] {
                assert_ne!(canonical(one).expect("valid"), canonical(other).expect("valid"));
            }
        }
        assert_ne!(canonical("mİke@x.io"), canonical("mike@x.io"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            " ",
            "alice",
            "@",
            "a@",
            "@b.c",
            "a@b@c.d",
            "a＠b@c.d",
            "a b@c.de",
            "a@b c.de",
            "\"a b\"@c.de",
            "a,b@c.de",
            "a..b@c.de",
            ".a@c.de",
            "a.@c.de",
            "<a@b.de>",
            "a@b",
            "a@localhost",
            "a@[192.0.2.1]",
            "a@192.0.2.1",
            "a@-b.de",
            "a@b-.de",
            "a@b..de",
            "a@b.de.",
            "a@b_c.de",
            "a@xn--a.de",
            "a@b/c.de",
        ] {
            assert_eq!(canonical(text), None, "{text:?}");
        }
    }

    #[test]
    fn invisible_and_control_characters_are_refused_wherever_they_stand() {
        for c in [
            '\0',
            '\u{1}',
            '\n',
            '\u{7F}',
            '\u{85}',
            '\u{AD}',
            '\u{200B}',
            '\u{200C}',
            '\u{200D}',
            '\u{202E}',
            '\u{2066}',
            '\u{2028}',
            '\u{FEFF}',
            '\u{FE0F}',
            '\u{3164}',
            '\u{A0}',
            '\u{E0041}',
            '\u{E000}',
            '\u{378}',
            '\u{FFFF}',
        ] {
            for text in [format!("a{c}b@example.com"), format!("ab@exa{c}mple.com")] {
                assert_eq!(canonical(&text), None, "{text:?}");
            }
        }
    }

    #[test]
    fn lengths_are_those_of_rfc_5321_in_bytes() {
        let local = |length: usize| format!("{}@example.com", "a".repeat(length));
        assert!(canonical(&local(64)).is_some());
        assert!(canonical(&local(65)).is_none());
        assert!(canonical(&format!("{}@example.com", "é".repeat(33))).is_none());
        // 64 + 1 + 3 × 62 + 3 = 254
        let label = "b".repeat(61);
        let longest = format!("{}@{label}.{label}.{label}.com", "a".repeat(64));
        assert_eq!(longest.len(), MAX_BYTES);
        assert!(canonical(&longest).is_some());
        assert!(canonical(&longest.replace(".com", ".comm")).is_none());
        assert!(canonical(&local(100_000)).is_none());
    }

    #[test]
    fn the_canonical_form_of_a_canonical_form_is_itself() {
        // Every script but the tens of thousands of Han and Hangul characters, which are alike in this.
        let characters = ('\0'..='\u{33FF}').chain('\u{A640}'..='\u{ABFF}').chain('\u{F900}'..='\u{1FFFF}');
        let mut accepted = 0;
        for c in characters {
            for text in [format!("{c}@example.com"), format!("a{c}b@example.com"), format!("a@x{c}y.example.com")] {
                if let Some(once) = canonical(&text) {
                    assert_eq!(canonical(&once).as_ref(), Some(&once), "{c:?} in {text:?}");
                    accepted += 1;
                }
            }
        }
        assert!(accepted > 20_000, "only {accepted} accepted");
    }

    #[test]
    fn pairs_of_characters_that_compose_are_stable_too() {
        let letters: Vec<char> =
            ('a'..='z').chain('A'..='Z').chain("ıİſßΣσςΐ\u{3B9}Ǆǅ\u{1E9E}KÅ각\u{1100}".chars()).collect();
        let marks: Vec<char> = ('\u{300}'..='\u{36F}').chain("\u{1161}\u{11A8}\u{345}".chars()).collect();
        for letter in letters {
            for mark in &marks {
                for text in
                    [format!("{letter}{mark}@example.com"), format!("{letter}{mark}\u{323}{letter}@example.com")]
                {
                    if let Some(once) = canonical(&text) {
                        assert_eq!(canonical(&once).as_ref(), Some(&once), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn addresses_do_not_show_in_debug_output() {
        let email = Email::parse("alice@example.com".to_owned()).expect("valid");
        assert!(!format!("{email:?}").contains("alice"));
    }
}
