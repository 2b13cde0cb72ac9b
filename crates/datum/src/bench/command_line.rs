//! The command as it was typed, for the capsule: without what nobody else may read.

use super::system::is_secret;

const WITHHELD: &str = "(withheld)";

/// The arguments of this process.
pub(super) fn as_typed() -> Vec<String> {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let mut arguments: Vec<String> = arguments.map(|argument| without_secret(&argument)).collect();
    // The path of the program tells where somebody keeps their files, and nothing about the run.
    if let Some(program) = arguments.first_mut() {
        "datum".clone_into(program);
    }
    arguments
}

fn without_secret(argument: &str) -> String {
    if is_secret("", argument) {
        return WITHHELD.to_owned();
    }
    match argument.split_once('=') {
        // `NAME=VALUE`, and `--database-url=URL` alike.
        Some((name, value)) if is_secret(name, value) => format!("{name}={WITHHELD}"),
        _ => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_withheld_and_nothing_else() {
        for plain in ["bench", "--vus", "5", "DB_POOL_MAX=3", "--target", "https://example.com", "http://127.0.0.1:1"] {
            assert_eq!(without_secret(plain), plain);
        }
        assert_eq!(without_secret("AUTH_COGNITO_CLIENT_SECRET=hunter2"), "AUTH_COGNITO_CLIENT_SECRET=(withheld)");
        assert_eq!(without_secret("postgres://me:pw@host/db"), "(withheld)");
        assert_eq!(without_secret("--database-url=postgres://me:pw@host/db"), "--database-url=(withheld)");
        assert_eq!(without_secret("postgres://me:pw@host/db?a=b"), "(withheld)");
    }
}
