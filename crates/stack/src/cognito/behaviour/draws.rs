//! Random numbers that follow from a seed and their place in the sequence, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// A sequence of numbers in (0, 1).
#[derive(Debug)]
pub(crate) struct Draws {
    seed: u64,
    next: AtomicU64,
}

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, next: AtomicU64::new(0) }
    }

    /// The next two.
    pub(crate) fn pair(&self) -> (f64, f64) {
        let n = self.next.fetch_add(2, Ordering::Relaxed);
        (self.nth(n), self.nth(n + 1))
    }

    fn nth(&self, n: u64) -> f64 {
        unit(scramble(scramble(self.seed) ^ n))
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
pub(crate) fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The upper 53 bits, in the middle of their interval: never 0 and never 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}
