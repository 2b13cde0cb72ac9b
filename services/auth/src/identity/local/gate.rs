//! One registration of an email at a time, within this task.
//!
//! Of a hundred clients that register one address at once, one hashes a password; the others wait their turn here, where waiting
//! costs nothing, and find the address taken. Without it they would fill the hash queue and be told to come again. Between
//! tasks the unique constraint decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::email::Email;

type Turns = Mutex<HashMap<Email, Arc<tokio::sync::Mutex<()>>>>;

/// The gate; clones share it.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<Turns>);

/// The turn of one email's registration; ends when dropped.
pub(super) struct Turn {
    // Dropped first: the place looks whether anybody else holds the lock.
    _guard: OwnedMutexGuard<()>,
    _place: Place,
}

impl Gate {
    /// Waits until nobody else registers `email`, first come first served.
    pub(super) async fn enter(&self, email: &Email) -> Turn {
        let lock = lock(&self.0).entry(email.clone()).or_default().clone();
        // Made before the wait: a request that is dropped while it waits leaves its place.
        let place = Place { turns: self.0.clone(), email: email.clone() };
        Turn { _guard: lock.lock_owned().await, _place: place }
    }

    /// Emails that are being registered.
    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

/// Somebody's place at the gate, waiting or not.
struct Place {
    turns: Arc<Turns>,
    email: Email,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut turns = lock(&self.turns);
        // Clones are made under the same lock: if the map's is the only one, nobody waits and nobody can begin to.
        if turns.get(&self.email).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.email);
        }
    }
}

fn lock(turns: &Turns) -> MutexGuard<'_, HashMap<Email, Arc<tokio::sync::Mutex<()>>>> {
    turns.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    fn email(text: &str) -> Email {
        Email::parse(text.to_owned()).expect("valid")
    }

    #[tokio::test]
    async fn one_email_has_one_turn_at_a_time_and_others_do_not_wait() {
        let gate = Gate::default();
        let (ada, bob) = (email("ada@example.com"), email("bob@example.com"));
        let first = gate.enter(&ada).await;
        let mut second = pin!(gate.enter(&ada));
        assert!(second.as_mut().now_or_never().is_none());
        drop(gate.enter(&bob).now_or_never().expect("another email need not wait"));
        drop(first);
        drop(second.now_or_never().expect("its turn has come"));
        assert_eq!(gate.len(), 0);
    }

    #[tokio::test]
    async fn whoever_goes_away_leaves_nothing_behind() {
        let gate = Gate::default();
        let ada = email("ada@example.com");
        let first = gate.enter(&ada).await;
        {
            let mut given_up = pin!(gate.enter(&ada));
            assert!(given_up.as_mut().now_or_never().is_none());
        }
        assert_eq!(gate.len(), 1, "the first is still at it");
        drop(first);
        assert_eq!(gate.len(), 0);
    }
}
