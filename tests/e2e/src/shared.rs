//! One system for all tests of a binary.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::Datum;

/// Where a test binary keeps its system: started by the first test that needs it, and stopped when no test holds it any more.
#[derive(Debug)]
pub struct Shared {
    program: &'static str,
    arguments: &'static [&'static str],
    running: Mutex<Weak<Datum>>,
}

impl Shared {
    /// A system that is started with `program up` and these arguments.
    #[must_use]
    pub const fn new(program: &'static str, arguments: &'static [&'static str]) -> Self {
        Self { program, arguments, running: Mutex::new(Weak::new()) }
    }

    /// The running system.
    #[must_use]
    pub fn get(&self) -> Arc<Datum> {
        // Whoever comes while it starts waits here. A start that failed leaves nothing behind: the next one tries again.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.upgrade().unwrap_or_else(|| {
            let datum = Arc::new(Datum::up(self.program, self.arguments));
            *running = Arc::downgrade(&datum);
            datum
        })
    }
}
