//! When an issuer's keys are fetched: once at a time, not too often, and never so that a failure takes away keys that work.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::config::JwksConfig;
use super::error::VerifyError;
use super::jwk::Jwks;
use super::jwks_fetch::{Endpoint, FetchError};
use super::key_set::KeySet;

/// Wait after the first failed fetch while there are no keys at all; it doubles with each further failure.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);

type Fetch = Box<dyn Fn() -> BoxFuture<'static, Result<Jwks, FetchError>> + Send + Sync>;

/// The keys that an issuer publishes, fetched and kept fresh. Clones share them.
///
/// Fetches run as tasks of their own, so that a caller who goes away does not end what others wait for. The last good set
/// serves for as long as the issuer cannot be reached.
#[derive(Clone)]
pub struct JwksClient(Arc<Inner>);

struct Inner {
    fetch: Fetch,
    refresh_after: Duration,
    min_interval: Duration,
    loaded: RwLock<Option<Loaded>>,
    schedule: Mutex<Schedule>,
}

#[derive(Clone)]
struct Loaded {
    keys: Arc<KeySet>,
    refresh_due: Instant,
}

#[derive(Default)]
struct Schedule {
    /// The last fetch. Its channel closes when the fetch is over, however it ends.
    running: Option<watch::Receiver<()>>,
    /// No fetch begins before this.
    not_before: Option<Instant>,
    /// Failed fetches since the last good one.
    failures: u32,
    last_error: Option<FetchError>,
}

impl JwksClient {
    /// A client that has fetched nothing yet and does so at the first need; see [`JwksClient::warm`].
    ///
    /// # Errors
    /// When an `https` URL is configured and the system has no root certificates to check it with.
    pub fn new(config: &JwksConfig) -> anyhow::Result<Self> {
        let endpoint = Arc::new(Endpoint::new(config).context("the client for AUTH_JWKS_URL")?);
        let fetch = move || -> BoxFuture<'static, _> {
            let endpoint = Arc::clone(&endpoint);
            Box::pin(async move { endpoint.fetch().await })
        };
        Ok(Self::with_fetch(Box::new(fetch), config.refresh_after, config.min_interval))
    }

    fn with_fetch(fetch: Fetch, refresh_after: Duration, min_interval: Duration) -> Self {
        let (loaded, schedule) = (RwLock::default(), Mutex::default());
        Self(Arc::new(Inner { fetch, refresh_after, min_interval, loaded, schedule }))
    }

    /// Fetches until there are keys, backing off after failures. Background work for a task that starts: its first request
    /// then does not wait, and its readiness knows what is wrong.
    pub async fn warm(self) {
        while self.current().await.is_err() {
            let next = self.schedule().not_before;
            sleep_until(next.unwrap_or_else(Instant::now)).await;
        }
    }

    /// A condition for [`Readiness::check`](crate::health::Readiness::check): ready once there are keys, and until then a
    /// reason that names the kind of failure, never the address. It fetches nothing itself.
    pub fn readiness(&self) -> impl Fn() -> Ready<Result<(), String>> + Send + Sync + 'static {
        let client = self.clone();
        move || ready(client.state())
    }

    fn state(&self) -> Result<(), String> {
        if self.loaded().is_some() {
            return Ok(());
        }
        Err(match self.schedule().last_error {
            Some(error) => format!("not fetched yet: {error}"),
            None => "not fetched yet".to_owned(),
        })
    }

    pub(super) fn at_hand(&self) -> Option<Arc<KeySet>> {
        let loaded = self.loaded()?;
        if Instant::now() >= loaded.refresh_due {
            self.begin_fetch();
        }
        Some(loaded.keys)
    }

    pub(super) async fn current(&self) -> Result<Arc<KeySet>, VerifyError> {
        if let Some(keys) = self.at_hand() {
            return Ok(keys);
        }
        self.fetched().await;
        self.loaded().map(|loaded| loaded.keys).ok_or(VerifyError::KeysUnavailable)
    }

    pub(super) async fn newer_than(&self, seen: Arc<KeySet>) -> Arc<KeySet> {
        if let Some(loaded) = self.loaded()
            && loaded.keys.generation != seen.generation
        {
            return loaded.keys;
        }
        self.fetched().await;
        self.loaded().map_or(seen, |loaded| loaded.keys)
    }

    /// Waits for the fetch that runs, or for a new one if it may begin now.
    async fn fetched(&self) {
        if let Some(mut running) = self.begin_fetch() {
            // The only news is that the channel closed.
            let _ = running.changed().await;
        }
    }

    fn begin_fetch(&self) -> Option<watch::Receiver<()>> {
        let mut schedule = self.schedule();
        if let Some(running) = &schedule.running
            && running.has_changed().is_ok()
        {
            return Some(running.clone());
        }
        let started = Instant::now();
        if schedule.not_before.is_some_and(|not_before| started < not_before) {
            return None;
        }
        let (over, running) = watch::channel(());
        schedule.running = Some(running.clone());
        // Stands if the fetch ends without a verdict.
        schedule.not_before = Some(started + self.0.min_interval);
        let client = self.clone();
        tokio::spawn(async move {
            let outcome = (client.0.fetch)().await;
            client.conclude(started, outcome);
            drop(over);
        });
        Some(running)
    }

    fn conclude(&self, started: Instant, outcome: Result<Jwks, FetchError>) {
        let previous = self.loaded();
        let generation = previous.as_ref().map_or(1, |loaded| loaded.keys.generation + 1);
        let outcome = outcome.map(|jwks| KeySet::new(&jwks, generation)).and_then(|keys| {
            // An empty set would refuse every caller: more likely the issuer's accident than its intent.
            if keys.is_empty() { Err(FetchError::NoUsableKey) } else { Ok(keys) }
        });
        let result = outcome.as_ref().map_or_else(|error| error.label(), |_| "ok");
        metrics::counter!("jwks_fetches_total", "result" => result).increment(1);
        let mut schedule = self.schedule();
        match outcome {
            Ok(keys) => {
                let keys = match previous {
                    Some(previous) if previous.keys.same_keys(&keys) => previous.keys,
                    _ => {
                        tracing::info!(keys = keys.len(), generation, "token keys in use");
                        Arc::new(keys)
                    }
                };
                self.load(Loaded { keys, refresh_due: Instant::now() + self.0.refresh_after });
                schedule.failures = 0;
                schedule.last_error = None;
                schedule.not_before = Some(started + self.0.min_interval);
            }
            Err(error) => {
                tracing::warn!(%error, last_good_set_kept = previous.is_some(), "token keys could not be fetched");
                schedule.not_before = Some(match previous {
                    Some(_) => started + self.0.min_interval,
                    None => Instant::now() + self.backoff(schedule.failures),
                });
                schedule.failures = schedule.failures.saturating_add(1);
                schedule.last_error = Some(error);
            }
        }
    }

    /// 250 ms, doubling up to the minimum interval.
    fn backoff(&self, earlier_failures: u32) -> Duration {
        let factor = 2_u32.saturating_pow(earlier_failures);
        FIRST_BACKOFF.saturating_mul(factor).min(self.0.min_interval)
    }

    fn loaded(&self) -> Option<Loaded> {
        self.0.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn load(&self, loaded: Loaded) {
        *self.0.loaded.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.0.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::time::{advance, sleep, timeout};

    use super::*;

    const REFRESH_AFTER: Duration = Duration::from_mins(5);
    const MIN_INTERVAL: Duration = Duration::from_secs(5);
    /// How long the issuer takes to answer, on the paused clock.
    const LATENCY: Duration = Duration::from_millis(50);

    /// An issuer that counts fetches and answers as it is told.
    #[derive(Clone)]
    struct Issuer {
        fetches: Arc<AtomicUsize>,
        answer: Arc<Mutex<Result<Jwks, FetchError>>>,
    }

    impl Issuer {
        fn new(answer: Result<Jwks, FetchError>) -> Self {
            Self { fetches: Arc::default(), answer: Arc::new(Mutex::new(answer)) }
        }

        fn answers(&self, answer: Result<Jwks, FetchError>) {
            *self.answer.lock().unwrap() = answer;
        }

        fn fetches(&self) -> usize {
            self.fetches.load(Ordering::Relaxed)
        }

        fn client(&self) -> JwksClient {
            let issuer = self.clone();
            let fetch = move || -> BoxFuture<'static, _> {
                issuer.fetches.fetch_add(1, Ordering::Relaxed);
                let issuer = issuer.clone();
                Box::pin(async move {
                    sleep(LATENCY).await;
                    issuer.answer.lock().unwrap().clone()
                })
            };
            JwksClient::with_fetch(Box::new(fetch), REFRESH_AFTER, MIN_INTERVAL)
        }
    }

    fn keys(ids: &[&str]) -> Jwks {
        // 256 bytes of ones.
        let modulus = format!("{}w", "_".repeat(341));
        let key = |id: &&str| serde_json::json!({"kty": "RSA", "n": modulus, "e": "AQAB", "kid": id});
        let keys: Vec<_> = ids.iter().map(key).collect();
        serde_json::from_value(serde_json::json!({ "keys": keys })).unwrap()
    }

    /// Lets a background fetch that has begun come to its end.
    async fn settle() {
        sleep(LATENCY * 2).await;
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_waits_for_one_first_fetch() {
        let issuer = Issuer::new(Ok(keys(&["a"])));
        let client = issuer.client();
        let all = join_all((0..200).map(|_| client.current())).await;
        assert!(all.into_iter().all(|keys| keys.is_ok_and(|keys| keys.get("a").is_some())));
        assert_eq!(issuer.fetches(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_who_goes_away_does_not_end_the_fetch() {
        let issuer = Issuer::new(Ok(keys(&["a"])));
        let client = issuer.client();
        let caller = client.clone();
        let gone = tokio::spawn(async move { caller.current().await.is_ok() });
        sleep(LATENCY / 2).await;
        gone.abort();
        assert!(client.current().await.is_ok());
        assert_eq!(issuer.fetches(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn old_keys_serve_while_one_fetch_renews_them() {
        let issuer = Issuer::new(Ok(keys(&["a"])));
        let client = issuer.client();
        client.current().await.unwrap();
        advance(Duration::from_millis(299_999)).await;
        client.current().await.unwrap();
        settle().await;
        assert_eq!(issuer.fetches(), 1, "not due yet");

        issuer.answers(Ok(keys(&["b"])));
        advance(Duration::from_millis(1)).await;
        for served in join_all((0..200).map(|_| client.current())).await {
            assert!(served.unwrap().get("a").is_some(), "nobody waits");
        }
        settle().await;
        assert_eq!(issuer.fetches(), 2);
        let renewed = client.at_hand().unwrap();
        assert!(renewed.get("b").is_some() && renewed.get("a").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_generation_changes_with_the_keys_only() {
        let issuer = Issuer::new(Ok(keys(&["a", "b"])));
        let client = issuer.client();
        let first = client.current().await.unwrap().generation;
        let generation_after = async |answer| {
            issuer.answers(Ok(answer));
            advance(REFRESH_AFTER).await;
            client.current().await.unwrap();
            settle().await;
            client.at_hand().unwrap().generation
        };
        assert_eq!(generation_after(keys(&["b", "a"])).await, first);
        assert_ne!(generation_after(keys(&["a"])).await, first);
        assert_eq!(issuer.fetches(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_cost_one_fetch_an_interval() {
        let issuer = Issuer::new(Ok(keys(&["a"])));
        let client = issuer.client();
        let seen = client.current().await.unwrap();
        let flood = async || {
            join_all((0..500).map(|_| client.newer_than(Arc::clone(&seen)))).await;
        };
        flood().await;
        assert_eq!(issuer.fetches(), 1, "the first fetch is not an interval ago");
        advance(MIN_INTERVAL).await;
        flood().await;
        flood().await;
        assert_eq!(issuer.fetches(), 2);
        // The interval counts from the beginning of the fetch, which took 50 ms.
        advance(Duration::from_millis(4_949)).await;
        flood().await;
        assert_eq!(issuer.fetches(), 2);
        advance(Duration::from_millis(1)).await;
        flood().await;
        assert_eq!(issuer.fetches(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_interval_holds_while_the_issuer_is_down() {
        let issuer = Issuer::new(Ok(keys(&["a"])));
        let client = issuer.client();
        let seen = client.current().await.unwrap();
        issuer.answers(Err(FetchError::Status(500)));
        for interval in 1..=3 {
            advance(MIN_INTERVAL).await;
            for _ in 0..10 {
                let keys = client.newer_than(Arc::clone(&seen)).await;
                assert!(keys.get("a").is_some(), "the last good set is kept");
            }
            assert_eq!(issuer.fetches(), 1 + interval);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_key_is_found_and_who_comes_late_does_not_fetch_again() {
        let issuer = Issuer::new(Ok(keys(&["a"])));
        let client = issuer.client();
        let seen = client.current().await.unwrap();
        issuer.answers(Ok(keys(&["a", "b"])));
        advance(MIN_INTERVAL).await;
        assert!(client.newer_than(Arc::clone(&seen)).await.get("b").is_some());
        advance(MIN_INTERVAL).await;
        assert!(client.newer_than(seen).await.get("b").is_some());
        assert_eq!(issuer.fetches(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_good_set_outlives_any_outage_and_is_replaced_after_it() {
        let issuer = Issuer::new(Ok(keys(&["a"])));
        let client = issuer.client();
        client.current().await.unwrap();
        for failure in [FetchError::Timeout, FetchError::Status(500), FetchError::Malformed] {
            issuer.answers(Err(failure));
            advance(REFRESH_AFTER * 10).await;
            assert!(client.current().await.unwrap().get("a").is_some());
            settle().await;
        }
        issuer.answers(Ok(Jwks::default()));
        advance(MIN_INTERVAL).await;
        client.current().await.unwrap();
        settle().await;
        assert!(client.at_hand().unwrap().get("a").is_some(), "an empty set replaces nothing");

        issuer.answers(Ok(keys(&["b"])));
        advance(MIN_INTERVAL).await;
        client.current().await.unwrap();
        settle().await;
        assert!(client.at_hand().unwrap().get("b").is_some());
        assert_eq!(issuer.fetches(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn without_any_keys_failures_are_retried_after_a_growing_pause() {
        let issuer = Issuer::new(Err(FetchError::Connect));
        let client = issuer.client();
        let mut expected = 0;
        for pause_ms in [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000] {
            assert_eq!(client.current().await.err(), Some(VerifyError::KeysUnavailable));
            expected += 1;
            assert_eq!(issuer.fetches(), expected);
            advance(Duration::from_millis(pause_ms - 1)).await;
            assert_eq!(client.current().await.err(), Some(VerifyError::KeysUnavailable));
            assert_eq!(issuer.fetches(), expected, "{pause_ms} ms are not over");
            advance(Duration::from_millis(1)).await;
        }
        issuer.answers(Ok(keys(&["a"])));
        assert!(client.current().await.is_ok(), "a failure is not for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn warming_ends_with_the_first_good_set() {
        let issuer = Issuer::new(Err(FetchError::Timeout));
        let client = issuer.client();
        let warm = tokio::spawn(client.clone().warm());
        // 0, 250, 750 and 1,750 ms, each after a fetch that takes 50 ms.
        sleep(Duration::from_secs(2)).await;
        assert_eq!(issuer.fetches(), 4);
        issuer.answers(Ok(keys(&["a"])));
        timeout(MIN_INTERVAL, warm).await.expect("warming ends").unwrap();
        assert_eq!(issuer.fetches(), 5);
        assert!(client.at_hand().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_says_what_is_missing() {
        let issuer = Issuer::new(Err(FetchError::Status(503)));
        let client = issuer.client();
        let readiness = client.readiness();
        assert_eq!(readiness().await, Err("not fetched yet".to_owned()));
        assert!(client.current().await.is_err());
        assert_eq!(readiness().await, Err("not fetched yet: status 503".to_owned()));
        assert_eq!(issuer.fetches(), 1, "asking is free");

        issuer.answers(Ok(Jwks::default()));
        advance(MIN_INTERVAL).await;
        assert!(client.current().await.is_err());
        assert_eq!(readiness().await, Err("not fetched yet: no usable key".to_owned()));

        issuer.answers(Ok(keys(&["a"])));
        advance(MIN_INTERVAL).await;
        client.current().await.unwrap();
        assert_eq!(readiness().await, Ok(()));

        issuer.answers(Err(FetchError::Connect));
        advance(REFRESH_AFTER).await;
        client.current().await.unwrap();
        settle().await;
        assert_eq!(readiness().await, Ok(()), "old keys are keys");
    }
}
