//! Trouble on purpose: what the document service must bear when S3 has a bad moment.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{Method, StatusCode};

/// What happens to a request instead of, or before, its proper answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mischief {
    /// An S3 error with this status; 503 says `SlowDown`, anything else `InternalError`.
    Status(StatusCode),
    /// The connection is closed without an answer.
    Disconnect,
    /// The answer comes this much later.
    Delay(Duration),
}

/// Trouble for the next requests that fit.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What happens.
    pub mischief: Mischief,
    /// Only to requests with this method; `None` is every method.
    pub method: Option<Method>,
    /// How many requests it happens to.
    pub times: usize,
}

/// The troubles to come. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<VecDeque<Fault>>>);

impl Faults {
    /// Adds trouble, after what is already to come.
    pub fn add(&self, fault: Fault) {
        self.lock().push_back(fault);
    }

    /// Back to normal.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// How many requests will still meet trouble.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.lock().iter().map(|fault| fault.times).sum()
    }

    /// Uses up one trouble of the first fault that fits.
    pub(super) fn take(&self, method: &Method) -> Option<Mischief> {
        let mut faults = self.lock();
        faults.retain(|fault| fault.times > 0);
        let fault = faults.iter_mut().find(|fault| fault.method.as_ref().is_none_or(|only| only == method))?;
        fault.times -= 1;
        Some(fault.mischief)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_happens_as_often_as_asked_and_only_to_its_method() {
        let faults = Faults::default();
        faults.add(Fault { mischief: Mischief::Disconnect, method: Some(Method::PUT), times: 2 });
        assert_eq!(faults.take(&Method::GET), None);
        assert_eq!(faults.take(&Method::PUT), Some(Mischief::Disconnect));
        assert_eq!(faults.remaining(), 1);
        assert_eq!(faults.take(&Method::PUT), Some(Mischief::Disconnect));
        assert_eq!(faults.take(&Method::PUT), None);
    }
}
