//! The connections that are open now, so that all of them can be told something.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Open connections of one kind.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    live: Mutex<Live<T>>,
}

#[derive(Debug)]
struct Live<T> {
    next: u64,
    entries: HashMap<u64, Weak<T>>,
}

impl<T> Registry<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { live: Mutex::new(Live { next: 0, entries: HashMap::new() }) })
    }

    /// Enters a connection; it leaves when the entry is dropped.
    pub(crate) fn enter(self: &Arc<Self>, connection: &Arc<T>) -> Entry<T> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let key = live.next;
        live.next += 1;
        live.entries.insert(key, Arc::downgrade(connection));
        Entry { registry: self.clone(), key }
    }

    /// Tells every connection that is open now.
    pub(crate) fn for_each(&self, tell: impl Fn(&T)) {
        // Told outside the lock: a connection may leave while it is being told.
        let connections: Vec<_> = {
            let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.entries.values().filter_map(Weak::upgrade).collect()
        };
        for connection in connections {
            tell(&connection);
        }
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).entries.len()
    }
}

/// A connection's place in its registry.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    registry: Arc<Registry<T>>,
    key: u64,
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        let mut live = self.registry.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.entries.remove(&self.key);
    }
}
