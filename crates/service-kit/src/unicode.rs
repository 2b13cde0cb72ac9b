//! Characters that nobody can see, or that turn the text around them: what identifiers and names must not hold.

/// Whether a character changes the direction of the text around it (UAX #9, `Bidi_Control`): with it a name can show
/// what it is not.
#[must_use]
pub const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is a line break of any kind or another control (`Cc`, `Zl`, `Zp`).
#[must_use]
pub const fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character usually leaves no mark: two texts that differ by it look alike. These are the
/// `Default_Ignorable_Code_Point`s of Unicode (`DerivedCoreProperties.txt`; joiners, variation selectors, bidi controls and
/// tags among them), and the Braille pattern without a dot.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bidi_controls_are_invisible_too() {
        for c in ('\0'..=char::MAX).filter(|c| is_bidi_control(*c)) {
            assert!(is_invisible(c), "{c:?}");
        }
    }

    #[test]
    fn every_control_of_the_standard_library_is_one_here() {
        assert!(('\0'..=char::MAX).filter(|c| c.is_control()).all(is_control));
    }

    #[test]
    fn letters_marks_and_spaces_are_none_of_these() {
        for c in ['a', 'ı', 'ß', 'ع', 'क', '\u{0301}', ' ', '\u{3000}', '字', '😀'] {
            assert!(!is_control(c) && !is_invisible(c) && !is_bidi_control(c), "{c:?}");
        }
    }
}
