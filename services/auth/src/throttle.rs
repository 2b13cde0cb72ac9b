//! Slowing down guesses, by (account, client address).
//!
//! The first [`THRESHOLD`] wrong attempts within [`WINDOW`] are free; from then on each is followed by a pause that doubles from
//! a second to [`MAX_DELAY`]. It delays and never locks: somebody who knows an address can not shut its owner out, who comes
//! from elsewhere. Attempts are counted before the password is looked at, for unknown accounts too, and a success forgets them.

use std::net::IpAddr;
use std::time::Duration;

use sha2::{Digest, Sha256};

/// Attempts that are free.
pub const THRESHOLD: i32 = 5;

/// Attempts are forgotten when this has passed since the first.
pub const WINDOW: Duration = Duration::from_mins(15);

/// The longest pause.
pub const MAX_DELAY: Duration = Duration::from_mins(1);

/// What attempts are counted by: a hash of both parts, so that the table holds no addresses of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleKey([u8; 32]);

impl ThrottleKey {
    /// The key of attempts on `email` (canonical) from `client`. An IPv6 client counts by its /64: one subscriber has all of it.
    #[must_use]
    pub fn new(email: &str, client: IpAddr) -> Self {
        let mut hash = Sha256::new();
        hash.update(email);
        hash.update([0]);
        match client {
            IpAddr::V4(address) => hash.update(address.octets()),
            IpAddr::V6(address) => hash.update(&address.octets()[..8]),
        }
        Self(hash.finalize().into())
    }

    /// What is stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(email: &str, client: &str) -> ThrottleKey {
        ThrottleKey::new(email, client.parse().expect("an address"))
    }

    #[test]
    fn accounts_and_addresses_count_apart() {
        let base = key("a@example.com", "192.0.2.1");
        assert_eq!(base, key("a@example.com", "192.0.2.1"));
        assert_ne!(base, key("b@example.com", "192.0.2.1"));
        assert_ne!(base, key("a@example.com", "192.0.2.2"));
    }

    #[test]
    fn an_ipv6_client_counts_by_its_network() {
        let base = key("a@example.com", "2001:db8:1:2::1");
        assert_eq!(base, key("a@example.com", "2001:db8:1:2:ffff::9"));
        assert_ne!(base, key("a@example.com", "2001:db8:1:3::1"));
    }
}
