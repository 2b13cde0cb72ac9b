//! Ids and times of registration, which follow from number and seed.

use time::{Duration, OffsetDateTime, macros::datetime};
use uuid::{Builder, Uuid};

/// User 0 registered then; each further one a millisecond later.
const FIRST_REGISTRATION: OffsetDateTime = datetime!(2020-01-01 00:00:00 UTC);

/// When user `n` registered.
pub(super) fn registered_at(n: u64) -> OffsetDateTime {
    FIRST_REGISTRATION + Duration::milliseconds(i64::try_from(n).unwrap_or(i64::MAX) % MAX_MILLIS)
}

/// Some 300 years: far more users than any table holds, and every date can be written.
const MAX_MILLIS: i64 = 10_000_000_000_000;

/// The id of user `n`: a UUIDv7 (RFC 9562 §5.7) of the time of registration, whose random bits follow from seed and number. Users
/// made one after the other are neighbours in the index, as with ids of real registrations.
#[must_use]
pub fn user_id(seed: u64, n: u64) -> Uuid {
    let millis = registered_at(n).unix_timestamp_nanos() / 1_000_000;
    let millis = u64::try_from(millis).unwrap_or(0);
    let (high, low) = (scramble(seed ^ scramble(n)), scramble(seed.wrapping_add(0x5851_f42d_4c95_7f2d) ^ scramble(!n)));
    let mut random = [0; 10];
    random[..8].copy_from_slice(&high.to_be_bytes());
    random[8..].copy_from_slice(&low.to_be_bytes()[..2]);
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014): a bijection that spreads every bit.
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_distinct_in_order_of_version_7_and_of_their_seed() {
        let ids: Vec<Uuid> = (0..1_000).map(|n| user_id(1, n)).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1_000);
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
        assert!((0..1_000).all(|n| user_id(2, n) != user_id(1, n)));
        let (seconds, _) = ids[999].get_timestamp().unwrap().to_unix();
        assert_eq!(i64::try_from(seconds).unwrap(), registered_at(999).unix_timestamp());
    }
}
