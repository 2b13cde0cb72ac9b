//! Password hashing: argon2id on threads of its own.
//!
//! What a hash costs is configured; what a stored hash may cost at most, too. Nothing here knows users or the database.

mod arena;
mod config;
mod counters;
mod phc;
mod pool;

pub use config::HashingConfig;
pub use counters::PoolCounters;
pub use phc::{Cost, Unusable};
pub use pool::{PoolConfig, PoolError};

use std::sync::{Arc, mpsc};
use std::time::Duration;

use service_kit::problem::Problem;
use tokio::sync::oneshot;

use crate::password::Password;
use arena::Arena;
use phc::StoredHash;

/// Why there is no answer about a password.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// More is asked for than the threads can do: 503.
    #[error("password hashing is busy")]
    Busy,
    /// A defect: 500.
    #[error("password hashing failed")]
    Failed(#[source] anyhow::Error),
}

impl From<PoolError> for HashError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Full | PoolError::Late => Self::Busy,
            PoolError::Panicked => Self::Failed(error.into()),
        }
    }
}

impl From<HashError> for Problem {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => busy(),
            HashError::Failed(source) => Self::internal(source),
        }
    }
}

/// What is answered when passwords cannot be hashed soon enough.
pub(crate) fn busy() -> Problem {
    Problem::unavailable("hashing_busy", "Too many passwords are being checked; try again.", Duration::from_secs(1))
}

/// The answer about a password.
#[derive(Debug, PartialEq, Eq)]
pub enum Verification {
    /// It is not the password.
    Mismatch,
    /// The stored hash cannot be verified. Towards the caller a mismatch, and it cost as much: anything louder would tell that
    /// the account exists. An operator must hear of it.
    Unusable(Unusable),
    /// It is.
    Match {
        /// A hash of the same password at today's cost, where the stored one is outdated.
        upgrade: Option<PasswordHash>,
    },
}

/// A PHC string. Never shown; never sent.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Wraps what is stored.
    #[must_use]
    pub fn from_stored(phc: String) -> Self {
        Self(phc)
    }

    /// The PHC string, to be stored or compared with what is.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// Hashes and verifies passwords; clones share the threads.
#[derive(Clone)]
pub struct Hasher {
    pool: pool::Pool,
    cost: Cost,
    limit: Cost,
    stand_in: Arc<PasswordHash>,
}

impl Hasher {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system refuses a thread or random bytes.
    pub fn start(config: &HashingConfig) -> anyhow::Result<Self> {
        Ok(Self {
            pool: pool::Pool::start(config.pool)?,
            cost: config.cost,
            limit: config.limit,
            stand_in: Arc::new(PasswordHash(phc::unmatchable(config.cost)?)),
        })
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// When the threads are busy.
    pub async fn hash(&self, password: Password) -> Result<PasswordHash, HashError> {
        let cost = self.cost;
        let hashed =
            self.pool.run(move |arena| phc::hash(password.as_bytes(), cost, arena.lend(cost.blocks()))).await?;
        hashed.map(PasswordHash).map_err(HashError::Failed)
    }

    /// Verifies a password against what is stored. Without a usable stored hash the same work is done in vain, so that neither
    /// time nor load tells whether there is such a user.
    ///
    /// # Errors
    /// When the threads are busy.
    pub async fn verify(&self, password: Password, stored: Option<PasswordHash>) -> Result<Verification, HashError> {
        let (cost, limit) = (self.cost, self.limit);
        let (stored, in_vain) = match stored.map(|hash| StoredHash::parse(hash.as_str(), limit)) {
            Some(Ok(stored)) => (stored, None),
            Some(Err(reason)) => (self.stand_in()?, Some(Verification::Unusable(reason))),
            None => (self.stand_in()?, Some(Verification::Mismatch)),
        };
        let job = move |arena: &mut Arena| verify(password.as_bytes(), &stored, cost, arena);
        let verification = self.pool.run(job).await?.map_err(HashError::Failed)?;
        Ok(in_vain.unwrap_or(verification))
    }

    fn stand_in(&self) -> Result<StoredHash, HashError> {
        StoredHash::parse(self.stand_in.as_str(), self.limit).map_err(|reason| HashError::Failed(reason.into()))
    }

    /// How long a password may wait for a thread.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.pool.deadline()
    }

    /// What the threads have done so far.
    #[must_use]
    pub fn counters(&self) -> &PoolCounters {
        self.pool.counters()
    }

    /// Passwords that wait for a thread, with somebody waiting for the answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Keeps one thread busy until the guard is dropped: how tests and drills bring about what only heavy load would.
    ///
    /// # Errors
    /// When the threads are busy.
    pub async fn occupy_thread(&self) -> Result<OccupiedThread, HashError> {
        let (release, released) = mpsc::channel::<()>();
        let (tell, started) = oneshot::channel();
        let pool = self.pool.clone();
        let job = move |_: &mut Arena| {
            let _ = tell.send(());
            // Ends with an error, when the guard is dropped.
            let _ = released.recv();
        };
        // In a task of its own: the guard, not this future, decides how long the thread is kept.
        let occupation = tokio::spawn(async move { pool.run(job).await });
        match started.await {
            Ok(()) => Ok(OccupiedThread { _release: release }),
            // Refused, or too late.
            Err(_) => match occupation.await {
                Ok(Err(error)) => Err(error.into()),
                _ => Err(HashError::Busy),
            },
        }
    }
}

/// Keeps a hashing thread busy while it lives.
#[derive(Debug)]
pub struct OccupiedThread {
    _release: mpsc::Sender<()>,
}

fn verify(password: &[u8], stored: &StoredHash, cost: Cost, arena: &mut Arena) -> anyhow::Result<Verification> {
    let matches = stored.matches(password, arena.lend(stored.cost().blocks()))?;
    arena.shrink(cost.blocks());
    if !matches {
        return Ok(Verification::Mismatch);
    }
    // The password is at hand only now, and its owner waits anyway.
    let upgrade = stored.is_outdated(cost).then(|| phc::hash(password, cost, arena.lend(cost.blocks()))).transpose()?;
    Ok(Verification::Match { upgrade: upgrade.map(PasswordHash) })
}

#[cfg(test)]
mod tests {
    use service_kit::config::{Environment, load};

    use super::*;

    fn config(pairs: &[(&str, &str)]) -> HashingConfig {
        let cheap = [("AUTH_ARGON2_MEMORY_KIB", "64"), ("AUTH_ARGON2_ITERATIONS", "1"), ("AUTH_HASH_THREADS", "1")];
        let pairs = cheap.iter().chain(pairs).copied();
        load(&Environment::from_pairs(pairs), HashingConfig::read).expect("valid")
    }

    fn password(text: &str) -> Password {
        Password::attempt(text.to_owned()).expect("within the cap")
    }

    async fn hashed(config: &HashingConfig, text: &str) -> PasswordHash {
        Hasher::start(config).expect("threads").hash(password(text)).await.expect("hash")
    }

    #[tokio::test]
    async fn every_kind_of_verification_costs_one_hash() {
        let config = config(&[]);
        let stored = hashed(&config, "right").await;
        let monster = PasswordHash::from_stored(stored.as_str().replace("m=64,t=1,p=1", "m=4194304,t=50,p=64"));
        let hasher = Hasher::start(&config).expect("threads");
        for (attempt, stored, expected) in [
            ("right", Some(stored.clone()), Verification::Match { upgrade: None }),
            ("wrong", Some(stored), Verification::Mismatch),
            ("right", None, Verification::Mismatch),
            ("right", Some(monster), Verification::Unusable(Unusable::TooExpensive)),
            ("right", Some(PasswordHash::from_stored("!".to_owned())), Verification::Unusable(Unusable::Malformed)),
        ] {
            let before = hasher.counters().started();
            assert_eq!(hasher.verify(password(attempt), stored).await.expect("verified"), expected);
            assert_eq!(hasher.counters().started() - before, 1);
        }
        assert_eq!(
            hasher.counters().memory_kib(),
            64,
            "the memory of one hash of today's cost is all that was ever held"
        );
    }

    #[tokio::test]
    async fn a_hash_of_another_cost_is_verified_by_its_own_and_made_anew() {
        let old = hashed(&config(&[("AUTH_ARGON2_MEMORY_KIB", "256")]), "right").await;
        let hasher = Hasher::start(&config(&[])).expect("threads");
        assert_eq!(
            hasher.verify(password("wrong"), Some(old.clone())).await.expect("verified"),
            Verification::Mismatch
        );
        let Verification::Match { upgrade: Some(new) } =
            hasher.verify(password("right"), Some(old)).await.expect("verified")
        else {
            panic!("no upgrade")
        };
        assert!(new.as_str().contains("m=64,t=1,p=1"));
        let again = hasher.verify(password("right"), Some(new)).await.expect("verified");
        assert_eq!(again, Verification::Match { upgrade: None });
    }

    #[test]
    fn costs_that_cannot_work_are_refused_at_start() {
        for pairs in [
            [("AUTH_ARGON2_MEMORY_KIB", "70000"), ("AUTH_ARGON2_MAX_MEMORY_KIB", "65536")],
            [("AUTH_ARGON2_MEMORY_KIB", "16"), ("AUTH_ARGON2_PARALLELISM", "4")],
        ] {
            assert!(load(&Environment::from_pairs(pairs), HashingConfig::read).is_err(), "{pairs:?}");
        }
    }

    #[test]
    fn the_default_cost_is_as_strong_as_recommended_and_less_is_called_weak() {
        let default = load(&Environment::default(), HashingConfig::read).expect("valid");
        assert_eq!(default.cost, Cost { memory_kib: 19_456, iterations: 2, parallelism: 1 });
        assert!(!default.is_weak());
        assert!(config(&[]).is_weak());
    }
}
