//! The proof that an app client knows its secret.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// base64 of HMAC-SHA-256 of user name and client id under the client's secret ("Computing secret hash values", Amazon Cognito
/// Developer Guide). `username` is what the call itself names, and on refresh the pool's own name of the user, not an alias.
pub(crate) fn secret_hash(client_id: &str, client_secret: &str, username: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, client_secret.as_bytes());
    let mut message = hmac::Context::with_key(&key);
    message.update(username.as_bytes());
    message.update(client_id.as_bytes());
    STANDARD.encode(message.sign())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_guides_recipe() {
        // printf '%s' 'ada@example.comclient' | openssl dgst -sha256 -hmac 'secret' -binary | base64
        assert_eq!(secret_hash("client", "secret", "ada@example.com"), OPENSSL);
        assert_ne!(secret_hash("client", "secret", "bob@example.com"), OPENSSL);
    }

    const OPENSSL: &str = "pCfmF0r7Gu0NuqTNTEkVYGLmqkeLB+7ZDlvCeFKuOH0=";
}
