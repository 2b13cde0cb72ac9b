//! The passwords that are tried first.

use std::collections::HashSet;
use std::sync::LazyLock;

static COMMON: LazyLock<HashSet<&'static str>> = LazyLock::new(|| entries().collect());

/// The list as distributed; lines that start with `#` say where it comes from.
fn entries() -> impl Iterator<Item = &'static str> {
    include_str!("common.txt").lines().filter(|line| !line.starts_with('#'))
}

/// Whether a password (in NFKC) is on the list, whatever its case.
pub(super) fn contains(password: &str) -> bool {
    let lower_case = zeroize::Zeroizing::new(password.to_lowercase());
    COMMON.contains(lower_case.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_form_it_is_compared_in() {
        for entry in entries() {
            assert!(contains(entry), "{entry}");
            assert!(
                entry.chars().count() >= crate::password::MIN_CODE_POINTS,
                "{entry} is too short to be accepted anyway"
            );
        }
        assert!(entries().count() >= 500);
        assert!(!contains("correct horse battery staple"));
    }
}
