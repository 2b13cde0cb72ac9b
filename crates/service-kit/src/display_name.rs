//! The rules for a display name: one function, so that the name given at registration and the name set later are alike.

use unicode_normalization::UnicodeNormalization;

use crate::fields::Invalid;
use crate::unicode::{is_bidi_control, is_control, is_invisible};

/// The most code points a display name may have, after normalisation.
pub const MAX_CODE_POINTS: usize = 100;

/// ZWNJ and ZWJ: invisible, but Persian, Hindi and many emoji are not written right without them.
const JOINERS: [char; 2] = ['\u{200C}', '\u{200D}'];

/// Reads a display name: trimmed, in NFC, 1 to [`MAX_CODE_POINTS`] code points, without characters that hide, break the line
/// or turn the text around. A joiner is allowed between two visible characters, a variation selector after one.
///
/// # Errors
/// `empty`, `too_long`, `control_character`, `bidi_character`, `invisible_character`.
#[allow(clippy::needless_pass_by_value, reason = "fits `Fields::required` and `Fields::optional`")]
pub fn parse(text: String) -> Result<String, Invalid> {
    let name: String = text.trim().nfc().collect();
    if name.is_empty() {
        return Err(Invalid::new("empty", "This field must not be empty or only white space."));
    }
    if name.chars().count() > MAX_CODE_POINTS {
        return Err(Invalid::new("too_long", format!("This field may have at most {MAX_CODE_POINTS} characters.")));
    }
    check_characters(&name)?;
    Ok(name)
}

fn check_characters(name: &str) -> Result<(), Invalid> {
    let mut previous = None;
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        if is_control(c) {
            return Err(Invalid::new("control_character", "Line breaks and control characters are not allowed."));
        }
        if is_bidi_control(c) {
            return Err(Invalid::new("bidi_character", "Characters that turn the direction of text are not allowed."));
        }
        if is_invisible(c) && !is_placed_well(previous, c, characters.peek().copied()) {
            return Err(Invalid::new("invisible_character", "Invisible characters are not allowed here."));
        }
        previous = Some(c);
    }
    Ok(())
}

/// Whether an invisible character stands where writing needs it.
fn is_placed_well(previous: Option<char>, c: char, next: Option<char>) -> bool {
    let follows_visible = previous.is_some_and(is_visible);
    if is_variation_selector(c) {
        return follows_visible;
    }
    let follows_word = follows_visible || previous.is_some_and(is_variation_selector);
    JOINERS.contains(&c) && follows_word && next.is_some_and(is_visible)
}

fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !is_control(c) && !is_invisible(c)
}

const fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Result<String, &'static str> {
        parse(text.to_owned()).map_err(|invalid| invalid.code)
    }

    #[test]
    fn names_of_many_scripts_stay_as_they_are() {
        for name in [
            "Ada Lovelace",
            "Åsa",
            "李小龍",
            "می\u{200C}خواهم",
            "क्\u{200D}ष",
            "👩\u{200D}💻 Kim",
            "❤\u{FE0F}",
            "O'Neill-Ñ",
        ] {
            assert_eq!(code(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn white_space_around_a_name_is_cut_and_its_letters_are_composed() {
        assert_eq!(code("\t Zoe\u{0308}\u{3000}\n").as_deref(), Ok("Zoë"));
    }

    #[test]
    fn the_length_counts_code_points_after_composition() {
        assert_eq!(code(&"e\u{0301}".repeat(MAX_CODE_POINTS)).map(|name| name.chars().count()), Ok(MAX_CODE_POINTS));
        assert_eq!(code(&"😀".repeat(MAX_CODE_POINTS + 1)), Err("too_long"));
        assert_eq!(code(""), Err("empty"));
        assert_eq!(code(" \t\u{2003}\n"), Err("empty"));
    }

    #[test]
    fn what_hides_or_turns_text_is_refused() {
        for (name, expected) in [
            ("a\0b", "control_character"),
            ("a\nb", "control_character"),
            ("a\u{2028}b", "control_character"),
            ("a\u{202E}b", "bidi_character"),
            ("a\u{200F}b", "bidi_character"),
            ("a\u{200B}b", "invisible_character"),
            ("a\u{FEFF}b", "invisible_character"),
            ("a\u{00AD}b", "invisible_character"),
            ("\u{3164}", "invisible_character"),
            ("a\u{E0041}", "invisible_character"),
        ] {
            assert_eq!(code(name), Err(expected), "{name:?}");
        }
    }

    #[test]
    fn joiners_and_selectors_need_a_word_around_them() {
        for name in
            ["\u{200D}", "a\u{200D}", "\u{200C}a", "a \u{200D}b", "a\u{200D} b", "a\u{200D}\u{200D}b", "\u{FE0F}a"]
        {
            assert_eq!(code(name), Err("invisible_character"), "{name:?}");
        }
    }

    #[test]
    fn a_name_that_was_accepted_is_accepted_again_unchanged() {
        for name in ["  Ada ", "e\u{0301}", "👩\u{200D}💻"] {
            let once = code(name).expect("valid");
            assert_eq!(code(&once).as_deref(), Ok(once.as_str()));
        }
    }
}
