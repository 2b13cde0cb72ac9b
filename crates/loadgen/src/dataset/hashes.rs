//! The pool of password hashes that populated users share.

use std::num::NonZero;
use std::thread::available_parallelism;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::identity::password;

/// Bytes of a salt (RFC 9106 §3.1) and of a hash, as the auth service makes them.
const SALT_BYTES: usize = 16;
const OUTPUT_BYTES: usize = 32;

/// Parameters that argon2 refuses.
#[derive(Debug, thiserror::Error)]
pub enum HashingError {
    /// By their size.
    #[error(transparent)]
    Parameters(#[from] argon2::Error),
    /// They cannot be written as a PHC string.
    #[error(transparent)]
    Written(#[from] argon2::password_hash::Error),
    /// Salt or output cannot.
    #[error(transparent)]
    Phc(#[from] argon2::password_hash::phc::Error),
}

/// What one hash costs. It must be what the auth service is configured with, or each first login of a user replaces the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashCost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub iterations: u32,
    /// Lanes.
    pub parallelism: u32,
}

impl Default for HashCost {
    /// The auth service's own default, which is OWASP's.
    fn default() -> Self {
        Self { memory_kib: 19_456, iterations: 2, parallelism: 1 }
    }
}

/// Hashes of all passwords of a pool, by index: PHC strings. The salts follow from seed, index and size of the pool, so that each
/// call gives the same.
pub(super) async fn compute(
    seed: u64,
    size: u32,
    cost: HashCost,
    mut progress: impl FnMut(u32),
) -> Result<Vec<String>, HashingError> {
    let at_once = available_parallelism().map_or(1, NonZero::get);
    let mut hashes = vec![String::new(); size as usize];
    let (mut waiting, mut working, mut done) = (0..size, JoinSet::new(), 0);
    loop {
        while working.len() < at_once
            && let Some(index) = waiting.next()
        {
            working.spawn_blocking(move || hash(seed, index, size, cost).map(|phc| (index, phc)));
        }
        let Some(finished) = working.join_next().await else { return Ok(hashes) };
        let (index, phc) = finished.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
        hashes[index as usize] = phc;
        done += 1;
        progress(done);
    }
}

fn hash(seed: u64, index: u32, size: u32, cost: HashCost) -> Result<String, HashingError> {
    let params = Params::new(cost.memory_kib, cost.iterations, cost.parallelism, Some(OUTPUT_BYTES))?;
    let parameters = ParamsString::try_from(&params)?;
    let (salt, mut output) = (salt(seed, index, size), [0; OUTPUT_BYTES]);
    let password = password(seed, index.into());
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(
        password.as_bytes(),
        &salt,
        &mut output,
    )?;
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: parameters,
        salt: Some(Salt::new(&salt)?),
        hash: Some(Output::new(&output)?),
    };
    Ok(hash.to_string())
}

fn salt(seed: u64, index: u32, size: u32) -> [u8; SALT_BYTES] {
    let digest = Sha256::digest(format!("datum populate {seed} {index} {size}"));
    std::array::from_fn(|byte| digest[byte])
}

/// Whether two PHC strings have the same salt: then they are of the same password of the same pool, whatever they cost.
pub(super) fn same_salt(left: &str, right: &str) -> bool {
    let salt = |phc: &str| phc.split('$').nth(4).map(str::to_owned);
    salt(left).is_some_and(|left| Some(left) == salt(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: HashCost = HashCost { memory_kib: 8, iterations: 1, parallelism: 1 };

    #[tokio::test]
    async fn a_pool_is_distinct_and_the_same_each_time() {
        let mut steps = Vec::new();
        let pool = compute(1, 5, CHEAP, |done| steps.push(done)).await.unwrap();
        assert_eq!(steps, [1, 2, 3, 4, 5]);
        assert_eq!(pool.iter().collect::<std::collections::BTreeSet<_>>().len(), 5);
        assert!(pool.iter().all(|phc| phc.starts_with("$argon2id$v=19$m=8,t=1,p=1$")), "{pool:?}");
        assert_eq!(pool, compute(1, 5, CHEAP, |_| {}).await.unwrap());
        let dearer = compute(1, 5, HashCost { iterations: 2, ..CHEAP }, |_| {}).await.unwrap();
        assert!(pool.iter().zip(&dearer).all(|(left, right)| left != right && same_salt(left, right)));
        let larger = compute(1, 6, CHEAP, |_| {}).await.unwrap();
        assert!(!same_salt(&pool[0], &larger[0]) && !same_salt(&pool[0], &pool[1]) && !same_salt("", ""));
    }
}
