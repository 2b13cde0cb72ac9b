//! Asking the identity provider who somebody is, where tokens do not say it: with `GetUser`, in the person's own name.
//!
//! One question a person at a time; whoever fails is not asked about again at once, and a provider that is throttled is left
//! alone for all. What it cannot tell now, it may tell at a later request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cognito::{Cognito, CognitoError, UserAttributes};
use moka::sync::Cache;
use service_kit::auth::PresentedToken;
use service_kit::clock::SharedClock;
use service_kit::stages::{Stage, timed};
use time::OffsetDateTime;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

/// After a question that failed, or whose answer had no email, the person is not asked about for this long.
const PAUSE: Duration = Duration::from_secs(30);

/// People whose pauses are remembered; beyond, the least recently seen are forgotten.
const PAUSES_MAX: u64 = 100_000;

type Turns = Mutex<HashMap<Uuid, Arc<tokio::sync::Mutex<()>>>>;

/// The provider's directory of users.
pub(crate) struct Directory {
    cognito: Cognito,
    clock: SharedClock,
    turns: Arc<Turns>,
    /// Until when a person is not asked about.
    pauses: Cache<Uuid, OffsetDateTime>,
    /// Until when nobody is.
    pause_of_all: Mutex<Option<OffsetDateTime>>,
}

/// The turn to ask about one person; ends when dropped.
pub(crate) struct Turn {
    // Dropped first: the place looks whether anybody else holds the lock.
    _guard: OwnedMutexGuard<()>,
    _place: Place,
}

struct Place {
    turns: Arc<Turns>,
    id: Uuid,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut turns = lock(&self.turns);
        // Clones are made under the same lock: if the map's is the only one, nobody waits and nobody can begin to.
        if turns.get(&self.id).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.id);
        }
    }
}

impl Directory {
    pub(crate) fn new(cognito: Cognito, clock: SharedClock) -> Self {
        let pauses = Cache::builder().max_capacity(PAUSES_MAX).time_to_live(PAUSE * 2).build();
        Self { cognito, clock, turns: Arc::default(), pauses, pause_of_all: Mutex::default() }
    }

    /// Whether it is worth a turn, and after it a question: whoever was before may have found out that it is not.
    pub(crate) fn may_be_asked(&self, id: Uuid) -> bool {
        let now = self.clock.now();
        let has_passed = |until: Option<OffsetDateTime>| until.is_none_or(|until| until <= now);
        has_passed(*lock(&self.pause_of_all)) && has_passed(self.pauses.get(&id))
    }

    /// Waits until nobody else asks about this person: that is waiting for the provider.
    pub(crate) async fn turn(&self, id: Uuid) -> Turn {
        let turn = lock(&self.turns).entry(id).or_default().clone();
        // Made before the wait: a request that is dropped while it waits leaves its place.
        let place = Place { turns: self.turns.clone(), id };
        let guard = match turn.clone().try_lock_owned() {
            Ok(guard) => guard,
            Err(_) => timed(Stage::Idp, turn.lock_owned()).await,
        };
        Turn { _guard: guard, _place: place }
    }

    /// What the provider knows; none when it cannot say.
    pub(crate) async fn ask(&self, id: Uuid, token: &PresentedToken) -> Option<UserAttributes> {
        match self.cognito.get_user(&id.to_string(), token.expose()).await {
            Ok(attributes) => Some(attributes),
            Err(error) => {
                if let CognitoError::Throttled { retry_after, .. } = error {
                    *lock(&self.pause_of_all) = Some(self.clock.now() + retry_after);
                }
                // Counted by the client; a line for each person would be a flood while the provider is down.
                tracing::debug!(%error, "a person's email stays unknown for now");
                None
            }
        }
    }

    /// Lets a person be whom the provider cannot tell more about for now.
    pub(crate) fn pause(&self, id: Uuid) {
        self.pauses.insert(id, self.clock.now() + PAUSE);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
