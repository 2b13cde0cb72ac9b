//! From a bearer token to its claims.

use std::sync::Arc;

use time::OffsetDateTime;

use super::cache::{TokenCache, TokenDigest};
use super::claims::Claims;
use super::config::VerifierConfig;
use super::error::VerifyError;
use super::key_set::{KeySet, PinnedAlgorithm};
use super::key_source::KeySource;
use super::policy::Policy;
use super::token::{MAX_KID_BYTES, MAX_TOKEN_BYTES, UnverifiedToken};
use crate::clock::SharedClock;

/// Verifies access tokens. Clones share the keys and the cache.
#[derive(Clone)]
pub struct Verifier(Arc<Inner>);

struct Inner {
    policy: Policy,
    keys: KeySource,
    cache: TokenCache,
    clock: SharedClock,
}

impl Verifier {
    /// A verifier with the configuration's policy and cache.
    #[must_use]
    pub fn new(config: &VerifierConfig, keys: KeySource, clock: SharedClock) -> Self {
        let (policy, cache) = (config.policy.clone(), TokenCache::new(config.token_cache_max));
        Self(Arc::new(Inner { policy, keys, cache, clock }))
    }

    /// The claims of a token that the issuer signed for us and that is valid now.
    ///
    /// # Errors
    /// Why not. The order is: form, header, key, signature, claims; nothing of the payload is read before the signature
    /// is known to be good.
    pub async fn verify(&self, token: &str) -> Result<Arc<Claims>, VerifyError> {
        let (outcome, cache) = self.remembered_or_checked(token).await;
        let result = outcome.as_ref().map_or_else(|error| error.label(), |_| "ok");
        metrics::counter!("token_verifications_total", "result" => result, "cache" => cache).increment(1);
        outcome
    }

    async fn remembered_or_checked(&self, token: &str) -> (Result<Arc<Claims>, VerifyError>, &'static str) {
        if token.len() > MAX_TOKEN_BYTES {
            return (Err(VerifyError::Malformed), "miss");
        }
        let Inner { keys, cache, clock, .. } = &*self.0;
        let now = clock.now();
        let digest = TokenDigest::of(token);
        let remembered = keys.at_hand().and_then(|keys| cache.get(&digest, keys.generation, now));
        if let Some(claims) = remembered {
            return (Ok(claims), "hit");
        }
        let checked = self.check(token, now).await.map(|(claims, generation)| {
            let claims = Arc::new(claims);
            cache.insert(digest, Arc::clone(&claims), generation, now);
            claims
        });
        (checked, "miss")
    }

    /// The claims, and the generation of the keys that vouch for them.
    async fn check(&self, token: &str, now: OffsetDateTime) -> Result<(Claims, u64), VerifyError> {
        let token = UnverifiedToken::parse(token)?;
        self.0.policy.check_header(&token.header)?;
        // `none`, and whatever no key here can be pinned to, is refused before it can cause a fetch.
        PinnedAlgorithm::named(&token.header.alg).ok_or(VerifyError::Header("alg"))?;
        let kid = token.header.kid.as_deref().filter(|kid| kid.len() <= MAX_KID_BYTES);
        let kid = kid.ok_or(VerifyError::Header("kid"))?;

        let keys = self.keys_for(kid).await?;
        let key = keys.get(kid).ok_or(VerifyError::UnknownKey)?;
        key.check(&token)?;
        let claims = self.0.policy.accept(token.payload()?, now)?;
        Ok((claims, keys.generation))
    }

    /// The keys, renewed if they lack the one asked for and it may be new.
    async fn keys_for(&self, kid: &str) -> Result<Arc<KeySet>, VerifyError> {
        let keys = self.0.keys.current().await?;
        if keys.get(kid).is_some() { Ok(keys) } else { Ok(self.0.keys.newer_than(keys).await) }
    }
}
