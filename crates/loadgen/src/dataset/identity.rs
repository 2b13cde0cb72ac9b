//! Email and password of a user. k6's scripts derive the same; `tests/load/fixtures/users.json` holds both to it.

use super::Dataset;

/// Distinct password hashes where nobody says otherwise.
pub const DEFAULT_HASHES: u32 = 64;

/// Somebody who can log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// In canonical form.
    pub email: String,
    /// In NFKC.
    pub password: String,
}

/// User `n` (from 0): `user-NNNNNNNNN.SEED@populated.datum.example`, with [`password`] n mod K. The number is padded to nine
/// digits, so that users who were made one after the other are neighbours in the index of emails.
#[must_use]
pub fn identity(dataset: &Dataset, n: u64) -> Identity {
    let Dataset { seed, distinct_hashes, .. } = dataset;
    let index = n % u64::from((*distinct_hashes).max(1));
    Identity { email: email(*seed, n), password: password(*seed, index) }
}

pub(super) fn email(seed: u64, n: u64) -> String {
    format!("user-{n:09}.{seed}@populated.datum.example")
}

/// Password `index` of the pool: `populated password INDEX of SEED`.
#[must_use]
pub fn password(seed: u64, index: u64) -> String {
    format!("populated password {index} of {seed}")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_fixture_that_k6_reads_says_the_same() {
        let fixture: Vec<Value> =
            serde_json::from_str(include_str!("../../../../tests/load/fixtures/users.json")).unwrap();
        assert!(fixture.len() >= 6);
        for user in fixture {
            let number = |name: &str| user[name].as_u64().unwrap();
            let dataset = Dataset {
                users: u64::MAX,
                seed: number("seed"),
                distinct_hashes: u32::try_from(number("distinct_hashes")).unwrap(),
            };
            let derived = identity(&dataset, number("n"));
            assert_eq!(
                (derived.email.as_str(), derived.password.as_str()),
                (user["email"].as_str().unwrap(), user["password"].as_str().unwrap())
            );
        }
    }
}
