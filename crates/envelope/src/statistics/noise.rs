//! Noise for tests that is the same everywhere.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The `index`-th of many independent numbers, uniform in −0.5 to 0.5.
#[expect(clippy::cast_precision_loss, reason = "53 bits")]
pub(super) fn noise(index: usize) -> f64 {
    let bits = Pcg64Mcg::seed_from_u64(index as u64).next_u64() >> 11;
    bits as f64 / (1_u64 << 53) as f64 - 0.5
}
