//! What keeps retries from becoming a storm: they are paid for with good answers.

use std::sync::{Mutex, PoisonError};

/// What a good answer earns, in retries.
const EARNED: f64 = 0.1;

/// A bucket of retries. When nothing works it is soon empty, and each call is then made once.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    capacity: f64,
    retries: Mutex<f64>,
}

impl RetryBudget {
    pub(crate) fn new(capacity: u32) -> Self {
        let capacity = f64::from(capacity);
        Self { capacity, retries: Mutex::new(capacity) }
    }

    /// Takes a retry, if there is one.
    pub(crate) fn take(&self) -> bool {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        let there = *retries >= 1.0;
        if there {
            *retries -= 1.0;
        }
        there
    }

    /// The provider has answered as it should, whatever it said.
    pub(crate) fn earn(&self) {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        *retries = (*retries + EARNED).min(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_run_out_and_ten_good_answers_earn_one() {
        let budget = RetryBudget::new(2);
        assert_eq!([(); 4].map(|()| budget.take()), [true, true, false, false]);
        (0..10).for_each(|_| budget.earn());
        // Ten tenths are a little less than one.
        budget.earn();
        assert_eq!([(); 2].map(|()| budget.take()), [true, false]);
        (0..100).for_each(|_| budget.earn());
        assert_eq!([(); 3].map(|()| budget.take()), [true, true, false], "it holds no more than at the start");
    }

    #[test]
    fn no_budget_is_no_retry() {
        let budget = RetryBudget::new(0);
        (0..100).for_each(|_| budget.earn());
        assert!(!budget.take());
    }
}
