//! Access tokens against real signatures and a real key endpoint, through the crate's public interface.

mod cache;
mod claims;
mod cognito;
mod extractor;
mod header;
mod keys;
mod observed;
mod rotation;
mod signature;

use std::sync::Arc;
use std::time::Duration;

use service_kit::auth::{Claims, JwksClient, JwksConfig, KeySource, Verifier, VerifyError};
use service_kit::clock::ManualClock;
use test_support::{JwksAnswer, JwksStub, TestIssuer};
use time::macros::datetime;
use uuid::Uuid;

// Far longer than any machine needs for a test, so that these times pass only when a test lets them.
const REFRESH_AFTER: Duration = Duration::from_hours(12);
const MIN_INTERVAL: Duration = Duration::from_hours(1);
const FETCH_TIMEOUT: Duration = Duration::from_mins(1);

fn clock() -> ManualClock {
    ManualClock::at(datetime!(2026-01-01 12:00 UTC))
}

fn local_issuer() -> TestIssuer {
    TestIssuer::local(Arc::new(clock()))
}

fn subject() -> Uuid {
    Uuid::from_u128(0x018f_4e9a_0000_7000_8000_0000_0000_0001)
}

/// Whether a verifier with the issuer's keys accepts the token.
async fn verify(issuer: &TestIssuer, token: &str) -> Result<Arc<Claims>, VerifyError> {
    issuer.verifier().verify(token).await
}

/// A key endpoint of the issuer, and a verifier that fetches from it.
async fn published(issuer: &TestIssuer) -> (JwksStub, JwksClient, Verifier) {
    let stub = JwksStub::start(JwksAnswer::Keys(issuer.jwks())).await;
    let client = client(&stub);
    let verifier = issuer.verifier_with(KeySource::remote(client.clone()));
    (stub, client, verifier)
}

fn client(stub: &JwksStub) -> JwksClient {
    let config = JwksConfig {
        url: stub.url(),
        refresh_after: REFRESH_AFTER,
        min_interval: MIN_INTERVAL,
        timeout: FETCH_TIMEOUT,
    };
    JwksClient::new(&config).expect("plain HTTP needs nothing of the system")
}

/// Lets monotonic time pass without waiting for it.
async fn pass(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}
