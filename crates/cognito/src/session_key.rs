//! Whom a call about a session counts for.

use std::fmt::Write;

use aws_lc_rs::digest;

/// Enough of a digest to tell sessions apart.
const KEPT_BYTES: usize = 16;

/// A name for the session of a refresh token, which says nothing about the token. The user's name that stands beside the token is
/// the client's word: whoever put another one there would use up somebody else's limit, and pass their own.
pub(crate) fn session_key(refresh_token: &str) -> String {
    let digest = digest::digest(&digest::SHA256, refresh_token.as_bytes());
    digest.as_ref().iter().take(KEPT_BYTES).fold("session ".to_owned(), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_key_of_its_own_that_is_no_users_name() {
        // printf '%s' 'a token' | openssl dgst -sha256
        assert_eq!(session_key("a token"), "session e3316e2bafebb6103a3418e8778c0adc");
        assert_ne!(session_key("a token"), session_key("another token"));
    }
}
