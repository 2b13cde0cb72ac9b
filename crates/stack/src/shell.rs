//! Words for a shell: what a hint tells people to type can be pasted.

use std::path::Path;

/// A path as a POSIX shell reads it back; one without special characters stays as it is.
#[must_use]
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for path in ["/home/ada/.datum", "/my files/it's $HOME", "~/x", "a*b?;rm", "\"", "\\", "Größe", ""] {
            let command = format!("printf %s {}", quoted(Path::new(path)));
            let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), path, "{command}");
        }
        assert_eq!(quoted(Path::new("/home/ada/.datum")), "/home/ada/.datum");
    }
}
