//! A rate that is kept by spacing calls out, so that quotas are used up evenly and never passed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tokio::time::Instant;

use crate::config::Limits;
use crate::error::ThrottledBy;
use crate::operation::{Category, Operation};

/// Users whose calls are counted; beyond, the least recently seen are forgotten.
const USERS_MAX: u64 = 100_000;

/// A user who has not been seen for so long has all of their allowance again.
const USER_IDLE: Duration = Duration::from_mins(1);

/// One part in so many of a second's calls may come at once.
const BURST_PARTS: u32 = 10;

/// The generic cell rate algorithm (ITU-T I.371, annex A): one instant is all its state.
#[derive(Debug)]
struct Rate {
    interval: Duration,
    tolerance: Duration,
    /// When the next call would be due if all came evenly.
    due: Mutex<Option<Instant>>,
}

impl Rate {
    fn per_second(calls: u32) -> Self {
        let interval = Duration::from_secs(1) / calls;
        let burst = (calls / BURST_PARTS).max(1);
        Self { interval, tolerance: interval * (burst - 1), due: Mutex::default() }
    }

    /// Takes a place: how long to wait for it. A place that is further away than `patience` is not taken.
    fn reserve(&self, now: Instant, patience: Duration) -> Result<Duration, Duration> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let theoretical = due.unwrap_or(now).max(now);
        let wait = (theoretical - now).saturating_sub(self.tolerance);
        if wait > patience {
            return Err(wait);
        }
        *due = Some(theoretical + self.interval);
        Ok(wait)
    }

    /// Gives the last place back.
    fn give_back(&self) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        *due = due.and_then(|due| due.checked_sub(self.interval));
    }
}

/// The limits of this task.
pub(crate) struct Limiter {
    user_authentication: Option<Rate>,
    user_creation: Option<Rate>,
    user_read: Option<Rate>,
    user_token: Option<Rate>,
    per_user: Option<PerUser>,
}

struct PerUser {
    calls_per_second: u32,
    users: Cache<String, Arc<Rate>>,
}

impl Limiter {
    pub(crate) fn new(limits: Limits) -> Self {
        let rate = |calls: u32| (calls > 0).then(|| Rate::per_second(calls));
        Self {
            user_authentication: rate(limits.user_authentication),
            user_creation: rate(limits.user_creation),
            user_read: rate(limits.user_read),
            user_token: rate(limits.user_token),
            per_user: (limits.per_user > 0).then(|| PerUser {
                calls_per_second: limits.per_user,
                users: Cache::builder()
                    .max_capacity(USERS_MAX)
                    // Newcomers are counted too, whoever must be forgotten for it.
                    .eviction_policy(EvictionPolicy::lru())
                    .time_to_idle(USER_IDLE)
                    .build(),
            }),
        }
    }

    /// Waits until the call may be sent: for its user's place, and after that for one of its kind. A place of the kind that was
    /// taken before would be used late, beside later ones.
    ///
    /// # Errors
    /// When a place is further away than `patience` allows, without a trace in any limit: which limit, and how far. At once, unless
    /// the user's own place was waited for.
    pub(crate) async fn pass(
        &self,
        operation: Operation,
        user: &str,
        patience: Duration,
    ) -> Result<(), (ThrottledBy, Duration)> {
        let now = Instant::now();
        let of_user = self
            .per_user
            .as_ref()
            .filter(|_| !user.is_empty())
            .map(|limit| limit.users.get_with_by_ref(user, || Arc::new(Rate::per_second(limit.calls_per_second))));
        let until = now + patience;
        if let Some(rate) = &of_user {
            let wait = rate.reserve(now, patience).map_err(|wait| (ThrottledBy::UserLimit, wait))?;
            pause(wait).await;
        }
        if let Some(rate) = self.of(operation.category()) {
            let now = Instant::now();
            match rate.reserve(now, until.saturating_duration_since(now)) {
                Ok(wait) => pause(wait).await,
                Err(wait) => {
                    of_user.inspect(|rate| rate.give_back());
                    return Err((ThrottledBy::Limit, wait));
                }
            }
        }
        Ok(())
    }

    fn of(&self, category: Category) -> Option<&Rate> {
        match category {
            Category::Authentication => self.user_authentication.as_ref(),
            Category::Creation => self.user_creation.as_ref(),
            Category::Read => self.user_read.as_ref(),
            Category::Token => self.user_token.as_ref(),
            Category::AccountRecovery => None,
        }
    }
}

async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    async fn passed(limiter: &Limiter, calls: usize) -> Duration {
        let began = Instant::now();
        for _ in 0..calls {
            limiter.pass(Operation::LogIn, "ada", PATIENCE).await.unwrap();
        }
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_spaced_out_to_the_limit_after_a_small_burst() {
        let limiter = Limiter::new(Limits { user_authentication: 100, ..Limits::default() });
        // Ten at once, the other ninety 10 ms apart; tokio's clock ticks in milliseconds.
        assert_eq!(passed(&limiter, 100).await.as_millis(), 900);
        assert_eq!(passed(&limiter, 100).await.as_millis(), 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_wait_too_long_is_refused_at_once_and_takes_no_place() {
        let limiter = Limiter::new(Limits { user_authentication: 10, ..Limits::default() });
        let began = Instant::now();
        let mut waits = tokio::task::JoinSet::new();
        let limiter = Arc::new(limiter);
        for _ in 0..21 {
            let limiter = limiter.clone();
            waits.spawn(async move { limiter.pass(Operation::LogIn, "ada", PATIENCE).await });
        }
        while !waits.is_empty() && began.elapsed() < PATIENCE {
            assert_eq!(waits.join_next().await.unwrap().unwrap(), Ok(()));
        }
        assert_eq!((waits.len(), began.elapsed()), (0, PATIENCE));

        let limiter = Limiter::new(Limits { user_authentication: 1, ..Limits::default() });
        for _ in 0..50 {
            let refused = limiter.pass(Operation::LogIn, "ada", Duration::ZERO).await;
            assert!(refused.is_ok() || refused == Err((ThrottledBy::Limit, Duration::from_secs(1))), "{refused:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn categories_and_users_count_apart() {
        let limits = Limits { user_authentication: 1, per_user: 1, ..Limits::default() };
        let limiter = Limiter::new(limits);
        let at_once = async |operation, user: &str| limiter.pass(operation, user, Duration::ZERO).await;
        assert_eq!(at_once(Operation::LogIn, "ada").await, Ok(()));
        assert_eq!(at_once(Operation::LogIn, "bob").await, Err((ThrottledBy::Limit, Duration::from_secs(1))));
        assert_eq!(at_once(Operation::GetUser, "ada").await, Err((ThrottledBy::UserLimit, Duration::from_secs(1))));
        assert_eq!(at_once(Operation::GetUser, "bob").await, Ok(()), "what the other limit refused is not counted");
        assert_eq!(at_once(Operation::ChangePassword, "").await, Ok(()));
        assert_eq!(at_once(Operation::ChangePassword, "").await, Ok(()), "nobody in particular");
    }

    #[tokio::test(start_paused = true)]
    async fn users_who_must_wait_do_not_come_together_beyond_the_limit_of_all() {
        let limits = Limits { user_authentication: 50, per_user: 10, ..Limits::default() };
        let limiter = Arc::new(Limiter::new(limits));
        let mut calls = tokio::task::JoinSet::new();
        let began = Instant::now();
        // In order of their users, so that each user's later calls wait for a second and more.
        for user in 0..5 {
            for _ in 0..20 {
                let limiter = limiter.clone();
                calls.spawn(async move {
                    let passed = limiter.pass(Operation::LogIn, &format!("user {user}"), PATIENCE).await;
                    passed.map(|()| began.elapsed())
                });
            }
        }
        for user in 0..60 {
            let limiter = limiter.clone();
            calls.spawn(async move {
                tokio::time::sleep(Duration::from_millis(1_050)).await;
                let passed = limiter.pass(Operation::LogIn, &format!("late {user}"), PATIENCE).await;
                passed.map(|()| began.elapsed())
            });
        }
        let mut passed: Vec<Duration> = calls.join_all().await.into_iter().filter_map(Result::ok).collect();
        passed.sort_unstable();
        assert!(passed.len() > 100, "{}", passed.len());
        let busiest = passed
            .iter()
            .map(|from| passed.iter().filter(|at| *at >= from && **at < *from + Duration::from_secs(1)).count())
            .max();
        // 50, and the burst of a tenth.
        assert!(busiest <= Some(55), "{busiest:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_limits_nobody_waits() {
        let limiter = Limiter::new(Limits::default());
        assert_eq!(passed(&limiter, 10_000).await, Duration::ZERO);
    }
}
