//! Where verification keys come from.

use std::sync::Arc;

use super::error::VerifyError;
use super::jwk::Jwks;
use super::jwks_client::JwksClient;
use super::key_set::KeySet;

/// Where verification keys come from.
#[derive(Clone)]
pub struct KeySource(Source);

#[derive(Clone)]
enum Source {
    Fixed(Arc<KeySet>),
    Remote(JwksClient),
}

impl KeySource {
    /// Keys that do not change: those of an issuer in this process.
    #[must_use]
    pub fn fixed(jwks: &Jwks) -> Self {
        Self(Source::Fixed(Arc::new(KeySet::new(jwks, 0))))
    }

    /// Keys that an issuer publishes.
    #[must_use]
    pub fn remote(client: JwksClient) -> Self {
        Self(Source::Remote(client))
    }

    /// The keys at hand, without waiting; renews them in the background when they have got old.
    pub(super) fn at_hand(&self) -> Option<Arc<KeySet>> {
        match &self.0 {
            Source::Fixed(keys) => Some(Arc::clone(keys)),
            Source::Remote(client) => client.at_hand(),
        }
    }

    /// The keys, waiting for the first fetch if there are none yet.
    pub(super) async fn current(&self) -> Result<Arc<KeySet>, VerifyError> {
        match &self.0 {
            Source::Fixed(keys) => Ok(Arc::clone(keys)),
            Source::Remote(client) => client.current().await,
        }
    }

    /// The keys after looking whether there are newer ones than `seen`, which lack a key that a token asks for.
    pub(super) async fn newer_than(&self, seen: Arc<KeySet>) -> Arc<KeySet> {
        match &self.0 {
            Source::Fixed(_) => seen,
            Source::Remote(client) => client.newer_than(seen).await,
        }
    }
}
