//! Tokens that were verified before. Only success is remembered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use super::claims::Claims;

/// The SHA-256 of a token: the cache holds nothing that could be presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

#[derive(Clone)]
struct Entry {
    claims: Arc<Claims>,
    /// Of the key set that verified the token.
    generation: u64,
    lifetime: Duration,
}

/// Frees the memory of expired entries. Whether an entry still counts is decided by the injected clock at every hit.
struct UntilExpiry;

impl Expiry<TokenDigest, Entry> for UntilExpiry {
    fn expire_after_create(&self, _: &TokenDigest, entry: &Entry, _: Instant) -> Option<Duration> {
        Some(entry.lifetime)
    }
}

/// A bounded cache; the least recently used entry makes room.
pub(super) struct TokenCache(Option<Cache<TokenDigest, Entry>>);

impl TokenCache {
    /// Room for `max` tokens; 0 remembers nothing.
    pub(super) fn new(max: u64) -> Self {
        // LRU rather than moka's default TinyLFU, which keeps often-used tokens that have been renewed since, and turns
        // their successors away.
        Self((max > 0).then(|| {
            Cache::builder().max_capacity(max).eviction_policy(EvictionPolicy::lru()).expire_after(UntilExpiry).build()
        }))
    }

    /// The claims of a token that was verified with this generation of the keys and has not expired, without leeway.
    pub(super) fn get(&self, token: &TokenDigest, generation: u64, now: OffsetDateTime) -> Option<Arc<Claims>> {
        let cache = self.0.as_ref()?;
        let entry = cache.get(token)?;
        if entry.generation == generation && now < entry.claims.expires_at {
            return Some(entry.claims);
        }
        cache.invalidate(token);
        None
    }

    pub(super) fn insert(&self, token: TokenDigest, claims: Arc<Claims>, generation: u64, now: OffsetDateTime) {
        let Some(cache) = &self.0 else { return };
        // Negative within the leeway after `exp`: not worth an entry.
        let Ok(lifetime) = Duration::try_from(claims.expires_at - now) else { return };
        cache.insert(token, Entry { claims, generation, lifetime });
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::super::claims::Scopes;
    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-01-01 12:00 UTC);
    const EXPIRY: OffsetDateTime = datetime!(2026-01-01 12:15 UTC);

    fn claims() -> Arc<Claims> {
        Arc::new(Claims {
            subject: Uuid::nil(),
            email: None,
            name: None,
            client_id: None,
            scopes: Scopes::default(),
            expires_at: EXPIRY,
            issued_at: NOW,
            token_id: None,
        })
    }

    fn cache_with(token: &str, generation: u64) -> (TokenCache, TokenDigest) {
        let (cache, digest) = (TokenCache::new(10), TokenDigest::of(token));
        cache.insert(digest, claims(), generation, NOW);
        (cache, digest)
    }

    #[test]
    fn a_verified_token_is_remembered_until_it_expires() {
        let (cache, token) = cache_with("t", 1);
        assert_eq!(cache.get(&token, 1, NOW), Some(claims()));
        assert_eq!(cache.get(&token, 1, EXPIRY - Duration::from_nanos(1)), Some(claims()));
        assert_eq!(cache.get(&token, 1, EXPIRY), None);
        assert_eq!(cache.get(&token, 1, NOW), None, "an expired entry is dropped, even if the clock steps back");
    }

    #[test]
    fn another_token_is_not_remembered() {
        let (cache, _) = cache_with("t", 1);
        assert_eq!(cache.get(&TokenDigest::of("T"), 1, NOW), None);
    }

    #[test]
    fn a_change_of_keys_forgets_what_the_old_ones_verified() {
        let (cache, token) = cache_with("t", 1);
        assert_eq!(cache.get(&token, 2, NOW), None);
        assert_eq!(cache.get(&token, 1, NOW), None);
    }

    #[test]
    fn a_token_within_the_leeway_is_not_remembered() {
        let (cache, token) = (TokenCache::new(10), TokenDigest::of("t"));
        cache.insert(token, claims(), 1, EXPIRY + Duration::from_secs(1));
        assert_eq!(cache.get(&token, 1, NOW), None);
    }

    #[test]
    fn a_cache_without_room_remembers_nothing() {
        let (cache, token) = (TokenCache::new(0), TokenDigest::of("t"));
        cache.insert(token, claims(), 1, NOW);
        assert_eq!(cache.get(&token, 1, NOW), None);
    }

    #[test]
    fn the_cache_is_bounded_and_the_newest_entries_stay() {
        let cache = TokenCache::new(10);
        let tokens: Vec<_> = (0..1_000).map(|n| TokenDigest::of(&n.to_string())).collect();
        for token in &tokens {
            cache.insert(*token, claims(), 1, NOW);
        }
        let inner = cache.0.as_ref().unwrap();
        inner.run_pending_tasks();
        assert_eq!(inner.entry_count(), 10);
        assert!(cache.get(&tokens[999], 1, NOW).is_some());
        assert!(cache.get(&tokens[0], 1, NOW).is_none());
    }
}
