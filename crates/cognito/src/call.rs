//! What every call has in common: admission, attempts, deadlines, counting.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use aws_sdk_cognitoidentityprovider::error::{ProvideErrorMetadata, SdkError};
use service_kit::stages::{self, Stage};
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::Cognito;
use crate::error::{CognitoError, Trouble};
use crate::operation::Operation;

/// The pause before the second attempt; it doubles with each further one. One client waits, so that scatter would buy nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

impl Cognito {
    /// Makes a call about `user`. Waiting for limits and a permit is `admission`, everything after it `idp`.
    pub(crate) async fn call<T, E, F>(
        &self,
        operation: Operation,
        user: &str,
        attempt: impl Fn() -> F,
    ) -> Result<T, CognitoError>
    where
        F: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + Error + 'static,
    {
        let outcome = self.admitted(operation, user, attempt).await;
        let result = outcome.as_ref().map_or_else(CognitoError::label, |_| "ok");
        metrics::counter!("idp_calls_total", "operation" => operation.name(), "result" => result).increment(1);
        match &outcome {
            Err(CognitoError::Throttled { by, .. }) => {
                metrics::counter!("idp_throttled_total", "operation" => operation.name(), "by" => by.label())
                    .increment(1);
            }
            Err(CognitoError::Unavailable { trouble: Trouble::Misconfigured, .. }) => {
                tracing::error!(operation = operation.name(), "Cognito is not set up for this call");
            }
            _ => {}
        }
        outcome
    }

    async fn admitted<T, E, F>(
        &self,
        operation: Operation,
        user: &str,
        attempt: impl Fn() -> F,
    ) -> Result<T, CognitoError>
    where
        F: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + Error + 'static,
    {
        let permit = stages::timed(Stage::Admission, self.0.admission.enter(operation, user)).await?;
        let deadline = Instant::now() + self.timeout_of(operation);
        let outcome = stages::timed(Stage::Idp, async {
            let attempts = self.attempts(operation, user, attempt);
            timeout_at(deadline, attempts)
                .await
                .unwrap_or(Err(CognitoError::Unavailable { operation, trouble: Trouble::Timeout }))
        })
        .await;
        drop(permit);
        outcome
    }

    /// A person's email is worth less of a wait than what the client has asked for.
    fn timeout_of(&self, operation: Operation) -> Duration {
        match operation {
            Operation::GetUser => self.0.get_user_timeout,
            _ => self.0.operation_timeout,
        }
    }

    async fn attempts<T, E, F>(
        &self,
        operation: Operation,
        user: &str,
        attempt: impl Fn() -> F,
    ) -> Result<T, CognitoError>
    where
        F: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + Error + 'static,
    {
        let mut pause = FIRST_PAUSE;
        let mut left = if operation.is_repeatable() { self.0.max_attempts } else { 1 };
        loop {
            left -= 1;
            metrics::counter!("idp_attempts_total", "operation" => operation.name()).increment(1);
            // On the heap: the SDK's futures are large, and every handler's would be.
            let outcome = Box::pin(attempt()).await.map_err(|error| CognitoError::of(operation, &error));
            if outcome.as_ref().map_or_else(CognitoError::is_an_answer, |_| true) {
                self.0.budget.earn();
            }
            match outcome {
                Err(error) if error.is_transient() && left > 0 && self.0.budget.take() => {
                    tracing::debug!(%error, "another attempt");
                    sleep(pause).await;
                    pause *= 2;
                    // An attempt counts as a call: the provider's quotas count it so.
                    if !self.0.admission.may_repeat(operation, user).await {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use aws_sdk_cognitoidentityprovider::operation::get_user::GetUserError;
    use service_kit::auth::{Policy, Production};
    use service_kit::config::{Environment, load};

    use super::*;
    use crate::config::CognitoConfig;
    use crate::error::ThrottledBy;

    type Outcome = Result<(), SdkError<GetUserError>>;

    fn cognito(pairs: &[(&str, &str)]) -> Cognito {
        let policy = Policy::Cognito { issuer: "http://127.0.0.1:1".to_owned(), client_ids: vec!["web".to_owned()] };
        let wiring = [("COGNITO_REGION", "us-east-1"), ("COGNITO_ENDPOINT_URL", "http://127.0.0.1:1")];
        let environment = Environment::from_pairs(wiring.iter().chain(pairs).copied());
        let config = load(&environment, |settings| CognitoConfig::read(settings, &policy, Production::default()))
            .unwrap()
            .unwrap();
        Cognito::new(&config).unwrap()
    }

    #[expect(clippy::result_large_err, reason = "the SDK's own type")]
    fn timed_out() -> Outcome {
        Err(SdkError::timeout_error("no answer"))
    }

    fn is_timeout(outcome: &Result<(), CognitoError>) -> bool {
        matches!(outcome, Err(CognitoError::Unavailable { trouble: Trouble::Timeout, .. }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_with_its_deadline_whatever_its_attempts_do() {
        let cognito = cognito(&[("COGNITO_OPERATION_TIMEOUT_MS", "8000")]);
        let began = Instant::now();
        let outcome = cognito.call(Operation::LogIn, "ada", std::future::pending::<Outcome>).await;
        assert!(is_timeout(&outcome), "{outcome:?}");
        assert_eq!(began.elapsed(), Duration::from_secs(8));

        let began = Instant::now();
        let outcome = cognito.call(Operation::GetUser, "ada", std::future::pending::<Outcome>).await;
        assert!(is_timeout(&outcome), "{outcome:?}");
        assert_eq!(began.elapsed(), Duration::from_secs(2));

        let cognito = self::cognito(&[("COGNITO_MAX_ATTEMPTS", "10"), ("COGNITO_OPERATION_TIMEOUT_MS", "5000")]);
        let began = Instant::now();
        let attempts = Cell::new(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            async { timed_out() }
        };
        let outcome = cognito.call(Operation::LogIn, "ada", attempt).await;
        assert!(is_timeout(&outcome), "{outcome:?}");
        // At 0, 100, 300, 700, 1500 and 3100 ms; the next would be at 6300.
        assert_eq!((attempts.get(), began.elapsed()), (6, Duration::from_secs(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn another_attempt_takes_another_place_in_the_limits() {
        let cognito = cognito(&[("COGNITO_LIMIT_USER_READ", "1"), ("COGNITO_MAX_ATTEMPTS", "2")]);
        let began = Instant::now();
        let attempts = Cell::new(Vec::new());
        let attempt = || {
            let mut at = attempts.take();
            at.push(began.elapsed().as_millis());
            attempts.set(at);
            async { timed_out() }
        };
        // Within the 2 s that a get-user has.
        let outcome = cognito.call(Operation::GetUser, "ada", attempt).await;
        assert!(is_timeout(&outcome), "{outcome:?}");
        assert_eq!(attempts.take(), [0, 1_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_too_long_for_a_permit_is_told_and_a_call_that_is_dropped_gives_its_own_back() {
        let cognito = cognito(&[("COGNITO_MAX_CONNECTIONS", "1"), ("COGNITO_ADMISSION_TIMEOUT_MS", "2000")]);
        let mut first = Box::pin(cognito.call(Operation::LogIn, "ada", std::future::pending::<Outcome>));
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut first).await.is_err(), "it holds the permit");
        let began = Instant::now();
        let second = cognito.call(Operation::GetUser, "bob", || async { Outcome::Ok(()) }).await;
        assert_eq!(second, Err(CognitoError::Busy { operation: Operation::GetUser }));
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        drop(first);
        assert_eq!(cognito.call(Operation::GetUser, "bob", || async { Outcome::Ok(()) }).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn over_the_limit_nothing_is_attempted_and_no_permit_taken() {
        let pairs = [("COGNITO_LIMIT_USER_READ", "1"), ("COGNITO_ADMISSION_TIMEOUT_MS", "500")];
        let cognito = cognito(&pairs);
        let attempts = Cell::new(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            async { Outcome::Ok(()) }
        };
        assert_eq!(cognito.call(Operation::GetUser, "ada", attempt).await, Ok(()));
        let throttled = CognitoError::Throttled {
            operation: Operation::GetUser,
            by: ThrottledBy::Limit,
            retry_after: Duration::from_secs(1),
        };
        assert_eq!(cognito.call(Operation::GetUser, "ada", attempt).await, Err(throttled));
        assert_eq!(attempts.get(), 1);
        tokio::time::advance(Duration::from_millis(500)).await;
        let began = Instant::now();
        assert_eq!(cognito.call(Operation::GetUser, "ada", attempt).await, Ok(()), "half a second is waited for");
        assert_eq!((attempts.get(), began.elapsed()), (2, Duration::from_millis(500)));
    }
}
