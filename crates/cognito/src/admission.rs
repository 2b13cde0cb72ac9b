//! One permit a call in flight: as many as there are connections, so that no call waits for one inside of the HTTP client.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::config::CognitoConfig;
use crate::error::{CognitoError, ThrottledBy};
use crate::limit::Limiter;
use crate::operation::Operation;

/// Gauge: calls in flight.
const IN_FLIGHT: &str = "idp_calls_in_flight";

/// Who may call now.
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    limiter: Limiter,
    timeout: Duration,
}

/// The right to one call; ends when dropped.
pub(crate) struct Permit {
    _permit: OwnedSemaphorePermit,
}

impl Drop for Permit {
    fn drop(&mut self) {
        metrics::gauge!(IN_FLIGHT).decrement(1.0);
    }
}

impl Admission {
    pub(crate) fn new(config: &CognitoConfig) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(config.max_connections)),
            limiter: Limiter::new(config.limits),
            timeout: config.admission_timeout,
        }
    }

    /// Waits for a place of one more attempt in the limits; the permit is held already. `false` where there is none in time.
    pub(crate) async fn may_repeat(&self, operation: Operation, user: &str) -> bool {
        self.limiter.pass(operation, user, self.timeout).await.is_ok()
    }

    /// Waits for limits and permit, together at most the configured time. First come, first served.
    pub(crate) async fn enter(&self, operation: Operation, user: &str) -> Result<Permit, CognitoError> {
        let deadline = Instant::now() + self.timeout;
        if let Err((by, retry_after)) = self.limiter.pass(operation, user, self.timeout).await {
            return Err(CognitoError::Throttled { operation, by, retry_after });
        }
        match tokio::time::timeout_at(deadline, self.permits.clone().acquire_owned()).await {
            Ok(Ok(permit)) => {
                metrics::gauge!(IN_FLIGHT).increment(1.0);
                Ok(Permit { _permit: permit })
            }
            // The semaphore is never closed; only time can have run out.
            _ => Err(CognitoError::Busy { operation }),
        }
    }
}

/// How a throttled call is counted.
impl ThrottledBy {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Attempts => "attempts",
            Self::Limit => "limit",
            Self::UserLimit => "user_limit",
        }
    }
}
