//! What hashing may cost.

use std::time::Duration;

use service_kit::config::Settings;

use super::{Cost, PoolConfig};

/// Memory goes back to the system when a thread had nothing to hash for this long.
const IDLE: Duration = Duration::from_secs(30);

/// OWASP's recommended parameters need about this much work: memory in KiB times passes ("Password Storage Cheat Sheet").
const RECOMMENDED_WORK_KIB: u64 = 35_000;

/// Costs and sizes of hashing.
#[derive(Debug, Clone, Copy)]
pub struct HashingConfig {
    /// What a new hash costs.
    pub cost: Cost,
    /// What a stored hash may cost at most.
    pub limit: Cost,
    /// Threads and queue.
    pub pool: PoolConfig,
}

impl HashingConfig {
    /// Reads the variables.
    pub fn read(settings: &mut Settings<'_>) -> Self {
        settings.section("Password hashing (argon2id)");
        let cost = Cost {
            memory_kib: settings.number("AUTH_ARGON2_MEMORY_KIB", 19_456, 8..=1_048_576, "Memory of one hash"),
            iterations: settings.number("AUTH_ARGON2_ITERATIONS", 2, 1..=10, "Passes over the memory"),
            parallelism: settings.number("AUTH_ARGON2_PARALLELISM", 1, 1..=4, "Lanes, computed one after the other"),
        };
        let limit = Cost {
            memory_kib: settings.number(
                "AUTH_ARGON2_MAX_MEMORY_KIB",
                65_536,
                8..=1_048_576,
                "A stored hash that needs more memory is not verified",
            ),
            iterations: 10,
            parallelism: 4,
        };
        let pool = PoolConfig {
            threads: settings.number("AUTH_HASH_THREADS", parallelism(), 1..=256, "Hashes that run at once [cores]"),
            queue: settings.number("AUTH_HASH_QUEUE", 128, 1..=65_536, "Hashes that may wait"),
            deadline: settings.milliseconds("AUTH_HASH_DEADLINE_MS", 2_000, 1..=60_000, "Longest wait, then 503"),
            idle: IDLE,
            nice: i32::from(settings.number("AUTH_HASH_NICE", 5_u16, 0..=19, "Niceness of hashing threads (Linux)")),
        };
        if cost.memory_kib < 8 * cost.parallelism {
            settings.error("AUTH_ARGON2_MEMORY_KIB", "must be at least 8 times AUTH_ARGON2_PARALLELISM");
        }
        if cost.memory_kib > limit.memory_kib {
            settings.error("AUTH_ARGON2_MEMORY_KIB", "must not be more than AUTH_ARGON2_MAX_MEMORY_KIB");
        }
        Self { cost, limit, pool }
    }

    /// Whether new hashes cost less than OWASP recommends.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        u64::from(self.cost.memory_kib) * u64::from(self.cost.iterations) < RECOMMENDED_WORK_KIB
    }
}

/// Cores that this process may use, cgroup quotas included.
fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
