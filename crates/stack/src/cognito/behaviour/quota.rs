//! How many calls a second are let through.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::per_operation::pairs;
use crate::cognito::operation::{Category, Operation};

/// Reads of one user a second, and writes of one user a second ("Quotas in Amazon Cognito").
const DEFAULT_PER_USER: f64 = 10.0;
/// What stands for the quota of a single user.
const USER: &str = "user";
/// What stands for all of AWS's defaults.
const DEFAULTS: &str = "default";
/// `RespondToAuthChallenge` has a quota of three times that of its category; what exceeds it counts against the category
/// ("Quotas in Amazon Cognito", operations with special request rate handling).
const CHALLENGE_FACTOR: f64 = 3.0;
const NANOS_PER_SECOND: f64 = 1e9;

/// Calls a second by category, and by user: `default`, or `UserAuthentication=120,UserCreation=50,user=10`. What is not named is
/// not limited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quotas {
    /// Of all users together.
    pub categories: BTreeMap<Category, f64>,
    /// Of each user: that many reads and that many writes.
    pub per_user: Option<f64>,
}

impl Quotas {
    /// What AWS gives an account and region where nobody asked for more.
    #[must_use]
    pub fn aws_default() -> Self {
        let categories = Category::ALL.into_iter().map(|it| (it, it.default_per_second())).collect();
        Self { categories, per_user: Some(DEFAULT_PER_USER) }
    }
}

impl FromStr for Quotas {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == DEFAULTS {
            return Ok(Self::aws_default());
        }
        let mut quotas = Self::default();
        for (name, number) in pairs(text)? {
            let refused = || format!("`{number}`: a quota is above 0 and at most 1000000 calls a second");
            let rate: f64 = number.parse().map_err(|_| refused())?;
            if !(rate > 0.0 && rate <= 1e6) {
                return Err(refused());
            }
            if name == USER {
                quotas.per_user = Some(rate);
            } else {
                quotas.categories.insert(name.parse()?, rate);
            }
        }
        Ok(quotas)
    }
}

impl fmt::Display for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_categories = self.categories.iter().map(|(category, rate)| format!("{}={rate}", category.name()));
        let all: Vec<String> = of_categories.chain(self.per_user.map(|rate| format!("{USER}={rate}"))).collect();
        f.write_str(&all.join(","))
    }
}

/// A token bucket that holds one second's calls, in the form of the generic cell rate algorithm (ITU-T I.371): all that changes is
/// one number, the time at which the bucket would be full again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Between two calls at the rate, in nanoseconds.
    interval: u64,
    /// How far ahead of the present the bucket may be emptied.
    tolerance: u64,
}

impl Rate {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates are above 0 and bounded when they are read"
    )]
    pub(crate) fn per_second(rate: f64) -> Self {
        let interval = (NANOS_PER_SECOND / rate).round().max(1.0);
        let capacity = rate.floor().max(1.0);
        Self { interval: interval as u64, tolerance: ((capacity - 1.0) * interval) as u64 }
    }

    /// Takes a token at `now` (nanoseconds of any clock that does not go back), if there is one.
    pub(crate) fn admit(&self, full_at: &AtomicU64, now: u64) -> bool {
        let taken = full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            (full_at <= now.saturating_add(self.tolerance)).then(|| full_at.max(now).saturating_add(self.interval))
        });
        taken.is_ok()
    }
}

/// A rate with the state of one bucket.
#[derive(Debug)]
struct TokenBucket(Rate, AtomicU64);

impl TokenBucket {
    fn new(per_second: f64) -> Self {
        Self(Rate::per_second(per_second), AtomicU64::new(0))
    }

    fn admit(&self, now: u64) -> bool {
        self.0.admit(&self.1, now)
    }
}

/// The buckets of a running double.
#[derive(Debug)]
pub(crate) struct Buckets {
    categories: [Option<TokenBucket>; Category::ALL.len()],
    challenges: Option<TokenBucket>,
}

impl Buckets {
    pub(crate) fn new(quotas: &Quotas) -> Self {
        let of = |category| quotas.categories.get(&category).copied();
        Self {
            categories: Category::ALL.map(|category| of(category).map(TokenBucket::new)),
            challenges: of(Category::UserAuthentication).map(|rate| TokenBucket::new(rate * CHALLENGE_FACTOR)),
        }
    }

    /// Whether a call at `now` is within its quota.
    pub(crate) fn admit(&self, operation: Operation, now: u64) -> bool {
        let admits = |bucket: &Option<TokenBucket>| bucket.as_ref().is_none_or(|bucket| bucket.admit(now));
        let category = &self.categories[operation.category().index()];
        (operation == Operation::RespondToAuthChallenge && admits(&self.challenges)) || admits(category)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn quotas_are_read_as_they_are_written() {
        let quotas: Quotas = "UserCreation=50, UserAuthentication=0.5,user=10".parse().unwrap();
        assert_eq!(quotas.to_string(), "UserAuthentication=0.5,UserCreation=50,user=10");
        assert_eq!("default".parse(), Ok(Quotas::aws_default()));
        assert_eq!("".parse(), Ok(Quotas::default()));
        for wrong in ["UserAuthentication", "X=1", "user=0", "user=-1", "user=NaN", "user=inf", "user=x"] {
            assert!(wrong.parse::<Quotas>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn over_the_quota_exactly_its_rate_is_admitted() {
        let bucket = TokenBucket::new(120.0);
        // A minute of 1,000 calls a second.
        let admitted = (0..60_000_u64).filter(|n| bucket.admit(n * SECOND / 1_000)).count();
        // The bucket was full at the beginning: one second's worth more.
        assert!((60 * 120 + 119..=60 * 120 + 121).contains(&admitted), "{admitted}");
    }

    #[test]
    fn within_the_quota_a_burst_of_a_second_passes_and_no_more() {
        let bucket = TokenBucket::new(10.0);
        assert_eq!((0..50).filter(|_| bucket.admit(5 * SECOND)).count(), 10);
        assert_eq!((0..50).filter(|_| bucket.admit(5 * SECOND + SECOND / 2)).count(), 5);
        assert_eq!((0..50).filter(|_| bucket.admit(100 * SECOND)).count(), 10);
    }

    #[test]
    fn a_rate_below_one_admits_one_each_time() {
        let bucket = TokenBucket::new(0.5);
        assert!(bucket.admit(0) && !bucket.admit(SECOND) && bucket.admit(2 * SECOND));
    }

    #[test]
    fn answers_to_challenges_have_three_times_the_quota_and_then_their_categorys() {
        let buckets = Buckets::new(&"UserAuthentication=10".parse().unwrap());
        let challenges = (0..100).filter(|_| buckets.admit(Operation::RespondToAuthChallenge, SECOND)).count();
        assert_eq!(challenges, 40);
        assert!(!buckets.admit(Operation::InitiateAuth, SECOND));
        assert!(buckets.admit(Operation::SignUp, SECOND));
    }
}
