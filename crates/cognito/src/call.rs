//! What every call has in common: admission, attempts, deadlines, counting.

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
        E: ProvideErrorMetadata,
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
        E: ProvideErrorMetadata,
    {
        let permit = stages::timed(Stage::Admission, self.0.admission.enter(operation, user)).await?;
        let deadline = Instant::now() + self.0.operation_timeout;
        let outcome = stages::timed(Stage::Idp, async {
            let attempts = self.attempts(operation, attempt);
            timeout_at(deadline, attempts)
                .await
                .unwrap_or(Err(CognitoError::Unavailable { operation, trouble: Trouble::Timeout }))
        })
        .await;
        drop(permit);
        outcome
    }

    async fn attempts<T, E, F>(&self, operation: Operation, attempt: impl Fn() -> F) -> Result<T, CognitoError>
    where
        F: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata,
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
                }
                outcome => return outcome,
            }
        }
    }
}
